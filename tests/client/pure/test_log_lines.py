"""Lines of job logs that wait to be sent: in frames that are not too large, within bounds."""

from __future__ import annotations

from jobline._job_log import LogLevel
from jobline._stream import log_lines
from jobline._stream.log_lines import LogLines

INFO = LogLevel.INFO


def test_a_job_that_writes_faster_than_is_sent_keeps_its_last_lines():
    """As many as the server would keep; a client that is cut off must not grow."""
    lines = LogLines()
    for number in range(1_500):
        lines.add(1, 5, number, INFO, str(number))
    [log] = lines.take()
    assert list(log.lines) == [str(number) for number in range(500, 1_500)]
    assert not lines


def test_long_lines_are_cut_and_the_last_mebibyte_is_kept():
    lines = LogLines()
    for number in range(100):
        lines.add(1, 5, number, INFO, "ü" * 10_000)
    [log] = lines.take()
    assert len(log.lines) == 64
    assert {len(line.encode()) for line in log.lines} == {log_lines.LINE_BYTES_MAX}


def test_a_line_of_any_text_can_be_sent():
    """A file's name may bring what is no text."""
    lines = LogLines()
    lines.add(1, 5, 0, INFO, "a\udcff")
    assert lines.take()[0].lines[0].startswith("a")


def test_a_frame_has_no_more_lines_than_the_server_takes():
    """The rest goes out with the next one."""
    lines = LogLines()
    for job_id in range(7):
        for number in range(1_000):
            lines.add(job_id, 5, number, INFO, "x")
    assert [log.id for log in lines.take()] == [0, 1, 2, 3, 4]
    assert [log.id for log in lines.take()] == [5, 6]
    assert lines.take() == []


def test_a_frame_ends_where_it_is_large():
    lines = LogLines()
    for job_id in range(4):
        for number in range(64):
            lines.add(job_id, 5, number, INFO, "x" * log_lines.LINE_BYTES_MAX)
    assert [log.id for log in lines.take()] == [0, 1]


def test_lines_are_forgotten_by_lease():
    lines = LogLines()
    lines.add(1, 5, 0, INFO, "old")
    lines.add(1, 6, 0, INFO, "new")
    lines.forget(1, 5)
    lines.forget(2, 1)
    assert [log.delivery for log in lines.take()] == [6]
    lines.add(1, 6, 0, INFO, "refused")
    lines.clear()
    assert not lines
