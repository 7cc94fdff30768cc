"""The log of a job: its last lines, within limits."""

from __future__ import annotations

import pytest

from jobline_server.engine import limits
from jobline_server.engine.job_log import JobLog, LogLine, size_of
from jobline_server.engine.values import LogLevel


def lines(*texts: str) -> list[LogLine]:
    return [LogLine(1, LogLevel.INFO, text, 1) for text in texts]


def texts_in(log: JobLog) -> list[str]:
    return [line.text for line in log.lines]


def test_lines_are_kept_in_order_and_counted() -> None:
    log = JobLog()
    log.add(lines("a", "ü"))
    log.add(lines("c"))
    assert texts_in(log) == ["a", "ü", "c"]
    assert log.bytes == 1 + 2 + 1 + 3 * limits.LOG_LINE_EXTRA_BYTES


def test_the_oldest_lines_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """By number, and by size; what was dropped is counted."""
    monkeypatch.setattr(limits, "LOG_LINES_MAX", 3)
    log = JobLog()
    log.add(lines(*"abcde"))
    assert (texts_in(log), log.dropped) == (["c", "d", "e"], 2)
    log.add(lines("f"), bytes_max=2 * size_of(lines("x")[0]))
    assert (texts_in(log), log.dropped) == (["e", "f"], 4)
    log.add(lines("g"), bytes_max=0)
    assert (texts_in(log), log.dropped, log.bytes) == ([], 7, 0)


def test_a_copy_goes_its_own_way() -> None:
    """A job that is retried continues the log of its record, which stays as it was."""
    log = JobLog()
    log.add(lines("a"))
    copy = log.copy()
    assert copy == log
    copy.add(lines("b"))
    assert texts_in(log) == ["a"]
