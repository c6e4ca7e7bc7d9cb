"""Starting JupyterLab in a test: an environment of its own, and waiting for it."""

from __future__ import annotations

import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

LONG = 90
"""Seconds to wait for a server on a machine that runs other tests at the same time."""


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which Jupyter writes nothing outside `folder` and the user's own settings do not count."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR")
    names += ("JUPYTERLAB_WORKSPACES_DIR", "IPYTHONDIR")
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "JPY_")) and not k.lower().endswith("_proxy")
    }
    return kept | {name: str(folder / name.lower()) for name in names}


def status(url: str, seconds: float = 5) -> int | None:
    """Return the HTTP status of `url`, or None when nobody answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=seconds) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


def wait_until(what: Callable[[], object], message: Callable[[], str], seconds: float = LONG) -> None:
    """Wait until `what()` is true. Raises `TimeoutError` with `message()`."""
    end = time.monotonic() + seconds
    while not what():
        if time.monotonic() > end:
            raise TimeoutError(message())
        time.sleep(0.05)
