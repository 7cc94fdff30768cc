"""Push requests into commands: columns, shared options, and what goes together."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline.v1 import job_service_pb2
from jobline_server.engine.commands import Push, Pushed, RefusalKind, Refused
from jobline_server.engine.producers import Call
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import AckLevel, JobOptions, PushOutcome
from jobline_server.rpc.convert import options as options_module
from jobline_server.rpc.convert.options import OptionsTable
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.convert.pushed import ids_in_order, push_response
from jobline_server.wire.options import options_from_message
from tests.pushed_rows import NewJob, jobs_of

NOW_MS = 1_800_000_000_000


def wall_ms() -> int:
    return NOW_MS


def request(**fields: Any) -> Any:
    """A push to queue q."""
    make: Any = job_service_pb2.PushRequest
    return make(queue="q", **fields)


@pytest.fixture
def reader() -> PushReader:
    return PushReader(OptionsTable(), wall_ms, payload_bytes_max=10 << 20)


def test_plain_rows_are_taken_as_payloads(reader: PushReader) -> None:
    """Rows with nothing of their own cost no object each, and go before the payloads."""
    command = reader.command(request(jobs=[{"text": "a"}, {"data": b"b"}], payloads=[b"c"]))

    assert list(command.payloads) == [b"a", b"b", b"c"]
    assert not command.rows


def test_rows_that_share_their_own_options_are_plain_too(reader: PushReader) -> None:
    """It does not matter where options were written."""
    row = {"text": "a", "options": {"name": "n"}}

    command = reader.command(request(jobs=[row, row]))

    assert command.options == JobOptions(name="n")
    assert list(command.payloads) == [b"a", b"a"]


def test_a_list_of_pauses_replaces_growing_ones_and_the_other_way_round(
    reader: PushReader,
) -> None:
    """A row overrides its push; the two would contradict each other."""
    growing = {"base": {"seconds": 2}, "jitter": 0.5}
    listed = {"delays": [{"seconds": 1}, {"seconds": 3}]}
    for shared, own in ((growing, listed), (listed, growing)):
        rows = [{"options": {"backoff": own}}, {"text": "b"}]
        command = reader.command(request(jobs=rows, options={"backoff": shared}))
        made = command.rows.options[0].backoff
        expected = (None, (1_000, 3_000)) if own is listed else (2_000, ())
        assert (made.base_ms, made.delays_ms, made.jitter) == (*expected, 0.5)


@pytest.mark.parametrize(
    "different",
    [{"job_key": "k"}, {"delay": {"seconds": 5}}, {"options": {"priority": 1}}],
    ids=["key", "delay", "options"],
)
def test_a_row_with_something_of_its_own_keeps_all_rows(
    reader: PushReader, different: dict[str, Any]
) -> None:
    """Order is the order of the request."""
    command = reader.command(request(jobs=[{"text": "a"}, {"text": "b"} | different]))

    assert command.rows.payloads == [b"a", b"b"]
    assert not command.payloads


def test_large_options_are_made_once_a_push_and_shared_by_its_rows(
    reader: PushReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not kept from push to push; each row with its own would be its size in memory."""
    made = Mock(wraps=options_from_message)
    monkeypatch.setattr(options_module, "options_from_message", made)
    large = {"headers": {"x": "v" * options_module.KEPT_BYTES_MAX}}
    rows = [{"text": "a", "options": large}] * 3

    alike = reader.command(request(jobs=rows))
    assert (len(alike.payloads), len(alike.rows), made.call_count) == (3, 0, 1)

    keyed = reader.command(request(jobs=[row | {"job_key": "k"} for row in rows]))
    assert len({id(own) for own in keyed.rows.options}) == 1

    shared = reader.command(request(options=large, jobs=[{"text": "a"}], payloads=[b"p"]))
    assert list(shared.payloads) == [b"a", b"p"]


def test_rows_that_say_what_the_push_says_are_plain_too(reader: PushReader) -> None:
    """Options are alike by what they mean, however they were written."""
    rows = [{"text": "a"}, {"text": "b", "options": {"name": "n"}}]

    command = reader.command(request(options={"name": "n"}, jobs=rows, payloads=[b"c"]))

    assert command.options == JobOptions(name="n")
    assert list(command.payloads) == [b"a", b"b", b"c"]


