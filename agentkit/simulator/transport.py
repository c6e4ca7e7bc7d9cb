"""The simulator as an httpx transport: the real provider client talks to it in process, with no socket."""

from __future__ import annotations

from collections.abc import Iterator

import httpx

from agentkit.simulator.core import Simulator


class _Chunks(httpx.SyncByteStream):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._chunks
        except ConnectionResetError as error:
            raise httpx.RemoteProtocolError(str(error)) from None


class SimulatorTransport(httpx.BaseTransport):
    """Hand every request to `simulator` instead of the network."""

    def __init__(self, simulator: Simulator) -> None:
        self.simulator = simulator

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer `request` in process."""
        answer = self.simulator.handle(request.method, request.url.path, request.headers, request.read())
        return httpx.Response(answer.status, headers=answer.headers, stream=_Chunks(answer.chunks), request=request)
