"""What the summariser is asked: the list of what to keep decides what the agent still knows afterwards."""

from __future__ import annotations

from collections.abc import Sequence

KEEP_LIST: tuple[str, ...] = (
    "goal: what the user wants, and the task in hand",
    "decisions: what was decided, and why",
    "facts: file names, classes, functions, line numbers, error messages, results",
    "done: what has been carried out already, worded as finished",
    "in progress: what is being worked on now",
    "open tasks: what is still to do, to check or to ask",
)
"""The items of the list. Each starts with a name and a colon; take one off and what it names is gone from the summary."""

ONLY_OPEN_TASKS: tuple[str, ...] = (KEEP_LIST[-1],)
"""A list that forgets almost everything, for seeing how much the list matters."""

_OPENING = "Below is the history of a conversation between a user and a coding agent. Write a short summary of it."
_MANNER = (
    "Use one line for each point, under the name of the item. Write nothing else: no greeting, no closing words. "
    "Leave out small talk, repeated attempts, long tool output and the steps of reasoning."
)
_FOLD = (
    "The earlier summary covers everything before this history. Make one complete summary of both: it replaces the earlier "
    "one and does not refer to it."
)


def summary_prompt(transcript: str, keep_list: Sequence[str] = KEEP_LIST, previous: str = "", most_words: int = 0) -> str:
    """Return the whole prompt of a summary call.

    `transcript` is the flattened history, `keep_list` what must survive, `previous` the summary in force (folded in, so that
    a second compaction does not have to read everything again), `most_words` a limit that is said (0: none).
    """
    parts = [_OPENING, "Keep:\n" + "\n".join(f"- {item}" for item in keep_list), _MANNER]
    if most_words:
        parts.append(f"Write at most {most_words} words: what is longer is cut off and lost.")
    if previous:
        parts += [_FOLD, f"<earlier-summary>\n{previous}\n</earlier-summary>"]
    parts.append(f"<history>\n{transcript}\n</history>")
    return "\n\n".join(parts)