def test_rows_with_common_options_beside_other_payloads_stay_rows(reader: PushReader) -> None:
    """The payloads share the push's options and not the rows'."""
    rows = [{"text": "a", "options": {"name": "n"}}]

    command = reader.command(request(jobs=rows, payloads=[b"p"]))

    assert [own.name for own in command.rows.options] == ["n"]
    assert command.options == JobOptions()
    assert list(command.payloads) == [b"p"]


@pytest.mark.parametrize("column", ["groups", "unique_keys"])
def test_a_column_beside_payloads_is_theirs_alone(reader: PushReader, column: str) -> None:
    """Rows with nothing of their own go before the payloads, which alone have the column."""
    command = reader.command(request(jobs=[{"text": "a"}], payloads=[b"p"], **{column: ["own"]}))
    assert command.rows.payloads == [b"a", b"p"]
    tied = Ties(group="own") if column == "groups" else Ties(unique_key="own")
    assert command.rows.ties == [NO_TIES, tied]
    assert not command.payloads


def test_the_same_options_are_one_object(reader: PushReader) -> None:
    """Over calls, and whether they came with the push or with the job."""
    first = reader.command(request(options={"name": "n"}, payloads=[b""]))
    rows = [{"options": {"name": "n"}, "job_key": "a"}, {"options": {"name": "n"}, "job_key": "b"}]
    second = reader.command(request(jobs=rows))
    third = reader.command(request(options={"name": "n"}, payloads=[b""]))

    assert second.rows.options[0] is second.rows.options[1]
    assert first.options is third.options


def test_tags_of_a_push_and_of_its_job_add_up(reader: PushReader) -> None:
    """Sorted, each once; jobs with the same tags share their options."""
    shared = {"tags": ["b", "a", "b"]}
    rows = [{"options": {"tags": ["c", "a"]}, "job_key": "1"}, {"job_key": "2"}]

    command = reader.command(request(options=shared, jobs=rows))

    assert [own.rules.tags for own in command.rows.options] == [("a", "b", "c"), ("a", "b")]


def test_phases_of_a_job_take_the_place_of_those_of_its_push(reader: PushReader) -> None:
    """They are an order of steps: two of them together would be neither."""
    rows = [{"options": {"phases": ["c", "a"]}, "job_key": "1"}, {"job_key": "2"}]

    command = reader.command(request(options={"phases": ["a", "b"]}, jobs=rows))

    assert [own.rules.phases for own in command.rows.options] == [("c", "a"), ("a", "b")]


def test_headers_in_another_order_are_the_same_options() -> None:
    """The bytes of a map have no order; the object is one all the same."""
    table = OptionsTable()
    one, other = b"\x1a\x06\n\x01a\x12\x01b", b"\x1a\x06\n\x01c\x12\x01d"

    assert table.shared(one + other).options is table.shared(other + one).options


def test_a_row_overrides_field_by_field(reader: PushReader) -> None:
    """What it does not say it takes from the push; headers add up."""
    shared = {"name": "n", "priority": 5, "headers": {"a": "1"}}
    row = {"options": {"priority": 0, "headers": {"b": "2"}}, "job_key": "k"}

    command = reader.command(request(options=shared, jobs=[row]))

    expected = JobOptions(name="n", priority=0, headers=(("a", "1"), ("b", "2")))
    assert command.rows.options == [expected]


