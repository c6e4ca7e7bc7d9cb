"""Loaded once by the process that all killed ones are forked from: what every run does first is done already."""

from __future__ import annotations

from ledger import kill_worker

kill_worker.warm_up()
