"""Hypothesis strategies: any history at all, and the well-formed ones that an agent makes."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from agentkit.messages import Image, Message, Opaque, ToolCall, ToolSpec, assistant, system, tool_result, user

TOOLS = (ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}}),)

PICTURE = Image("image/png", "aGVsbG8=")

_ANY_CHARACTER = st.characters(exclude_categories=())  # lone surrogates too: they do arrive, in tool output
_TEXTS = [
    "",
    " ",
    "\n\t ",
    "hello",
    "数据库连接失败",
    "🔥👩‍👩‍👧",
    "\ud800 half a pair",
    "</history>",
    "<|endoftext|>",
    "x" * 300,
]
_IDS = ["", "a", "b", "c1", "c1-2", "k#0", " ", "two words", "ключ", "\ud800", "\udfff", "z" * 64, "z" * 65, "y" * 90]
_ARGUMENTS = ["", "{}", "[]", "null", '{"path": "a.py"}', '{"path": "a', "NaN", '{"x": "测试"}', "[" * 5_000]

# Each strategy is made once: hypothesis checks every new one, and that takes longer than drawing from it.
_TEXT = st.sampled_from(_TEXTS) | st.text(_ANY_CHARACTER, max_size=12)
_ID = st.sampled_from(_IDS) | st.text(_ANY_CHARACTER, max_size=4)
_CALL = st.builds(ToolCall, _ID, st.sampled_from(["read_file", ""]), st.sampled_from(_ARGUMENTS))
_CALLS = st.lists(_CALL, min_size=1, max_size=3)
_EXTRAS = st.sampled_from(
    [
        *[{}] * 6,
        {"images": (PICTURE, PICTURE)},
        {"reasoning": "hm, 🤔"},
        {"opaque": (Opaque("somebody", {"signature": "s"}),)},
        {"tool_calls": (ToolCall("a", "read_file"),)},
        {"is_error": True, "images": (PICTURE,)},
    ]
)
"""What else a message may carry, whether it belongs to its role or not."""

_ROLE = st.sampled_from(["system", "user", "assistant", "tool"])
_MESSAGE = st.builds(lambda role, text, i, more: Message(role, text, tool_call_id=i, **more), _ROLE, _TEXT, _ID, _EXTRAS)
_OTHERS = st.lists(st.tuples(st.integers(0, 4), _MESSAGE), max_size=2)
_CAME = st.lists(st.tuples(st.integers(0, 2), _TEXT), max_size=4)


def any_text() -> st.SearchStrategy[str]:
    """Return any text: empty, blank, in any script, with halves of surrogate pairs."""
    return _TEXT


def any_id() -> st.SearchStrategy[str]:
    """Return any id of a call: often one that was used already, often one that some API refuses."""
    return _ID


@st.composite
def any_batch(draw: st.DrawFn) -> list[Message]:
    """Return a message with calls and what came back: results missing, doubled, in any order, with others between them."""
    calls = draw(_CALLS)
    results = [tool_result(calls[n % len(calls)].id, text) for n, text in draw(_CAME)]
    for place, other in draw(_OTHERS):
        results.insert(place, other)
    return [assistant(draw(_TEXT), *calls), *results]


_PARTS = st.lists(_MESSAGE.map(lambda m: [m]) | any_batch(), max_size=6)
_SHIFT = st.sampled_from([None, 1, 3])


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """Return ANY list of messages, whatever its order; some have ids already, no message id occurs twice."""
    messages = [m for part in draw(_PARTS) for m in part]
    # Ids of the kind that the log gives by itself, at other places than it would.
    shift = draw(_SHIFT)
    if shift is None:
        return messages
    return [replace(m, id=f"m{i + shift}") if i % 2 else m for i, m in enumerate(messages)]


_SAID = st.sampled_from(
    [
        "Read a.py and say what it does.",
        "现在改 b.py,别动测试",
        "🔥 it fails again: naïve parsing",
        "def f(x):\n    return x\n" * 10,
        "Tidy up the module. " * 20,
        "错误:连接失败 " * 30,
    ]
)
_SOMETIMES_SAID = st.just("") | _SAID
_SYSTEM = st.lists(_SAID, max_size=2)
_IMAGES = st.sampled_from([(), (), (PICTURE,)])
# A turn: the question, the rounds (a text, whether there is reasoning, the results), the answer.
_ROUND = st.tuples(_SOMETIMES_SAID, st.booleans(), st.lists(_SAID, min_size=1, max_size=3))
_TURN = st.tuples(_SAID, _IMAGES, st.lists(_ROUND, max_size=3), _SAID)


@st.composite
def conversations(draw: st.DrawFn, min_turns: int = 1, max_turns: int = 5) -> list[Message]:
    """Return a well-formed agent history: system prompt, turns of whole rounds; the last turn may still be running."""
    messages = [system(text) for text in draw(_SYSTEM)]
    number = 0
    for question, images, rounds, answer in draw(st.lists(_TURN, min_size=min_turns, max_size=max_turns)):
        messages.append(user(question, *images))
        for text, thinks, results in rounds:
            calls = [ToolCall(f"call_{number + n}", "read_file", '{"path": "a.py"}') for n in range(len(results))]
            number += len(calls)
            messages.append(replace(assistant(text, *calls), reasoning="first read it" if thinks else ""))
            messages += [tool_result(c.id, result, is_error=thinks) for c, result in zip(calls, results, strict=True)]
        messages.append(assistant(answer))
    return messages if draw(st.booleans()) else messages[:-1]
