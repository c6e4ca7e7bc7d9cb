"""The simulator over loopback HTTP, for any other client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agentkit.simulator.core import Simulator

_LARGEST_BODY = 64 * 1024 * 1024


class Server:
    """Serve `simulator` on 127.0.0.1; `port` 0 takes a free one. Use it as a context manager.

    `url` is the base address for an OpenAI client. Nothing off this machine can reach it.
    """

    def __init__(self, simulator: Simulator, port: int = 0) -> None:
        handler = type("Handler", (_Handler,), {"simulator": simulator})
        self._http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}/v1"
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


class _Handler(BaseHTTPRequestHandler):
    simulator: Simulator
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