def test_a_full_table_forgets_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand kinds of options cost ten thousand objects, and no more memory than that."""
    monkeypatch.setattr(options_module, "ENTRIES_MAX", 10)
    table = OptionsTable()

    names = [table.shared(b"\x0a\x02" + f"{n:02}".encode()).options.name for n in range(35)]

    assert names == [f"{n:02}" for n in range(35)]
    assert len(table) <= 10


rows = st.fixed_dictionaries(
    {},
    optional={
        "text": st.text(max_size=5),
        "job_key": st.sampled_from(["", "k1", "k2"]),
        "options": st.sampled_from([{}, {"name": "n"}, {"max_attempts": 0}]),
        "delay": st.sampled_from([{"seconds": 0}, {"seconds": 5}]),
        "run_at": st.sampled_from([{"seconds": 1}, {"seconds": NOW_MS // 1_000 + 60}]),
    },
).filter(lambda row: not ("delay" in row and "run_at" in row))


def slowly(row: Any, shared_ms: int) -> NewJob:
    """The slow twin of one row."""
    run_at_ms = shared_ms
    if "delay" in row:
        run_at_ms = NOW_MS + 5_000 if row["delay"]["seconds"] else 0
    if "run_at" in row:
        moment_ms = row["run_at"]["seconds"] * 1_000
        run_at_ms = moment_ms if moment_ms > NOW_MS else 0
    return NewJob(
        row.get("text", "").encode(),
        JobOptions(**row.get("options", {})),
        row.get("job_key", ""),
        run_at_ms,
    )


def as_rows(command: Push) -> list[NewJob]:
    """All jobs of a command as rows."""
    plain = [NewJob(p, command.options, "", command.run_at_ms) for p in command.payloads]
    return [*jobs_of(command.rows), *plain]


@given(st.lists(rows, min_size=1, max_size=6), st.sampled_from([None, {"seconds": 9}]))
def test_columns_are_what_the_slow_way_reads(sent: list[Any], delay: Any) -> None:
    """Whatever the rows have of their own."""
    reader = PushReader(OptionsTable(), wall_ms, payload_bytes_max=1_000)
    shared_ms = NOW_MS + 9_000 if delay else 0

    command = reader.command(request(jobs=sent, delay=delay))

    assert as_rows(command) == [slowly(row, shared_ms) for row in sent]


def test_a_repeated_request_has_the_same_digest_and_another_one_has_not(reader: PushReader) -> None:
    """However the maps in it happen to be ordered."""
    headers = {str(n): "x" for n in range(20)}
    backwards = dict(reversed(headers.items()))

    def digest(**fields: Any) -> int:
        return reader.command(request(request_id="r", **fields)).request_digest

    once = digest(payloads=[b"a"], options={"headers": headers})
    again = digest(payloads=[b"a"], options={"headers": backwards})
    other = digest(payloads=[b"b"], options={"headers": headers})

    assert once == again != other


def test_a_repeated_call_of_a_producer_has_the_same_digest(reader: PushReader) -> None:
    """Trial C1: whatever its other fields; it may be combined with job keys."""

    def call_of(below: int, **fields: Any) -> Call:
        producer = {"id": b"p" * 16, "sequence": 9, "answered_below": below}
        (call,) = reader.command(request(producer=producer, **fields)).calls
        return call

    once, again = call_of(1, jobs=[{"job_key": "k"}]), call_of(9, jobs=[{"job_key": "k"}])
    assert (once.producer, once.sequence, once.answered_below) == (b"p" * 16, 9, 1)
    assert once.digest == again.digest != call_of(1, jobs=[{"job_key": "l"}]).digest


def test_the_servers_default_level_is_for_pushes_that_ask_for_none() -> None:
    """What is asked for wins."""
    reader = PushReader(
        OptionsTable(), wall_ms, payload_bytes_max=1_000, default_level=AckLevel.BUFFERED
    )

    assert reader.command(request(payloads=[b""])).level is AckLevel.BUFFERED
    asked = request(payloads=[b""], ack_level=1)
    assert reader.command(asked).level is AckLevel.MEMORY


def test_the_payload_limit_is_the_servers() -> None:
    """A larger limit lets a larger batch through as well."""
    reader = PushReader(OptionsTable(), wall_ms, payload_bytes_max=20 << 20)

    assert reader.command(request(payloads=[bytes(20 << 20)])).payloads
    with pytest.raises(Refused, match="at most"):
        reader.command(request(payloads=[bytes(20 << 20), b"x"]))


def test_ids_are_told_in_the_order_of_the_push() -> None:
    """Created ones count on, duplicates say whom they stand for."""
    refused = (3, RefusalKind.UNIQUE_KEY_HELD, 0)
    pushed = Pushed(100, 3, AckLevel.FSYNCED, [(1, PushOutcome.DUPLICATE, 7), refused])
    assert list(ids_in_order(pushed)) == [100, 7, 101, 0, 102]
    rows = push_response(request(jobs=[{}] * 5), pushed)
    assert list(rows.ids) == [100, 7, 101, 0, 102]
    assert [one.reason for one in rows.exceptions] == ["", "UNIQUE_KEY_HELD"]
    assert not push_response(request(payloads=[b""]), pushed).ids
