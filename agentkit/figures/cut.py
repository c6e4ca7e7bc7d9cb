"""What a cut does to a conversation: which messages become a summary, which stay, and what an API would refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agentkit.figures.palette import LOOKS, pale
from agentkit.figures.picture import ALARM, FAINT, INK, Drawing, Picture, text_width
from agentkit.figures.rows import Part
from agentkit.messages import Message
from agentkit.protocol import DIALECTS, Violation, batches

NAMES = {"openai": "OpenAI", "deepseek": "DeepSeek", "anthropic": "Anthropic"}


@dataclass(frozen=True)
class Trial:
    """One attempt to compact. `cut` is an index into `before`, `head` the number of its system messages.

    `reason` is why nothing was changed (empty after a compaction). Token counts are estimates of the messages alone.
    """

    before: tuple[Message, ...]
    after: tuple[Message, ...]
    head: int
    cut: int
    summary: str
    tokens_before: int
    tokens_after: int
    refused: tuple[Violation, ...] = ()
    reason: str = ""

    @property
    def done(self) -> bool:
        """Say whether messages were replaced."""
        return not self.reason

    @property
    def merged(self) -> bool:
        """Say whether the summary stands in the first kept message."""
        return self.done and self.head + 1 + len(self.before) - self.cut > len(self.after)


def trial_in_words(trial: Trial) -> str:
    """Return what came of the attempt."""
    if not trial.done:
        return f"Nothing is changed: {trial.reason}."
    count = trial.cut - trial.head
    role = LOOKS[trial.before[trial.cut].role].name
    opening = (
        f"The cut is before message {trial.cut} ({role}): {count} message{'' if count == 1 else 's'} become one summary, "
        f"{trial.tokens_before:,} → {trial.tokens_after:,} tokens (estimate)."
    )
    return f"{opening} {_verdict(trial)}"


def _verdict(trial: Trial) -> str:
    against = [NAMES[d] for d in DIALECTS if any(v.dialect == d for v in trial.refused)]
    if not against:
        return "All three APIs accept what is sent then."
    who = " and ".join([", ".join(against[:-1]), against[-1]] if len(against) > 1 else against)
    return f"{who} would refuse what is sent then, with a 400."


def refusals(trial: Trial) -> list[str]:
    """Return what each API would answer, one line each."""
    lines = []
    for dialect in DIALECTS:
        found = [v for v in trial.refused if v.dialect == dialect]
        text = f"400, {found[0].text}" if found else "accepted"
        lines.append(f"{NAMES[dialect]}: {text}" + (f" (and {len(found) - 1} more)" if len(found) > 1 else ""))
    return lines


def cut_picture(trial: Trial, *, width: int = 700) -> Picture:
    """Return two rows: the log with the cut, and what is sent. Brackets join calls and results."""
    words = trial_in_words(trial)
    drawing = Drawing(width)
    _Rows(drawing, trial, width).draw()
    text = "\n".join([f"log   {_letters(trial)}", f"sent  {_sent(trial)}", *_key(trial), words])
    return Picture(drawing.svg(236, words), words, text, words)


def _letters(trial: Trial) -> str:
    letters = [LOOKS[m.role].letter for m in trial.before]
    if trial.done:
        letters.insert(trial.cut, "|")
    return " ".join(letters)


def _sent(trial: Trial) -> str:
    wrong = {v.index for v in trial.refused}
    names = []
    for i, message in enumerate(trial.after):
        summary = trial.done and i == trial.head
        letter = ("C+" if trial.merged else "") + LOOKS[message.role].letter if summary else LOOKS[message.role].letter
        names.append((letter if trial.merged or not summary else "C") + ("!" if i in wrong else ""))
    return " ".join(names)


def _key(trial: Trial) -> Iterator[str]:
    parts: list[Part] = [*dict.fromkeys(m.role for m in trial.before), "summary"]
    marks = "| cut" + (", ! refused" if trial.refused else "")
    yield ", ".join(f"{LOOKS[p].letter} {LOOKS[p].name}" for p in LOOKS if p in parts) + f", {marks}"


class _Rows:
    left, high = 58.0, 30.0
    log, sent = 42.0, 156.0

    def __init__(self, drawing: Drawing, trial: Trial, width: float) -> None:
        self.drawing, self.trial = drawing, trial
        self.step = (width - self.left - 16) / len(trial.before)
        self.wrong = {v.index for v in trial.refused}

    def draw(self) -> None:
        """Draw both rows, the brackets and the cut."""
        for name, y in (("log", self.log), ("sent", self.sent)):
            self.drawing.text(self.left - 10, y + 20, name, anchor="end", more='font-weight="bold"')
        for i, message in enumerate(self.trial.before):
            gone = self.trial.done and self.trial.head <= i < self.trial.cut
            self._box(self.log, i, i + 1, message.role, LOOKS[message.role].name, gone=gone)
            self.drawing.text(self._x(i + 0.5), self.log - 6, f"{i}", anchor="middle", fill=FAINT)
        self._brackets(self.log, self.trial.before, lambda i: i)
        self._row_sent()
        if self.trial.done:
            self._cut()
        parts = {m.role for m in self.trial.before}
        letters = ", ".join(f"{look.letter} {look.name}" for part, look in LOOKS.items() if part in parts)
        note = f"{letters}; a bracket joins a call and its results"
        self.drawing.text(self.left, self.sent + self.high + 32, note, fill=FAINT)

    def _row_sent(self) -> None:
        trial = self.trial
        if not trial.done:
            for i, message in enumerate(trial.after):
                self._box(self.sent, i, i + 1, message.role, LOOKS[message.role].name, wrong=i in self.wrong)
            return
        for i, message in enumerate(trial.after):
            start, stop = self._place(i)
            if i == trial.head:
                label = "summary + question" if trial.merged else f"summary ({message.role})"
                self._box(self.sent, start, stop, "summary", label, wrong=i in self.wrong)
            else:
                self._box(self.sent, start, stop, message.role, LOOKS[message.role].name, wrong=i in self.wrong)
        self._brackets(self.sent, trial.after, lambda i: self._place(i)[0])

    def _place(self, i: int) -> tuple[float, float]:
        """Return where message `i` of what is sent stands: kept messages stay under themselves."""
        trial = self.trial
        if i < trial.head:
            return i, i + 1
        if i == trial.head:
            return trial.head, trial.cut + trial.merged
        at = trial.cut + i - trial.head - 1 + trial.merged
        return at, at + 1

    def _x(self, place: float) -> float:
        return self.left + place * self.step

    def _box(
        self, y: float, start: float, stop: float, part: Part, name: str, *, gone: bool = False, wrong: bool = False
    ) -> None:
        look, wide = LOOKS[part], (stop - start) * self.step - 3
        edge = f'stroke="{ALARM}" stroke-width="3"' if wrong else f'stroke="{look.colour}"'
        more = f'{edge} stroke-dasharray="3 3"' if gone else edge
        self.drawing.rect(self._x(start), y, wide, self.high, pale(look.colour, 0.85) if gone else look.colour, more)
        label = name if text_width(name) + 4 < wide else look.letter
        middle = self._x(start) + wide / 2
        self.drawing.text(middle, y + 20, label, anchor="middle", fill=INK if gone else look.on_solid)
        if wrong:
            self.drawing.text(middle, y - 6, "400", anchor="middle", fill=ALARM, more='font-weight="bold"')

    def _brackets(self, y: float, messages: Sequence[Message], place: Callable[[int], float]) -> None:
        for batch in batches(messages):
            first, last = self._middle(messages, batch.start, place), self._middle(messages, batch.stop - 1, place)
            low = y + self.high + 7
            points = [(first, low - 5), (first, low), (last, low), (last, low - 5)]
            if batch.results:
                self.drawing.path(points, FAINT)

    def _middle(self, messages: Sequence[Message], i: int, place: Callable[[int], float]) -> float:
        return self._x(place(i) + 0.5) - 1.5

    def _cut(self) -> None:
        x = self._x(self.trial.cut) - 1.5
        self.drawing.line(x, self.log - 22, x, self.sent + self.high + 8, ALARM, 'stroke-width="2" stroke-dasharray="5 3"')
        self.drawing.text(x, self.log - 26, "cut", anchor="middle", more='font-weight="bold"')
        y = self.log + self.high + 28
        self.drawing.text((self._x(self.trial.head) + x) / 2, y, "becomes a summary", anchor="middle", fill=FAINT)
        end = self._x(len(self.trial.before))
        kept = "stays word for word"
        if end - x > text_width(kept) * 0.9:
            self.drawing.text((end + x) / 2, y, kept, anchor="middle", fill=FAINT)
