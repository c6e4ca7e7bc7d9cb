"""The context lab in a real browser: keys, buttons, rows, themes, the projector, 500 requests, and no kernel to step."""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

from agentkit.demos.plans import Plan
from agentkit.demos.running import play
from agentkit.scenarios import course_workspace

from .driver import FLAGS, Lab, Panel, find_browser, serving

pytestmark = pytest.mark.browser

NOTEBOOK = "lab.ipynb"
CHAPTERS = course_workspace().parent
PRESSES = 3
MANY = """
from agentkit import messages as m, panels
from agentkit.events import Billed

said, bills = [m.system("You are an agent.")], []
for number in range(1, 501):
    said += [m.user(f"question {number}"), m.assistant("answer " * 20)]
    prompt, read = 200 * number, 0 if number % 100 == 0 else 190 * number
    usage = m.Usage(prompt - read, read, 0, 9)
    bills.append(Billed(number, m.Request(tuple(said)), prompt, usage, m.assistant("answer"), "stop"))
panels.live_strip(bills, title="Five hundred requests")
"""
"""A cell that the book does not have: more requests than there is room for rows."""


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of the system's Chromium; skipped with the reason where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = find_browser()
    if chromium is None:
        pytest.skip("no Chromium on this machine; install it with the system's package manager")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser.new_page(viewport={"width": 1280, "height": 1000})
        browser.close()


