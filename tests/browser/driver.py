"""JupyterLab in the system's Chromium: start it as `agentkit lab` does, open a notebook, run it, use its panel."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab_support import environment, status, wait_until

from agentkit import lab

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",  # a container's root may not use one; every page here is our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE = 90_000
"""Milliseconds to wait for something in the page, on a machine that runs other tests at the same time."""

_HOME = re.compile(r"(?:https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:")

# What a reader sees change in a panel: its pictures, and its lines of at least five words. A slider's own number and label
# do not count: they change in the browser, before the kernel has been asked.
_SEEN = """root => ({
  pictures: [...root.querySelectorAll("svg, img")].map(p => p.outerHTML).join(),
  sentences: root.innerText.split("\\n").filter(line => line.trim().split(/\\s+/).length >= 5),
})"""
_WATCH = f"""root => {{
  window.latencies = [];
  if (root.watched) return;
  root.watched = true;
  const seen = () => JSON.stringify(({_SEEN})(root));
  let before = "", pressed = null;
  document.addEventListener("keydown", () => {{ before = seen(); pressed = performance.now(); }}, true);
  new MutationObserver(() => {{
    if (pressed === null || seen() === before) return;
    window.latencies.push(performance.now() - pressed);
    pressed = null;
  }}).observe(root, {{subtree: true, childList: true, characterData: true, attributes: true}});
}}"""


def find_browser() -> str | None:
    """Return the path of Chromium or Chrome, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


class Server:
    """JupyterLab on a folder of notebooks, with `agentkit lab`'s own arguments and settings."""

    def __init__(self, book: Path, folder: Path) -> None:
        self.book, self.port, self.token = book, lab.free_port(0), secrets.token_hex(16)
        settings = folder / "settings"
        settings.mkdir()
        command = lab.arguments(book, self.port, False, lab.quiet_settings(settings))
        self._log = folder / "jupyterlab.log"
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                command, env=environment(folder) | {"JUPYTER_TOKEN": self.token}, stdout=log, stderr=log
            )

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def wait(self) -> None:
        wait_until(lambda: status(self.url("api/status")) == 200 or self._process.poll() is not None, self.log)

    def kernel_is_idle(self) -> bool:
        """Say whether there is a kernel, connected to the page and with nothing to do."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(self.url("api/kernels"), timeout=10) as response:
                kernels = json.load(response)
        except OSError:
            return False  # while a kernel starts the server answers 500 now and then
        return bool(kernels) and all(k["execution_state"] == "idle" and k["connections"] for k in kernels)

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)


@contextlib.contextmanager
def serving(book: Path, folder: Path) -> Iterator[Server]:
    """Run JupyterLab for the notebooks in `book`; it writes only into `folder`."""
    server = Server(book, folder)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


class Lab:
    """One page of JupyterLab, and what went wrong in it."""

    def __init__(self, page: Any, server: Server) -> None:
        self.page, self.server = page, server
        self.errors: list[str] = []
        self.abroad: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self._note(request.url))
        page.on("websocket", lambda socket: self._note(socket.url))
        # A run that is asked for before the kernel is there opens this dialog.
        select = page.locator(".jp-Dialog button", has_text="Select")
        page.add_locator_handler(select, lambda button: button.click())

    def _note(self, url: str) -> None:
        if not _HOME.match(url):
            self.abroad.append(url)

    def open(self, notebook: str) -> None:
        """Open `notebook` and wait until its kernel is ready."""
        self.page.goto(self.server.url(f"lab/tree/{notebook}") + "&reset")
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        # The toolbar says "idle" before there is a session; only the server knows.
        self.page.wait_for_function(
            "() => { const k = document.querySelector('.jp-KernelName'); return k && !/No Kernel/.test(k.innerText); }"
        )
        self._wait_for_kernel()

    def _wait_for_kernel(self) -> None:
        wait_until(self.server.kernel_is_idle, self.server.log)
        self.page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]")

    def menu(self, *names: str) -> None:
        """Choose a command from the menu bar, name by name."""
        bar = self.page.locator(".lm-MenuBar-itemLabel", has_text=re.compile(f"^{re.escape(names[0])}$"))
        bar.click()
        for name in names[1:]:
            self.page.locator(".lm-Menu-itemLabel:visible", has_text=re.compile(f"^{re.escape(name)}$")).last.click()

    def run_all(self) -> None:
        self.menu("Run", "Run All Cells")
        self.page.wait_for_timeout(500)  # until the first cell is on its way, the kernel is still idle
        self._wait_for_kernel()

    def save(self, notebook: str) -> dict[str, Any]:
        """Save the open notebook and return what is in its file."""
        path = self.server.book / notebook
        before = path.stat().st_mtime_ns
        self.menu("File", "Save Notebook")
        wait_until(lambda: path.stat().st_mtime_ns > before, self.server.log)
        self.page.wait_for_timeout(500)  # the file is being written
        return json.loads(path.read_text(encoding="utf-8"))

    def slider(self, label: str) -> Any:
        """Return the part of the slider with that label which takes the keyboard; it is scrolled into view."""
        native = self.page.get_by_role("slider", name=label, exact=True)
        widget = self.page.locator(".widget-hslider, .widget-slider", has=self.page.get_by_text(label, exact=True))
        found = widget.locator(".noUi-handle").or_(native).first
        self._scroll_to(found)
        return found

    def _scroll_to(self, wanted: Any) -> None:
        """Turn the wheel until `wanted` is there: JupyterLab keeps only the cells near the view in the page."""
        self.page.locator(".jp-Notebook").first.hover()
        self.page.mouse.wheel(0, -100_000)
        for _ in range(200):
            self.page.wait_for_timeout(100)
            if wanted.count():
                wanted.scroll_into_view_if_needed()
                return
            self.page.mouse.wheel(0, 500)
        raise AssertionError(f"not in the notebook: {wanted}\n{self.page.inner_text('body')[-2000:]}")

    def panel(self, control: Any) -> Panel:
        return Panel(self.page, self.page.locator(".jp-OutputArea-child", has=control).last)

    def theme(self, name: str) -> None:
        """Change to the theme `name` ("JupyterLab Light", "JupyterLab Dark")."""
        self.menu("Settings", "Theme", name)
        light = "false" if "Dark" in name else "true"
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{light}'")
        self.page.keyboard.press("Escape")
        self.page.wait_for_timeout(500)


class Panel:
    """A panel in the page: its pictures, its sentences, and how fast they follow a key."""

    def __init__(self, page: Any, root: Any) -> None:
        self.page, self.root = page, root

    def pictures(self) -> str:
        """Return the pictures of the panel as they stand in the page."""
        return self.root.evaluate(_SEEN)["pictures"]

    def sentences(self) -> list[str]:
        """Return the lines of the panel that are more than a label."""
        return self.root.evaluate(_SEEN)["sentences"]

    def watch(self) -> None:
        """Start to measure latencies."""
        self.root.evaluate(_WATCH)

    def press(self, key: str) -> float:
        """Press `key` and return the milliseconds until the panel looked different. Raises on none within the time."""
        count = self.page.evaluate("window.latencies.length")
        self.page.keyboard.press(key)
        self.page.wait_for_function(f"() => window.latencies.length > {count}", timeout=20_000, polling=10)
        self.page.wait_for_timeout(150)  # let the rest of this redraw arrive before the next key
        return self.page.evaluate("window.latencies.at(-1)")
