"""The simulator over loopback HTTP, for any other client."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from agentkit.simulator.core import Answer, Simulator

_LARGEST_BODY = 64 * 1024 * 1024


class Handles(Protocol):
    """Whatever answers HTTP requests: a simulator, or two."""

    def handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer one request."""
        ...


class BothDialects:
    """Two simulators at one address: who asks for messages, or says Anthropic's version, gets the second."""

    def __init__(self, chat: Simulator, messages: Simulator) -> None:
        self.chat, self.messages = chat, messages

    def handle(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Answer one request by the rules of its dialect."""
        wants_messages = "/messages" in path or any(name.lower() == "anthropic-version" for name in headers)
        return (self.messages if wants_messages else self.chat).handle(method, path, headers, body)


class Server:
    """Serve `simulator` on 127.0.0.1; `port` 0 takes a free one. Use it as a context manager.

    `url` is the base address for an OpenAI client, `root` for one of Anthropic's. Nothing off this machine can reach it.
    Raises `OSError` when the port is taken.
    """

    def __init__(self, simulator: Handles, port: int = 0) -> None:
        handler = type("Handler", (_Handler,), {"simulator": simulator})
        self._http = _Quiet(("127.0.0.1", port), handler)
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self.root = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.root}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving and give the port back."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(timeout=5)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client hangs up, which is its right; anything else is a fault of this program."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    simulator: Handles
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def log_message(self, *args: object) -> None:
        """Log nothing: a log line could hold what the client sent."""

    def do_GET(self) -> None:
        self._respond("GET", b"")

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        if length > _LARGEST_BODY:
            self.send_error(413)
            return
        self._respond("POST", self.rfile.read(length))

    def _respond(self, method: str, body: bytes) -> None:
        answer = self.simulator.handle(method, self.path, dict(self.headers), body)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self._write(answer.chunks)
        except (ConnectionResetError, BrokenPipeError):
            # A cut line: no closing chunk, and the connection ends here.
            self.close_connection = True

    def _write(self, chunks: Iterator[bytes]) -> None:
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
