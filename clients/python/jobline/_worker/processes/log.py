"""Log records of children: handled in the worker, whose program has set logging up.

A program whose modules set up logging when they are imported does so in children, too, and nothing
is forwarded.
"""

from __future__ import annotations

import logging
import os
from logging.handlers import QueueHandler
from typing import Any

from jobline._worker.processes.messages import Logged, Pipe

_LIBRARY = "jobline"


def levels_now() -> dict[str, int]:
    """Returns the levels that children take over."""
    return {name: logging.getLogger(name or None).getEffectiveLevel() for name in ("", _LIBRARY)}


def forward_records(pipe: Pipe, levels: dict[str, int]) -> None:
    """Has records go to the worker, unless this process has somebody for them."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = _ToWorker(pipe)
    root.addHandler(handler)
    # What a handler forks has no pipe: its records go to stderr, as without any set-up.
    os.register_at_fork(after_in_child=lambda: root.removeHandler(handler))
    for name, level in levels.items():
        logging.getLogger(name or None).setLevel(level)


def handle_record(record: Any) -> None:
    """Logs a record of a child here."""
    if isinstance(record, logging.LogRecord):
        target = logging.getLogger(record.name)
        if target.isEnabledFor(record.levelno):
            target.handle(record)


class _ToWorker(QueueHandler):
    """`prepare` makes a record one that can be pickled, its traceback a text."""

    def __init__(self, pipe: Pipe) -> None:
        super().__init__(pipe)  # type: ignore[arg-type]
        self._pipe = pipe

    def enqueue(self, record: logging.LogRecord) -> None:
        self._pipe.send(Logged(record))
