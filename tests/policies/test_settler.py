"""A settler that remembers gives what `settle` gives, however the list changes between two calls."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import conversations, histories

from agentkit.messages import Message, ToolCall, assistant, tool_result, user
from agentkit.settle import Settler, settle


@settings(max_examples=150, deadline=None)
@given(lists=st.lists(histories() | conversations(), min_size=2, max_size=4), data=st.data())
def test_it_gives_what_settle_gives(lists: list[list[Message]], data: st.DataObject) -> None:
    settler, now = Settler(), list[Message]()
    for messages in lists:
        keep = data.draw(st.integers(0, len(now)))
        now = now[:keep] + messages
        for size in sorted({data.draw(st.integers(0, len(now))), len(now)}):
            assert settler.settle(now[:size]) == settle(now[:size])


def test_what_did_not_change_is_the_same_object() -> None:
    settler = Settler()
    call = ToolCall("not a wire id", "read_file")
    messages = [user("a"), assistant("", call), tool_result(call.id, ""), assistant("b"), user("c")]
    first = settler.settle(messages)
    second = settler.settle([*messages, assistant("d"), user("e")])
    assert all(a is b for a, b in zip(first[:3], second[:3], strict=True)) and second[:5] == first
