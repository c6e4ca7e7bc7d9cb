"""The connection to a server: the key, the client, the proxy settings, and what a fault of the network means."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping, Sequence

import httpx

from agentkit.providers.base import ProviderError
from agentkit.providers.errors import Caller

TIMEOUT = httpx.Timeout(300, connect=10)
"""Seconds. A model that thinks can be silent for minutes; a server that does not answer the phone is not there."""

_PROXY_NAMES = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY")
_CERTIFICATE_NAMES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


class _Borrowed(httpx.BaseTransport):
    """Somebody else's transport: the client that borrows it for one call must not close it."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._transport.handle_request(request)


def open_client(url: httpx.URL, transport: httpx.BaseTransport | None, timeout: httpx.Timeout) -> httpx.Client:
    """Make a client for one call. A client per call can be used from any thread and holds no stale connection.

    The environment (proxies, certificates) counts only for a real connection to another machine. Raises
    `ProviderError` (`configuration`) that names the variable when it cannot be used.
    """
    if transport is not None:
        return httpx.Client(transport=_Borrowed(transport), trust_env=False, timeout=timeout)
    try:
        return httpx.Client(trust_env=not is_loopback(url.host), timeout=timeout)
    except (ImportError, ValueError, OSError, httpx.InvalidURL) as fault:
        raise ProviderError(_bad_environment(fault), kind="configuration") from None


def server_url(base_url: str) -> httpx.URL:
    """Check `base_url` and return it without its last slash. Raises `ProviderError` (`configuration`)."""
    try:
        url = httpx.URL(base_url.strip().rstrip("/"))
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        text = "base_url is not a web address; it must look like https://api.openai.com/v1 or http://127.0.0.1:8080/v1"
        raise ProviderError(text, kind="configuration")
    return url


def is_loopback(host: str) -> bool:
    """Tell whether `host` is this machine, where no key is needed and no proxy stands in between."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def find_key(given: str | None, names: Sequence[str], *, needed: bool) -> str:
    """Return the key: the one `given`, else the first of the environment variables `names`, else an empty text.

    Raises `ProviderError` (`authentication`) when one is `needed` and there is none, and (`configuration`) when it
    cannot be sent. Neither shows the key.
    """
    places = {"api_key": given, **{name: os.environ.get(name) for name in names}}
    for place, value in places.items():
        if key := (value or "").strip():
            if not (key.isascii() and key.isprintable() and " " not in key):
                text = f"the key in {place} has a space, a line break or a foreign character in it; copy it again"
                raise ProviderError(text, kind="configuration")
            return key
    if needed:
        text = f"no API key: set the environment variable {' or '.join(names)}, or use the simulator, which needs none"
        raise ProviderError(text, kind="authentication")
    return ""


def network_error(fault: Exception, caller: Caller) -> ProviderError:
    """Return the `ProviderError` for a fault of httpx: `unreachable`, `timeout` or `broken_stream`."""
    host, reason = caller.host, str(fault).strip() or type(fault).__name__
    if isinstance(fault, httpx.ConnectTimeout):
        return caller.error(f"no connection to {host} in time: is the address right, is the network up", "timeout")
    if isinstance(fault, httpx.TimeoutException):
        return caller.error(f"{host} stopped answering ({type(fault).__name__})", "timeout")
    if isinstance(fault, httpx.ProxyError):
        return caller.error(f"cannot reach {host} through the proxy in {_proxies_set()}: {reason}", "unreachable")
    if isinstance(fault, httpx.ConnectError):
        return caller.error(f"cannot reach {host}: {reason}", "unreachable")
    return caller.error(f"the connection to {host} broke: {reason}", "broken_stream")


def _bad_environment(fault: Exception) -> str:
    broken = [name for name, value in _proxy_settings().items() if not _usable(value)]
    if broken:
        return (
            f"the proxy in the environment variable {' and '.join(broken)} cannot be used; unset it, set it to an "
            "http:// address, or for socks5:// run: pip install 'httpx[socks]'"
        )
    names = [name for name in (*_CERTIFICATE_NAMES, *_PROXY_NAMES, "NO_PROXY") if _variable(name)]
    where = f"check the environment variables {', '.join(names)}" if names else "check the proxy settings of the system"
    return f"no connection can be made ({type(fault).__name__}); {where}"


def _usable(proxy: str) -> bool:
    try:
        httpx.HTTPTransport(proxy=proxy if "://" in proxy else f"http://{proxy}", verify=False).close()
    except (ImportError, ValueError, httpx.InvalidURL):
        return False
    return True


def _proxy_settings() -> Mapping[str, str]:
    found = (_variable(name) for name in _PROXY_NAMES)
    return {name: os.environ[name] for name in found if name}


def _proxies_set() -> str:
    return " or ".join(_proxy_settings()) or "the system's settings"


def _variable(name: str) -> str | None:
    """Return the variable's name as it is set, in capitals or not."""
    return next((n for n in (name, name.lower()) if os.environ.get(n)), None)