@pytest.fixture(scope="module")
def opened(page: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The lab of a copy of the book with one cell more, open in JupyterLab, all cells run."""
    folder = tmp_path_factory.mktemp("lab")
    book = folder / "chapters"
    shutil.copytree(CHAPTERS, book, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    notebook = nbformat.read(book / NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(MANY.strip(), id="many"))
    nbformat.write(notebook, book / NOTEBOOK)
    with serving(book, folder) as server:
        opened = Lab(page, server)
        opened.open(NOTEBOOK)
        opened.run_all()
        yield opened


@pytest.fixture(scope="module")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the screenshots go: the folder in AGENTKIT_SHOTS, else one that pytest throws away."""
    chosen = os.environ.get("AGENTKIT_SHOTS")
    folder = Path(chosen) if chosen else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def panel(opened: Lab) -> Panel:
    """The lab's panel, with the keyboard on its slider `Step`, at the last step."""
    opened.slider("Messages kept")  # only the lab has it, so its cell is in the page now
    root = opened.page.locator(".jp-OutputArea-child", has=opened.page.locator(".ak-lab-settings")).last
    stepper = root.get_by_role("slider", name="Step", exact=True)
    stepper.focus()
    opened.page.keyboard.press("End")
    return Panel(opened.page, root)


def said(panel: Panel) -> list[str]:
    """Return what the two sides say."""
    return panel.root.locator(".ak-status").all_inner_texts()


def press_and_tell(panel: Panel, keys: list[str], what: str, shots: Path) -> list[float]:
    panel.watch()
    times = [panel.press(key) for key in keys]
    seen = {"median": statistics.median(times), "min": min(times), "max": max(times)}
    print(f"\n{what}, from key to page, ms:", json.dumps({name: round(value, 1) for name, value in seen.items()}))
    (shots / f"latency-{what.replace(' ', '-')}.json").write_text(json.dumps(seen), encoding="utf-8")
    return times


def test_all_cells_run_and_say_nothing_on_stderr(opened: Lab) -> None:
    cells = [cell for cell in opened.save(NOTEBOOK)["cells"] if cell["cell_type"] == "code"]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [cell["source"] for cell in cells if cell["execution_count"] is None] == []
    assert [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"] == []


def test_keys_step_both_sides_there_and_back(panel: Panel, shots: Path) -> None:
    before = said(panel)
    assert len(before) == 2 and all(text.startswith("Request 6 of 6") for text in before)
    press_and_tell(panel, ["ArrowLeft"] * PRESSES, "step", shots)
    assert all(text.startswith("Request 3 of 6") for text in said(panel))
    press_and_tell(panel, ["ArrowRight"] * PRESSES, "step back", shots)
    assert said(panel) == before


def test_the_buttons_work_from_the_keyboard(panel: Panel) -> None:
    def push(name: str) -> list[str]:
        panel.root.get_by_role("button", name=name, exact=True).focus()
        panel.page.keyboard.press("Enter")
        panel.page.wait_for_timeout(200)
        return said(panel)

    assert push("Reset") == ["Nothing has been sent yet."] * 2
    assert all(text.startswith("Request 1 of 6") for text in push("Step"))
    push("Run to next event")
    panel.page.wait_for_function("() => document.querySelector('.ak-place').innerText === '6 of 6'", timeout=20_000)
    assert "no longer in the context" in said(panel)[1]
    push("Reset")
    push("Run")
    panel.page.wait_for_function("() => document.querySelector('.ak-place').innerText === '2 of 6'", timeout=20_000)
    stopped = push("Stop")
    panel.page.wait_for_timeout(1_500)
    assert said(panel) == stopped and not stopped[0].startswith("Request 6")


def test_a_setting_is_answered_and_elements_are_kept(panel: Panel, opened: Lab, shots: Path) -> None:
    """A piece that stays keeps its element, so that the style sheet can move it."""
    first = panel.root.locator(".ak-side").last.locator(".ak-piece").first
    first.evaluate("node => { node.marked = true; }")
    opened.slider("Messages kept").focus()
    opened.page.wait_for_timeout(3_000)  # the panel makes the neighbouring runs ahead
    before = said(panel)
    press_and_tell(panel, ["ArrowLeft"] * PRESSES, "setting", shots)
    assert "2 summary calls" in said(panel)[1] and "2 summary calls" not in before[1]
    assert first.evaluate("node => node.marked === true")
    press_and_tell(panel, ["ArrowRight"] * PRESSES, "setting back", shots)
    assert said(panel) == before


def test_rows_and_blocks_from_the_keyboard(panel: Panel) -> None:
    rows = panel.root.get_by_role("listbox").last
    rows.focus()
    keys = panel.page.keyboard
    keys.press("Home")
    bill = play(Plan()).bills[0].usage
    assert said(panel)[1].startswith(f"Request 1: {bill.prompt:,} prompt tokens: 0 read from the cache")
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    assert "tools: " in said(panel)[1] and "read_file" in said(panel)[1] and "cache read" in said(panel)[1]
    tip = panel.root.locator(".ak-tip")
    assert tip.is_visible() and tip.inner_text() == said(panel)[1]
    keys.press("Escape")
    assert not tip.is_visible() and said(panel)[1].startswith("Request 2:")
    chosen = rows.get_attribute("aria-activedescendant")
    assert rows.locator(f"#{chosen}").get_attribute("aria-selected") == "true"


def test_pointing_at_a_block_explains_it(panel: Panel) -> None:
    block = panel.root.locator(".ak-side").first.locator(".ak-piece", has_text="result").first
    block.hover()
    assert "result m" in panel.root.locator(".ak-tip").inner_text()


def test_projector_mode_is_large_and_high_in_contrast(panel: Panel, opened: Lab, shots: Path) -> None:
    box = panel.root.get_by_role("checkbox", name="Projector mode")
    box.check()
    strip = panel.root.locator(".ak-strip")
    look = "n => { const s = getComputedStyle(n); return [parseFloat(s.fontSize), s.color, s.backgroundColor]; }"
    opened.page.wait_for_function("() => document.querySelector('.ak-strip').classList.contains('ak-large')")
    black, white = "rgb(0, 0, 0)", "rgb(255, 255, 255)"
    for theme, colours in (("Dark", [white, black]), ("Light", [black, white])):
        opened.theme(f"JupyterLab {theme}")
        size, *pair = strip.evaluate(look)
        assert size >= 18 and pair == colours
        strip.scroll_into_view_if_needed()
        opened.page.screenshot(path=shots / f"lab-projector-{theme.lower()}.png")
    box.uncheck()
    opened.page.wait_for_function("() => !document.querySelector('.ak-strip').classList.contains('ak-large')")


def test_screenshots_in_both_themes(panel: Panel, opened: Lab, shots: Path) -> None:
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        opened.theme(name)
        panel.root.scroll_into_view_if_needed()
        path = shots / f"lab-{name.split()[-1].lower()}.png"
        opened.page.screenshot(path=path)
        assert path.stat().st_size > 10_000


def test_five_hundred_requests_are_grouped_and_it_says_so(opened: Lab, shots: Path) -> None:
    rows = opened.page.get_by_role("listbox", name="Five hundred requests")
    opened._scroll_to(rows)
    root = opened.panel(rows)
    note = root.root.locator(".ak-note", has_text="Each row stands for up to 13 requests")
    note.wait_for()  # JupyterLab is still placing the cells that came into view
    note.scroll_into_view_if_needed()
    assert 20 <= root.root.locator(".ak-rows > .ak-row").count() <= 40
    root.root.get_by_role("slider", name="Step", exact=True).focus()
    press_and_tell(root, ["ArrowLeft", "ArrowLeft", "ArrowRight", "Home", "End"], "step of 500", shots)
    assert "Request 500: 100,000 prompt tokens" in root.root.inner_text()
    opened.page.screenshot(path=shots / "strip-500.png")


def test_without_a_kernel_it_still_steps(panel: Panel, opened: Lab, shots: Path) -> None:
    opened.menu("Kernel", "Shut Down Kernel")
    opened.page.wait_for_function("() => /No Kernel/.test(document.querySelector('.jp-KernelName').innerText)")
    panel.root.get_by_role("slider", name="Step", exact=True).focus()
    press_and_tell(panel, ["Home", "ArrowRight", "ArrowRight"], "step without kernel", shots)
    assert all(text.startswith("Request 2 of 6") for text in said(panel))


def test_nothing_went_wrong_and_nothing_left_the_machine(opened: Lab) -> None:
    """The last test of the file: it looks back on the whole visit."""
    assert opened.errors == []
    assert opened.abroad == []
