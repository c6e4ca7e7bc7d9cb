"""Chapter 00 in a real browser: the lab opens, everything runs, the panel answers the keyboard."""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentkit import lab
from agentkit.scenarios import course_workspace

from .driver import FLAGS, Lab, Panel, find_browser, serving

pytestmark = pytest.mark.browser

CHAPTERS = course_workspace().parent
PRESSES = 3
"""The slider starts at 4 and ends at 1."""


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
    """Chapter 00 of a copy of the book, open in JupyterLab, all cells run."""
    folder = tmp_path_factory.mktemp("lab")
    book = folder / "chapters"
    shutil.copytree(CHAPTERS, book, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    with serving(book, folder) as server:
        opened = Lab(page, server)
        opened.open(lab.FIRST)
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
def strip(opened: Lab) -> Panel:
    """The strip's panel, with the keyboard on the slider `Messages kept`."""
    slider = opened.slider("Messages kept")
    panel = opened.panel(slider)
    slider.focus()
    return panel


def test_all_cells_run_and_say_nothing_on_stderr(opened: Lab) -> None:
    """Read from the saved file: the page holds only the cells near the view."""
    cells = [cell for cell in opened.save(lab.FIRST)["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5
    assert [cell["source"] for cell in cells if cell["execution_count"] is None] == []
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"] == []


def test_the_panel_answers_the_keyboard(strip: Panel, shots: Path) -> None:
    """Keys to the left change picture and sentence, as many to the right bring both back."""
    before = strip.pictures(), strip.sentences()
    assert before[0] and before[1], "a panel has a picture and a sentence"
    strip.watch()
    there = [strip.press("ArrowLeft") for _ in range(PRESSES)]
    assert strip.pictures() != before[0]
    assert strip.sentences() != before[1]
    back = [strip.press("ArrowRight") for _ in range(PRESSES)]
    assert (strip.pictures(), strip.sentences()) == before
    milliseconds = there + back
    seen = {"median": statistics.median(milliseconds), "min": min(milliseconds), "max": max(milliseconds)}
    print("from key to page, ms:", json.dumps({name: round(value, 1) for name, value in seen.items()}))
    (shots / "latency.json").write_text(json.dumps(seen), encoding="utf-8")


def test_every_picture_in_the_panel_has_a_text(strip: Panel) -> None:
    bare = "r => [...r.querySelectorAll('svg, img')].filter(p => !(p.alt || p.getAttribute('aria-label')\
 || p.querySelector(':scope > title') || p.getAttribute('aria-hidden'))).length"
    assert strip.root.evaluate(bare) == 0


def test_screenshots_in_both_themes(opened: Lab, strip: Panel, shots: Path) -> None:
    for name in ("JupyterLab Dark", "JupyterLab Light"):
        opened.theme(name)
        strip.root.scroll_into_view_if_needed()
        path = shots / f"{name.split()[-1].lower()}.png"
        opened.page.screenshot(path=path)
        assert path.stat().st_size > 10_000


def test_nothing_went_wrong_and_nothing_left_the_machine(opened: Lab) -> None:
    """The last test of the file: it looks back on the whole visit."""
    assert opened.errors == []
    assert opened.abroad == []
    assert "Jupyter news" not in opened.page.inner_text("body")
