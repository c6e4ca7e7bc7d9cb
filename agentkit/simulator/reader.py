"""The reader: the model of the simulator. It is a program, not a language model, and answers a few kinds of question.

It knows only what is in the request. It answers from the text that it was sent, calls a tool when a fact is missing, reads a
file again when its text was dropped, and says that the wording is gone when all that is left is a summary. The same request
always gets the same answer. So what a policy forgets shows in what the agent does, and can be repeated exactly.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

from agentkit.messages import Message, Request, ToolCall, assistant
from agentkit.simulator import answers, changes, recall, repairs
from agentkit.simulator.knowledge import Knowledge
from agentkit.simulator.questions import Question, understand
from agentkit.simulator.summariser import is_summary_call, shares_prefix, summarise
from agentkit.simulator.work import MOST_CALLS, MOST_CHANGES, Call, Missing, Stuck, Work

_ANSWERS: dict[str, Callable[[Work, Question], str]] = {
    "count": answers.count,
    "returns": answers.returns,
    "find": answers.find,
    "list": answers.list_files,
    "read": answers.read_files,
    "tests": repairs.tests,
    "rename": changes.rename,
    "parameter": changes.add_parameter,
    "docstrings": changes.write_docstrings,
    "write tests": changes.write_tests,
    "constants": answers.constants,
    "first question": recall.first_question,
    "files read": recall.files_read,
    "notes": recall.notes,
    "remember": recall.remember,
    "decision": lambda work, question: "Noted.",
    "thanks": lambda work, question: "You are welcome.",
    "hello": lambda work, question: "Hello. What shall I look at?",
    "other": recall.other,
}


def read(request: Request) -> Message:
    """Return the assistant message that the simulated model gives: an answer, or the calls that would make one possible.

    A pure function that never raises: nothing but `request` matters, and nothing is remembered.
    """
    if is_summary_call(request) or shares_prefix(request):
        return assistant(_valid(summarise(request)))
    known = Knowledge(request.messages)
    question = understand(known.task)
    most = MOST_CHANGES if question.kind in changes.KINDS else MOST_CALLS
    work = Work(known, frozenset(tool.name for tool in request.tools), most)
    try:
        return assistant(_valid(_ANSWERS[question.kind](work, question)))
    except Missing as missing:
        return assistant("", *_calls(request.messages, missing.calls))
    except Stuck as stuck:
        return assistant(_valid(str(stuck)))


def _calls(messages: Sequence[Message], calls: Sequence[Call]) -> list[ToolCall]:
    """Give each call an id that depends on the messages and its position: unique in a conversation, and repeatable."""
    digest = hashlib.sha256()
    for message in messages:
        ids = [message.tool_call_id, *(c.id for c in message.tool_calls)]
        calls_text = [c.name + c.arguments for c in message.tool_calls]
        digest.update(json.dumps([message.role, message.content, ids, calls_text]).encode("ascii"))
    made = []
    for position, (name, args) in enumerate(calls):
        own = hashlib.sha256(digest.digest() + str(position).encode("ascii"))
        made.append(ToolCall(f"call_{own.hexdigest()[:8]}", name, _valid(json.dumps(args, ensure_ascii=False))))
    return made


def _valid(text: str) -> str:
    """Return text that can be sent: half a surrogate pair, which a request may hold, becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")
