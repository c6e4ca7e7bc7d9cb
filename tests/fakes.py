"""A provider that gives the answers it was told to give, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.messages import Reply, Request, ToolCall, Usage, assistant
from agentkit.providers.base import Done, ProviderError, StreamEvent, TextDelta

SUMMARY = "goal: tidy up\ndone: a.py was read"

CALLED = Reply(assistant("", ToolCall("z", "sh", "{}")), Usage(fresh=10, output=5), "tool_calls")
CALLED_AND_SAID = Reply(assistant("Let me look first.", ToolCall("z", "sh", "{}")), finish="tool_calls")
CUT_OFF = Reply(assistant("goal: tidy"), finish="length")
DOWN = ProviderError("the server is overloaded; try again", kind="overloaded", status=529)

FAILURES: dict[str, Reply | Exception | str] = {
    "provider error": DOWN,
    "broken connection": ConnectionError("peer closed"),
    "empty": "",
    "white space": "   \n\t",
    "too long": "many words " * 20_000,
    "tool call": CALLED,
    "tool call and text": CALLED_AND_SAID,
    "cut off": CUT_OFF,
    "refused": Reply(assistant("I cannot help with that."), finish="refused"),
    "overflow": Reply(assistant("goal"), finish="overflow"),
}
"""Every way in which a summary call goes wrong."""


class Scripted:
    """Give `answers` one after the other, the last one for ever; an exception is raised, a text becomes a reply."""

    name = model = "scripted"

    def __init__(self, *answers: Reply | Exception | str) -> None:
        self.answers = answers or (SUMMARY,)
        self.requests: list[Request] = []

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """Answer `request`."""
        answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
        self.requests.append(request)
        if isinstance(answer, Exception):
            raise answer
        reply = Reply(assistant(answer), Usage(fresh=100, output=20)) if isinstance(answer, str) else answer
        yield TextDelta(reply.message.content)
        yield Done(reply)

    def asked(self, number: int = -1) -> str:
        """Return the text of one request."""
        return "\n".join(m.content for m in self.requests[number].messages)


class Echo(Scripted):
    """Answer every request with its own text: the worst summariser there is."""

    def stream(self, request: Request) -> Iterator[StreamEvent]:
        """Answer `request` with itself."""
        self.requests.append(request)
        yield Done(Reply(assistant(self.asked())))
