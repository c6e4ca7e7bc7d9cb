"""The context lab, an instructor's panel: two policies on one conversation, step by step."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import ipywidgets as widgets

from agentkit.demos.plans import OWN, SCENARIOS, Plan, is_session
from agentkit.demos.running import Demo, play
from agentkit.demos.telling import price_lists, tell
from agentkit.figures.picture import Picture
from agentkit.figures.played import Side, as_data
from agentkit.panels.common import checkbox, dropdown, ratio_slider, slider
from agentkit.panels.strip_widget import StripWidget
from agentkit.policies import KeepEverything, SummariseMiddle
from agentkit.policies.registry import POLICIES
from agentkit.pricing import Prices
from agentkit.replay.run import OPEN_LOOP
from agentkit.simulator.profiles import PROFILES

_SCENARIO, _LEFT, _RIGHT, _KEEP, _THRESHOLD, _BUDGET, _PRICES, _RULES, _FILE, _LARGE = (
    "Scenario",
    "Policy on the left",
    "Policy on the right",
    "Messages kept",
    "Threshold",
    "Budget in tokens",
    "Prices",
    "Cache rule",
    "Your file",
    "Projector mode",
)
Pair = tuple[Plan, Plan]
"""What the left side runs, and the right one."""

TOKENS_ONLY = "tokens only"
BUDGETS = (1_000, 8_000, 200)
"""Tokens: the ends of the budget's slider, and its step."""

SESSION_BUDGETS = (20_000, 400_000, 20_000)
"""The same for a recorded session, which is larger than any conversation of the lab."""


def lab(scenario: str = "big file", *, warm: bool = True) -> Lab:
    """Return the panel with `scenario` on it.

    With `warm`, runs that the next move of a control would need are made ahead, in a thread of their own.
    Raises `ValueError` for a scenario that there is not.
    """
    if scenario not in SCENARIOS:
        raise ValueError(f"unknown scenario {scenario!r}; there are {', '.join(SCENARIOS)}")
    return Lab(scenario, warm)


class Lab(widgets.VBox):
    """Settings by their labels, and the two strips with their step control (`strip`)."""

    def __init__(self, scenario: str, warm: bool) -> None:
        self._busy, self._warmer = False, Warmer() if warm else None
        self._lists = price_lists()
        self.controls: dict[str, Any] = _controls(scenario, list(self._lists))
        self.note, self.strip = widgets.HTML(), StripWidget()
        settings = widgets.Box(list(self.controls.values()))
        settings.add_class("ak-lab-settings")
        super().__init__([widgets.HTML("<b>The context lab</b>"), settings, self.note, self.strip])
        self.controls[_SCENARIO].observe(self._preset, names="value")
        self.controls[_FILE].observe(self._resize, names="value")
        for control in self.controls.values():
            control.observe(self.redraw, names="value")
        self._fit(scenario)
        self.redraw()

    def plans(self) -> Pair:
        """Return what the two sides run."""
        common = Plan(
            scenario=self[_SCENARIO],
            keep=self[_KEEP],
            threshold=round(self[_THRESHOLD], 2),
            budget=self[_BUDGET],
            rules=self[_RULES],
            file=self[_FILE],
        )
        return replace(common, policy=self[_LEFT]), replace(common, policy=self[_RIGHT])

    def redraw(self, change: Any = None) -> None:
        """Show the present settings; runs that were made before come from memory."""
        if self._busy:
            return
        if self._warmer:
            self._warmer.stop()
        plans, model = self.plans(), self[_PRICES]
        made = drawn(plans, model, self._lists.get(model))
        self.demos: tuple[Demo, ...] = made.demos
        self.strip.show(made.sides, made.data)
        self.strip.large = self[_LARGE]
        (self.add_class if self[_LARGE] else self.remove_class)("ak-projector")
        self.note.value = f'<p role="status" aria-live="polite">{escape(self.remark)}</p>'
        if self._warmer:
            prices = (model, self._lists.get(model))
            self._warmer.start((pair, *prices) for pair in _neighbours(plans, self.controls))

    @property
    def remark(self) -> str:
        """Say what the scenario shows, what the settings come to, and whose prices they are."""
        rates, plan = self._lists.get(self[_PRICES]), self.plans()[0]
        said = rates.label() if rates else "No prices chosen: tokens only" if self._lists else _NO_PRICES
        kept = f"{plan.keep} message{'' if plan.keep == 1 else 's'} kept"
        due = f"{kept}, compaction due from an estimate of {int(plan.budget * plan.threshold):,} tokens."
        about = f"{OPEN_LOOP[0].upper()}{OPEN_LOOP[1:]}." if self._sessions() else SCENARIOS[plan.scenario].about
        return f"{about} {due} {said[0].upper()}{said[1:]}."

    @property
    def sentences(self) -> tuple[str, ...]:
        """Return what each side says at the present step."""
        return tuple(side["said"][self.strip.step][0] for side in self.strip.data["sides"])

    def still(self, side: int = 0) -> Picture:
        """Return one of the two strips for a notebook that shows no widgets. Raises `ValueError` when there is none."""
        if not self.demos[side].bills:
            raise ValueError(self.demos[side].problem)
        return self.strip.still(side)

    def __getitem__(self, label: str) -> Any:
        """Return the value of the control `label`."""
        return self.controls[label].value

    def __repr__(self) -> str:
        return (
            f"Lab: {self[_SCENARIO]}, {self[_LEFT]} and {self[_RIGHT]}, step {self.strip.step} of {self.strip.data['steps']}"
        )

    def _preset(self, change: Any) -> None:
        """Set the settings with which the chosen scenario shows something, as one change."""
        chosen = SCENARIOS[change.new]
        self._busy = True
        try:
            self._fit(change.new)
            for label, value in ((_KEEP, chosen.keep), (_THRESHOLD, chosen.threshold)):
                self.controls[label].value = value
            if not self._sessions():
                self.controls[_BUDGET].value = chosen.budget
        finally:
            self._busy = False

    def _resize(self, change: Any) -> None:
        self._busy = True
        try:
            self._fit(self[_SCENARIO])
        finally:
            self._busy = False

    def _sessions(self) -> bool:
        """Say whether a recorded session is replayed."""
        return self[_SCENARIO] == OWN and is_session(self[_FILE])

    def _fit(self, scenario: str) -> None:
        """Let the file be named where it is used, and the budget be as large as what is played."""
        self.controls[_FILE].disabled = scenario != OWN
        budget, (low, high, step) = self.controls[_BUDGET], SESSION_BUDGETS if self._sessions() else BUDGETS
        if (budget.min, budget.max) == (low, high):
            return
        with budget.hold_trait_notifications():
            budget.min, budget.max, budget.step = low, high, step
            budget.value = high // 4 if self._sessions() else SCENARIOS[scenario].budget


