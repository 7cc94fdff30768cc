"""Columns beside payloads: what a push has there, and what the slow way finds in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline.v1 import job_pb2, job_service_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.values import JobOptions
from jobline_server.rpc.convert.columns import columns_of
from jobline_server.rpc.convert.options import OptionsTable
from jobline_server.rpc.convert.push import PushReader
from tests.pushed_payloads import jobs_in
from tests.pushed_rows import NewJob

NOW_MS = 1_800_000_000_000


def read(**fields: Any) -> Push:
    """The command of a push to queue q."""
    make: Any = job_service_pb2.PushRequest
    reader = PushReader(OptionsTable(), lambda: NOW_MS, payload_bytes_max=10 << 20)
    return reader.command(make(queue="q", **fields))


texts = st.one_of(st.just(""), st.text(st.characters(exclude_categories=["C"]), max_size=4))


shared_headers = st.dictionaries(st.sampled_from(["a", "s", "t"]), texts)


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    payloads = draw(st.lists(st.binary(max_size=4), min_size=1, max_size=5))
    column = st.lists(texts, min_size=len(payloads), max_size=len(payloads))
    headers = draw(st.dictionaries(st.sampled_from(["a", "b", "é"]), column, max_size=3))
    return {
        "payloads": payloads,
        "header_columns": [{"key": key, "values": values} for key, values in headers.items()],
        "job_keys": draw(st.one_of(st.just([]), column)),
        "options": {"name": "n", "headers": draw(shared_headers)},
        "jobs": [{"text": "row"}] * draw(st.integers(0, 2)),
    }


def slowly(fields: dict[str, Any]) -> list[tuple[bytes, JobOptions, str]]:
    """The payloads with what they have of their own."""
    jobs = []
    for index, payload in enumerate(fields["payloads"]):
        headers = dict(fields["options"]["headers"])
        for column in fields["header_columns"]:
            if column["values"][index]:
                headers[column["key"]] = column["values"][index]
        options = JobOptions(name="n", headers=tuple(sorted(headers.items())))
        key = fields["job_keys"][index] if fields["job_keys"] else ""
        jobs.append((payload, options, key))
    return jobs


def told(job: NewJob) -> tuple[bytes, JobOptions, str]:
    return job.payload, job.options, job.job_key


@given(requests())
def test_columns_are_what_the_slow_way_reads(fields: dict[str, Any]) -> None:
    """Also beside jobs, which have nothing to do with them."""
    command = read(**fields)

    jobs = list(map(told, jobs_in(command)))
    shared = JobOptions(name="n", headers=tuple(sorted(fields["options"]["headers"].items())))
    rows = [(b"row", shared, "")] * len(fields["jobs"])
    assert jobs == [*rows, *slowly(fields)]


def test_what_says_nothing_leaves_payloads_plain() -> None:
    """A column of empty values is no column."""
    columns = [{"key": "a", "values": ["", ""]}]
    command = read(payloads=[b"1", b"2"], header_columns=columns, job_keys=["", ""])

    assert command.payloads.columns is None


def test_a_column_goes_on_as_the_bytes_that_came() -> None:
    """No text is written again on its way to the disk and to workers."""
    value = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    command = read(payloads=[b"1"], header_columns=[{"key": "t", "values": [value]}])

    assert command.payloads.columns is not None
    ((key, values),) = command.payloads.columns.headers
    assert (key, values.block) == ("t", b"\x22\x37" + value.encode())


def large_columns(first: int, second: int) -> list[dict[str, Any]]:
    """Columns of which two have a long value, each for another job."""
    return [
        {"key": "a", "values": ["a" * first, ""]},
        {"key": "b", "values": ["", "b" * second]},
        {"key": "c", "values": ["cc", "cc"]},
    ]


@pytest.mark.parametrize("lengths", [(8_000, 0), (8_188, 0), (8_188, 8_188)])
def test_limits_of_headers_hold_for_each_job_alone(lengths: tuple[int, int]) -> None:
    """The longest values of two columns may be those of two jobs. A key takes a byte here."""
    command = read(payloads=[b"1", b"2"], header_columns=large_columns(*lengths))
    assert command.payloads.columns is not None


@pytest.mark.parametrize("lengths", [(8_189, 0), (0, 8_189)])
def test_a_job_with_too_large_headers_is_named(lengths: tuple[int, int]) -> None:
    """Among all the others, by its index."""
    index = int(not lengths[0])
    with pytest.raises(
        Refused, match=rf"payloads\[{index}\] has 2 headers of 8193 bytes"
    ) as refused:
        read(payloads=[b"1", b"2"], header_columns=large_columns(*lengths))
    assert refused.value.field == "header_columns"


def test_an_own_header_takes_the_room_of_the_shared_one() -> None:
    """64 headers are allowed, and 64 they are."""
    shared = {"headers": {f"h{number}": "x" * 60 for number in range(64)}}
    column = {"key": "h7", "values": ["own"]}

    command = read(payloads=[b"1"], options=shared, header_columns=[column])

    assert dict(jobs_in(command)[0].options.headers)["h7"] == "own"


def test_keys_are_part_of_what_makes_two_calls_the_same() -> None:
    """A retry with other keys or headers is a mistake."""
    producer = {"id": bytes(16), "sequence": 1}
    plain = read(payloads=[b"1"], producer=producer)
    keyed = read(payloads=[b"1"], producer=producer, job_keys=["k"])
    column = {"key": "h", "values": ["own"]}
    headers = read(payloads=[b"1"], producer=producer, header_columns=[column])

    assert len({one.calls[0].digest for one in (plain, keyed, headers)}) == 3


@given(requests(), st.integers(6, 18), st.integers(3, 4))
def test_the_limits_are_those_that_one_would_count(
    fields: dict[str, Any], bytes_max: int, headers_max: int
) -> None:
    """For each job, of its own headers and the shared ones that it has none of its own for."""
    counted = [
        (len(options.headers), sum(len(f"{key}{value}".encode()) for key, value in options.headers))
        for _, options, _ in slowly(fields)
    ]
    fits = all(number <= headers_max and size <= bytes_max for number, size in counted)
    # Keys of columns have the same limit, whether any job has a value there or not.
    fits &= sum(len(column["key"].encode()) for column in fields["header_columns"]) <= bytes_max
    shared = fields["options"]["headers"]
    with pytest.MonkeyPatch.context() as patch:
        table = OptionsTable()
        options = table.shared(job_pb2.JobOptions(headers=shared).SerializeToString()).options
        patch.setattr(limits, "HEADERS_BYTES_MAX", bytes_max)
        patch.setattr(limits, "HEADERS_MAX", headers_max)
        columns = [job_pb2.HeaderColumn(**column) for column in fields["header_columns"]]
        try:
            columns_of(columns, (), len(fields["payloads"]), options)
        except Refused:
            assert not fits
        else:
            assert fits or not columns
