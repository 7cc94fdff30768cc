"""Ties of jobs in push requests: taken out of options, so that jobs share those."""

from __future__ import annotations

from typing import Any

import pytest

from jobline.v1 import job_service_pb2
from jobline_server.engine.commands import Refused
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import DEFAULT_OPTIONS, JobOptions
from jobline_server.rpc.convert.options import OptionsTable
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.validate import options as validate

NOW_MS = 1_800_000_000_000


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> PushReader:
    """A reader that takes ties, checked or not."""
    for name in ("group", "unique_key", "depends_on"):
        monkeypatch.setitem(validate.OPTION_CHECKS, name, lambda _value, _field: None)
    return PushReader(OptionsTable(), lambda: NOW_MS, payload_bytes_max=10 << 20)


def request(**fields: Any) -> Any:
    make: Any = job_service_pb2.PushRequest
    return make(queue="q", **fields)


def test_jobs_of_different_groups_share_their_options(reader: PushReader) -> None:
    """One object of options, however many groups."""
    rows = [
        {"text": "a", "options": {"max_attempts": 1, "group": "g"}},
        {"text": "b", "options": {"group": "h", "unique_key": "u", "max_attempts": 1}},
        {"text": "c", "options": {"max_attempts": 1, "depends_on": [7, 8]}},
        {"text": "d", "options": {"max_attempts": 1}},
    ]

    command = reader.command(request(jobs=rows))

    first = command.rows.options[0]
    assert first == JobOptions(max_attempts=1)
    assert all(options is first for options in command.rows.options)
    assert command.rows.ties == [Ties("g"), Ties("h", "u"), Ties(parents=(7, 8)), NO_TIES]


def test_shared_ties_hold_for_each_job_that_does_not_override_them(reader: PushReader) -> None:
    """Field by field, as options; a list is extended."""
    shared = {"group": "g", "depends_on": [7], "name": "n"}
    rows = [{"text": "a"}, {"text": "b", "options": {"group": "h", "depends_on": [8]}}]

    command = reader.command(request(options=shared, jobs=rows))

    assert command.rows.ties == [Ties("g", parents=(7,)), Ties("h", parents=(7, 8))]
    assert {options.name for options in command.rows.options} == {"n"}


def test_payloads_with_shared_ties_become_rows(reader: PushReader) -> None:
    """With all that they have of their own; a job with ties is no member of a lot."""
    shared = {"group": "g"}
    beside = {
        "job_keys": ["k", ""],
        "header_columns": [{"key": "trace", "values": ["", "t"]}],
        "delay": {"seconds": 5},
    }

    command = reader.command(request(options=shared, payloads=[b"a", b"b"], **beside))

    rows = command.rows
    assert not command.payloads
    assert rows.payloads == [b"a", b"b"]
    assert rows.ties == [Ties("g")] * 2
    assert rows.job_keys == ["k", ""]
    assert rows.run_at_ms == [NOW_MS + 5_000] * 2
    assert rows.options == [DEFAULT_OPTIONS, JobOptions(headers=(("trace", "t"),))]


def test_rows_and_payloads_of_one_push_stay_in_order(reader: PushReader) -> None:
    """Those with options of their own go first, as ever."""
    rows = [{"text": "a", "job_key": "k"}]

    command = reader.command(request(options={"group": "g"}, jobs=rows, payloads=[b"b"]))

    assert command.rows.payloads == [b"a", b"b"]
    assert command.rows.job_keys == ["k", ""]
    assert command.rows.ties == [Ties("g")] * 2
    assert command.rows.run_at_ms == []


def test_more_tied_payloads_than_jobs_in_a_push_are_refused(reader: PushReader) -> None:
    """Each of them is an object of its own: a push takes as many as it takes rows."""
    with pytest.raises(Refused, match="1000") as refused:
        reader.command(request(options={"group": "g"}, payloads=[b""] * 1_001))

    assert refused.value.field == "payloads"


def test_large_options_with_ties_are_taken_as_well(reader: PushReader) -> None:
    """They are not kept from push to push."""
    shared = {"group": "g", "headers": {"x": "v" * 3_000}}

    command = reader.command(request(options=shared, jobs=[{"text": "a"}, {"text": "b"}]))

    assert command.rows.ties == [Ties("g")] * 2
    assert command.rows.options[0].headers == (("x", "v" * 3_000),)


def test_payloads_of_different_groups_come_in_a_column(reader: PushReader) -> None:
    """An empty one is the group that all share."""
    groups = ["g", "", "h"]

    command = reader.command(
        request(options={"group": "s"}, payloads=[b"a", b"b", b"c"], groups=groups)
    )

    assert command.rows.payloads == [b"a", b"b", b"c"]
    assert command.rows.ties == [Ties("g"), Ties("s"), Ties("h")]


def test_a_column_of_groups_stands_beside_jobs_of_their_own(reader: PushReader) -> None:
    """Jobs first; the column is of the payloads alone."""
    command = reader.command(request(jobs=[{"text": "a"}], payloads=[b"b"], groups=["g"]))

    assert command.rows.payloads == [b"a", b"b"]
    assert command.rows.ties == [NO_TIES, Ties("g")]


def test_a_column_without_groups_is_none(reader: PushReader) -> None:
    """The payloads stay a lot."""
    command = reader.command(request(payloads=[b"a", b"b"], groups=["", ""]))

    assert len(command.payloads) == 2


def test_rows_that_were_sent_as_jobs_are_counted(reader: PushReader) -> None:
    """A refusal names the field in which a job was sent."""
    command = reader.command(request(jobs=[{"text": "a"}], payloads=[b"b"], groups=["g"]))

    assert (len(command.rows), command.listed) == (2, 1)


@pytest.mark.parametrize(
    ("shared", "rows", "has_rules"),
    [
        ({}, [{"name": "a"}, {"name": "b", "headers": {"a": "b"}}], False),
        ({}, [{"name": "a"}, {"name": "b", "tags": ["new"]}], True),
        ({"lifo": True}, [{"name": "a"}, {"name": "b"}], True),
        ({}, [{"name": "a", "group": "g"}, {"name": "b"}], False),
    ],
)
def test_a_command_says_whether_any_of_its_rows_has_rules(
    reader: PushReader, shared: dict[str, Any], rows: list[dict[str, Any]], has_rules: bool
) -> None:
    """The steps of a push that look at rules go over its rows only then; a second time, when the
    options are known already, as the first time.
    """
    for _ in range(2):
        command = reader.command(request(options=shared, jobs=[{"options": row} for row in rows]))

        assert command.rows.has_rules is has_rules