_NO_PRICES = "No price data is installed, so tokens only: pip install genai-prices"


def _controls(scenario: str, lists: list[str]) -> dict[str, Any]:
    chosen, policies = SCENARIOS[scenario], list(POLICIES)
    named = [(f"{model} (example prices)", model) for model in lists]
    path = widgets.Text(
        description=_FILE, placeholder="path of a text file or a session (.jsonl), then Enter", continuous_update=False
    )
    path.style.description_width, path.layout.max_width = "initial", "100%"
    controls = {
        _SCENARIO: dropdown(_SCENARIO, list(SCENARIOS), scenario),
        _FILE: path,
        _LEFT: dropdown(_LEFT, policies, KeepEverything.name),
        _RIGHT: dropdown(_RIGHT, policies, SummariseMiddle.name),
        _KEEP: slider(_KEEP, chosen.keep, 1, 12),
        _THRESHOLD: ratio_slider(_THRESHOLD, chosen.threshold, 0.1, 1.0),
        _BUDGET: slider(_BUDGET, chosen.budget, *BUDGETS),
        _RULES: dropdown(_RULES, list(PROFILES), "deepseek"),
        _PRICES: dropdown(_PRICES, [(TOKENS_ONLY, ""), *named], ""),
        _LARGE: checkbox(_LARGE, False),
    }
    for control in controls.values():
        control.layout.width = "370px"  # two beside each other in a notebook's column
    return controls


# ------------------------------------------------------------------------------------------------------------ made ahead


FIRST_PAUSE = 0.3
"""Seconds before the first run that is made ahead: the kernel shall first send what it has drawn."""


@dataclass(frozen=True)
class Drawn:
    """Two runs, and everything that the strips need to show them."""

    demos: tuple[Demo, ...]
    sides: list[Side]
    data: dict[str, Any]


MOST_DRAWN = 128
"""Pairs of runs that are kept ready; of a long session one takes about a megabyte."""

_ready: dict[tuple[int, int, str], Drawn] = {}


def drawn(plans: Pair, model: str, rates: Prices | None) -> Drawn:
    """Return what `plans` show at the prices of `model`; from memory if it was drawn before."""
    demos = tuple(play(plan) for plan in plans)
    # A run is remembered by `play`, and kept alive here: the same object is the same run.
    key = (id(demos[0]), id(demos[1]), model)
    if key not in _ready:
        sides = tell(demos, rates)
        _ready[key] = Drawn(demos, sides, as_data(sides))
        for old in list(_ready)[:-MOST_DRAWN]:
            _ready.pop(old, None)
    return _ready[key]


def _neighbours(plans: Pair, controls: dict[str, Any]) -> Iterator[Pair]:
    """Yield what one more key press would need, nearest first; then what another choice in the lists would."""
    left, right = plans
    for distance in (1, 2, 3):
        for label, name in ((_KEEP, "keep"), (_BUDGET, "budget"), (_THRESHOLD, "threshold")):
            control = controls[label]
            for value in (control.value - distance * control.step, control.value + distance * control.step):
                if control.min <= value <= control.max:
                    yield _both(plans, **{name: round(value, 2)})
    for policy in POLICIES:
        yield replace(left, policy=policy), right
        yield left, replace(right, policy=policy)
    yield from (_both(plans, rules=rules) for rules in PROFILES)
    for name, scenario in SCENARIOS.items():
        if name != OWN:
            preset = {"keep": scenario.keep, "threshold": scenario.threshold, "budget": scenario.budget}
            yield _both(plans, scenario=name, **preset)


def _both(plans: Pair, **changes: Any) -> Pair:
    return replace(plans[0], **changes), replace(plans[1], **changes)


Wanted = tuple[Pair, str, Prices | None]
"""Two plans, and the prices that they are told in."""


class Warmer:
    """Draws plans in a thread, so that a key press finds them in memory. A new start replaces the plans of the last."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def start(self, wanted: Iterator[Wanted]) -> None:
        """Draw one after the other, until all are drawn or `stop` is called."""
        self._stopped = threading.Event()
        threading.Thread(target=self._work, args=(wanted, self._stopped), daemon=True).start()

    def stop(self) -> None:
        """Stop after what is being drawn now."""
        self._stopped.set()

    @staticmethod
    def _work(wanted: Iterator[Wanted], stopped: threading.Event) -> None:
        pause = FIRST_PAUSE
        for plans, model, rates in wanted:
            if stopped.wait(pause):
                return
            drawn(plans, model, rates)
            pause = 0.02
