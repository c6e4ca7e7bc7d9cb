"""Conversations to run again and again: the same questions to an agent, under settings that a reader changes.

`course` is the conversation of the chapters, on the course workspace; `library` holds the scenarios that compare policies,
and `project` makes the larger workspace that some of them need.
"""

from agentkit.scenarios.course import (
    FOUR_QUESTIONS,
    Run,
    Settings,
    ask,
    course_workspace,
    four_questions,
    fresh_workspace,
    start,
)

__all__ = [
    "FOUR_QUESTIONS",
    "Run",
    "Settings",
    "ask",
    "course_workspace",
    "four_questions",
    "fresh_workspace",
    "start",
]
