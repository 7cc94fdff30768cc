"""Pushes whose jobs are spread over some time."""

from __future__ import annotations

from jobline_server.rpc.convert.push import PushReader
from tests.unit.rpc.test_push import NOW_MS, reader, request

__all__ = ["reader"]


def test_jobs_that_are_spread_start_one_after_the_other(reader: PushReader) -> None:
    """From the start of the push on, rows first; keys and headers stay with their jobs."""
    columns = [{"key": "h", "values": ["1", "2"]}]
    command = reader.command(
        request(
            jobs=[{"text": "a"}],
            payloads=[b"b", b"c"],
            header_columns=columns,
            job_keys=["", "k"],
            delay={"seconds": 10},
            spread={"seconds": 3},
        )
    )
    rows = command.rows
    assert rows.run_at_ms == [NOW_MS + 10_000, NOW_MS + 11_000, NOW_MS + 12_000]
    assert (rows.payloads, rows.job_keys) == ([b"a", b"b", b"c"], ["", "", "k"])
    assert [options.headers for options in rows.options] == [(), (("h", "1"),), (("h", "2"),)]
    assert not command.payloads


def test_a_spread_over_no_time_is_none(reader: PushReader) -> None:
    """Plain jobs stay plain."""
    command = reader.command(request(payloads=[b"a", b"b"], spread={}))
    assert list(command.payloads) == [b"a", b"b"]
