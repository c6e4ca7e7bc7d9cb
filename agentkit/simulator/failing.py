"""What each fault does to a request: refuse it, answer it wrongly, bill it wrongly, break off the stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentkit.messages import FinishReason, Message, Reply, Request, ToolCall, Usage, assistant
from agentkit.settle import settle
from agentkit.simulator.api import Api, Refused
from agentkit.simulator.counter import Counter
from agentkit.simulator.faults import Fault
from agentkit.simulator.profiles import Profile
from agentkit.simulator.summariser import is_summary_call


def refuse(fault: Fault | None) -> None:
    """Raise `Refused` for a fault that no request gets past."""
    if fault and fault.kind == "rate_limit":
        text = f"Rate limit reached. Please try again in {fault.seconds:g}s."
        raise Refused(429, text, type="tokens", code="rate_limit_exceeded", retry_after=fault.seconds)
    if fault and fault.kind == "overloaded":
        raise Refused(503, "The engine is currently overloaded, please try again later.", type="server_error")
    if fault and fault.kind == "server_error":
        raise Refused(500, "The server had an error while processing your request.", type="server_error")


def overflow(
    fault: Fault | None, api: Api, profile: Profile, counter: Counter, prompt: int, request: Request
) -> Refused | None:
    """Return the refusal of a server of the same kind whose window is smaller than the prompt."""
    if fault is None or fault.kind not in ("overflow", "overflow_in_stream"):
        return None
    narrow = type(api)(replace(profile, window=fault.window or max(1, prompt * 3 // 4)), counter)  # type: ignore[call-arg]
    try:
        narrow.room(prompt, request)
    except Refused as refused:
        return refused
    return None


def read(fault: Fault | None, request: Request) -> Request:
    """Return what the model gets to see: all of it, or what a server leaves that drops the oldest and says nothing."""
    if fault is None or fault.kind != "silent_truncation":
        return request
    system = [m for m in request.messages if m.role == "system"]
    others = [m for m in request.messages if m.role != "system"]
    kept = others[len(others) * 2 // 3 :]
    return replace(request, messages=settle([*system, *kept]) if kept else request.messages)


def faulty_summary(fault: Fault | None, request: Request) -> Message | Reply | None:
    """Return the answer of a summary call that goes wrong."""
    if fault is None or not is_summary_call(request):
        return None
    if fault.kind == "empty_summary":
        return assistant(" \n")
    if fault.kind == "long_summary":
        return assistant(request.messages[-1].content * 5)
    if fault.kind == "tool_call_summary":
        return assistant("", ToolCall("call_summary", "read_file", "{}"))
    return Reply(assistant("goal: to"), finish="length") if fault.kind == "cut_summary" else None


def stopped(fault: Fault | None, message: Message, finish: FinishReason) -> tuple[Message, FinishReason]:
    """Return the answer as a full window leaves it: nothing, or its first half and no call."""
    if fault and fault.kind == "overflow_stop":
        return assistant(""), "overflow"
    if fault and fault.kind == "cut_by_window":
        words = (message.content or "I was going to").split(" ")
        return replace(message, content=" ".join(words[: max(1, len(words) // 2)]), tool_calls=()), "overflow"
    return message, finish


def shown(fault: Fault | None, usage: Usage) -> Usage | None:
    """Return the bill that is sent, None where the fault keeps it back."""
    kind = fault.kind if fault else None
    if kind == "wrong_usage":
        return replace(usage, fresh=usage.fresh * 3, cache_write=usage.cache_write * 3)
    if kind == "silent_truncation":
        return Usage(fresh=usage.prompt // 3, output=usage.output, reasoning=usage.reasoning)
    return None if kind == "no_usage" else usage


def stream(fault: Fault | None, events: list[bytes], api: Api) -> Iterator[bytes]:
    """Yield the events of an answer, up to where the fault breaks it off."""
    kind = fault.kind if fault else None
    for i, event in enumerate(events):
        if i == max(2, len(events) // 2) and kind == "cut_stream":
            raise ConnectionResetError("the line was cut")
        if i == max(2, len(events) // 2) and kind == "error_in_stream":
            yield api.broken_off(Refused(503, "The server is overloaded.", type="overloaded_error"))
            return
        yield event
    yield from api.end()
