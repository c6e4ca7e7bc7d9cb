"""`agentkit serve`: the simulator over loopback HTTP, for any other client."""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from agentkit.simulator import KINDS, PROFILES, Fault, Simulator
from agentkit.simulator.server import BothDialects, Handles, Server

_ABOUT = (
    "Serve the simulator on 127.0.0.1 for any client of the OpenAI or the Anthropic API: no network, no account. Without "
    "--profile both APIs are there, by the rules of openai and of anthropic. The key is made anew each time and shown once."
)


def add_parsers(commands: Any) -> None:
    """Add `serve` to the parser's commands."""
    serve = commands.add_parser("serve", help="serve the simulator to other clients", description=_ABOUT)
    add = serve.add_argument
    add("--port", type=int, default=0, metavar="P", help="port on 127.0.0.1 (default: a free one)")
    add("--profile", choices=sorted(PROFILES), help="whose rules it plays (default: openai and anthropic)")
    add("--window", type=int, metavar="N", help="context window in tokens (default: the profile's)")
    add(
        "--fault",
        action="append",
        type=fault,
        default=[],
        metavar="KIND[:TIMES[:SECONDS]]",
        help=f"what goes wrong first, may be repeated: {', '.join(KINDS)}",
    )
    serve.set_defaults(handler=run_serve)


def fault(text: str) -> Fault:
    """Read `rate_limit`, `rate_limit:2` or `rate_limit:2:0.5`. Raises `argparse.ArgumentTypeError`, in one line."""
    kind, _, rest = text.partition(":")
    times, _, seconds = rest.partition(":")
    try:
        return Fault(kind, int(times or 1), float(seconds or 0))  # type: ignore[arg-type]
    except ValueError as error:
        reason = error if "unknown fault" in str(error) else "write KIND, KIND:TIMES or KIND:TIMES:SECONDS"
        raise argparse.ArgumentTypeError(f"{text!r}: {reason}") from None


def run_serve(options: argparse.Namespace, wait: Callable[[], object] | None = None) -> int:
    """Run `agentkit serve` until Ctrl-C. Raises `ValueError` with one line when it cannot start."""
    if options.window is not None and options.window < 1:
        raise ValueError(f"--window {options.window}: at least 1 token")
    key = secrets.token_urlsafe(24)
    simulators = _simulators(options, key)
    try:
        server = Server(_together(simulators), options.port)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or "a port is a number from 0 to 65535"
        raise ValueError(f"--port {options.port}: {reason}; leave it out to get a free one") from None
    with server:
        try:
            print("\n".join(_told(server, simulators, key)), flush=True)
            (wait or _for_ever)()
        except KeyboardInterrupt:
            print("\nstopped")
    return 0


def _simulators(options: argparse.Namespace, key: str) -> list[Simulator]:
    names = [options.profile] if options.profile else ["openai", "anthropic"]
    return [Simulator(name, window=options.window, faults=options.fault, key=key) for name in names]


def _together(simulators: Sequence[Simulator]) -> Handles:
    return simulators[0] if len(simulators) == 1 else BothDialects(simulators[0], simulators[1])


def _told(server: Server, simulators: Sequence[Simulator], key: str) -> list[str]:
    lines = [f"the simulator serves at {server.root}; only this machine can reach it; Ctrl-C ends it"]
    for simulator in simulators:
        is_messages = simulator.profile.dialect == "anthropic"
        api, base = ("Messages", server.root) if is_messages else ("Chat Completions", server.url)
        window = f"window {simulator.profile.window:,}"
        lines.append(f"  {api}: base_url {base}, model {simulator.profile.model}, {window}")
    return [*lines, f"  key, shown this once: {key}"]


def _for_ever() -> None:
    while True:
        time.sleep(0.5)  # a Ctrl-C that comes just before a long sleep would be noticed only after it
