"""What all panels share: controls with full-word labels, one picture, one sentence that says the result.

A control is observed and sets the value of an HTML widget. Nothing is printed and nothing is displayed, so a panel works the
same in JupyterLab, in Voila and under a strict test. The HTML widget does not sanitise, so the SVG goes in as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import ipywidgets as widgets

from agentkit.figures.picture import Picture

Control = widgets.ValueWidget
_LABEL = {"description_width": "initial"}


@dataclass(frozen=True)
class View:
    """What a panel shows for its present settings: a picture (None: there is none), a sentence, and further HTML."""

    picture: Picture | None
    sentence: str
    more: str = ""


class Panel(widgets.VBox):
    """Controls by their labels, the picture, the sentence, and what stands under them.

    `draw` returns the view for the present values of the controls; it runs after every change.
    """

    def __init__(self, title: str, controls: Mapping[str, Control], draw: Callable[[Panel], View]) -> None:
        self.controls = dict(controls)
        self.picture, self.sentence, self.more = widgets.HTML(), widgets.HTML(), widgets.HTML()
        self._draw, self._busy = draw, False
        self.view = View(None, "")
        heading = widgets.HTML(f"<b>{escape(title)}</b>")
        super().__init__([heading, *self.controls.values(), self.picture, self.sentence, self.more])
        for control in self.controls.values():
            control.observe(self.redraw, names="value")
        self.redraw()

    def redraw(self, change: Any = None) -> None:
        """Draw again. A control that `draw` itself sets causes no second drawing."""
        if self._busy:
            return
        self._busy = True
        try:
            self.view = self._draw(self)
        finally:
            self._busy = False
        self.picture.value = self.view.picture.svg if self.view.picture else ""
        self.sentence.value = f'<p role="status" aria-live="polite">{escape(self.view.sentence)}</p>'
        self.more.value = self.view.more

    def still(self) -> Picture:
        """Return the present picture for a notebook that shows no widgets. Raises `ValueError` when there is none."""
        if self.view.picture is None:
            raise ValueError(self.view.sentence)
        return self.view.picture

    def __getitem__(self, label: str) -> Any:
        """Return the value of the control `label`."""
        return self.controls[label].value

    def __repr__(self) -> str:
        return f"Panel: {self.view.sentence}"


def slider(label: str, value: int, low: int, high: int, step: int = 1) -> widgets.IntSlider:
    """Return a slider of whole numbers."""
    return widgets.IntSlider(value, low, high, step, description=label, style=_LABEL, layout=_wide())


def ratio_slider(label: str, value: float, low: float, high: float, step: float = 0.05) -> widgets.FloatSlider:
    """Return a slider of shares, shown as per cent."""
    return widgets.FloatSlider(
        value=value, min=low, max=high, step=step, description=label, readout_format=".0%", style=_LABEL, layout=_wide()
    )


def dropdown(label: str, options: Sequence[Any], value: Any) -> widgets.Dropdown:
    """Return a list to choose one from; `options` are values or (text, value)."""
    return widgets.Dropdown(options=options, value=value, description=label, style=_LABEL, layout=_wide())


def checkbox(label: str, value: bool = True) -> widgets.Checkbox:
    """Return a box to tick."""
    return widgets.Checkbox(value=value, description=label, indent=False, layout=widgets.Layout(width="auto"))


def textarea(label: str, value: str) -> widgets.Textarea:
    """Return a field for several lines of text."""
    layout = widgets.Layout(width="700px", max_width="100%", height="110px")
    return widgets.Textarea(value=value, description=label, style=_LABEL, layout=layout)


def paragraph(label: str, text: str) -> str:
    """Return a labelled paragraph as HTML."""
    return f"<p><b>{escape(label)}:</b> {escape(text)}</p>"


def _wide() -> widgets.Layout:
    return widgets.Layout(width="460px", max_width="100%")
