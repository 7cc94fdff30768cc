"""Rows of single facts, where random histories come too rarely or cannot see what is in them."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.columns import LotColumns
from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.effects import Applied
from jobline_server.engine.entries import JobsPushed, LotPushed
from jobline_server.engine.operations import Operation
from jobline_server.engine.packed import PackedValues
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.report_entries import PhaseCompleted
from jobline_server.engine.values import JobOptions
from jobline_server.history.events import operation_number, rows_of
from jobline_server.history.pushes import trace_id_of
from jobline_server.history.rows import Later, Rows
from tests.unit.engine.world import World, leases_of
from tests.unit.history.expanded import expanded


def keeping() -> World:
    world = World()
    world.shard.load.keeps_history = True
    return world


def taken(world: World) -> list[dict[str, Any]]:
    return [row for rows in rows_of(world.shard.take_applied()) for row in expanded(rows)]


def test_nothing_is_noted_where_no_history_is_kept() -> None:
    world = World()
    world.plain(b"x", b"y")
    effects = [effect for one in world.shard.take_applied() for effect in one.effects]
    assert not [effect for effect in effects if "Noted" in type(effect).__name__]


def test_the_trace_of_a_job_is_that_of_its_header() -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    assert trace_id_of({"traceparent": f"00-{trace}-b7ad6b7169203331-01"}) == trace
    assert trace_id_of({"traceparent": "nonsense"}) is None
    assert trace_id_of({}) is None


def test_ids_of_operations_are_signed_numbers() -> None:
    assert operation_number("00000000000000ff") == 255
    assert operation_number("ffffffffffffffff") == -1
    assert operation_number("name-1") is None
    assert Operation("1", "Pause", "me", 0).id == "1"


def test_jobs_that_go_with_their_queue_end_with_all_that_is_known() -> None:
    """Those that wait, and those that are leased."""
    world = keeping()
    world.plain(b"x", b"y", b"z")
    world.lease(2)
    taken(world)
    decide_delete_queue(world.shard, world.now, "q", force=True)
    *ends, queue = taken(world)
    assert (queue["event"], queue["queue"]) == ("queue_deleted", "q")
    assert {end["event"] for end in ends} == {"deleted"}
    assert all(end["final"] and end["pushed_at"] == end["ready_at"] for end in ends)
    assert len([end for end in ends if "leased_at" in end]) == 2
    assert len(ends) == 3


def test_phases_are_events_of_their_job() -> None:
    world = keeping()
    world.plain(b"x")
    (pushed,) = world.shard.lots.lots
    world.lease(1)
    taken(world)
    fact = PhaseCompleted(world.now.wall_ms, "q", pushed, "download", b"", 0.5)
    world.shard.emit(fact)
    (row,) = taken(world)
    assert (row["event"], row["reason"], row["job_id"]) == ("phase_completed", "download", pushed)
    assert "leased_at" in row


TRACES = [f"00-{number:032x}-b7ad6b7169203331-01" for number in range(1, 4)]


def with_header_columns(*keys: str) -> LotPushed:
    """Three jobs, the last of which has no header of its own."""
    payloads = Payloads.of([b"x"] * 3)
    values = [PackedValues.of([*[each.encode() for each in TRACES[:2]], b""]) for _ in keys]
    payloads.columns = LotColumns(list(zip(keys, values, strict=True)))
    shared = JobOptions(headers=(("traceparent", TRACES[2]), ("a", "b")))
    return LotPushed(1, "q", 7, shared, payloads)


def rows_of_one(fact: Any) -> Rows:
    (rows,) = rows_of([Applied(fact, 1, [])])
    return rows


@pytest.mark.parametrize("keys", [("traceparent",), ("tenant",), ("z", "traceparent", "b")])
def test_headers_of_columns_are_those_of_each_job(keys: tuple[str, ...]) -> None:
    fact = with_header_columns(*keys)
    found = list(expanded(rows_of_one(fact)))
    of_jobs = [fact.payloads.options_of(index, fact.options).headers for index in range(3)]
    assert [row["headers"] for row in found] == of_jobs
    assert [row["trace_id"] for row in found] == [trace_id_of(dict(each)) for each in of_jobs]


def test_headers_of_columns_are_not_made_before_rows_are_encoded() -> None:
    """Ten thousand jobs would stop the loop."""
    fact = with_header_columns("traceparent")
    columns = rows_of_one(fact).columns
    assert {type(columns[name]) for name in ("headers", "trace_id")} == {Later}
    own = [JobOptions(headers=(("traceparent", trace),)) for trace in TRACES]
    rows = rows_of_one(JobsPushed(1, "q", 7, own, [b"x"] * 3))
    assert type(rows.columns["trace_id"]) is Later
    assert [row["trace_id"] for row in expanded(rows)] == [trace.split("-")[1] for trace in TRACES]


def test_what_rows_take_in_memory_is_counted_with_their_texts() -> None:
    """It is what bounds the rows that wait, and the groups that are encoded at once."""
    empty = Rows(1, {"event": "pushed"}, (1, 2)).measure()
    text = "m" * 5_000
    assert Rows(1, {"error": text}, (1, 2)).measure() > empty + 4_900
    assert Rows(1, {"error": [text, None]}, (1, 2)).measure() > empty + 4_900
    assert Rows(1, {"tags": [None, (text, "b")]}, (1, 2)).measure() > empty + 4_900
    assert Rows(1, {"headers": [(("a", text),), None]}, (1, 2)).measure() > empty + 4_900
    assert Rows(1, {"headers": (("a", text),)}, (1, 2)).measure() > empty + 4_900
    assert Rows(1, {"depends_on": [None, (7,) * 1_000]}, (1, 2)).measure() > empty + 8_000
    assert Rows(1, {"final": [None, True], "tags": [(), None]}, (1, 2)).measure() < empty + 100
    fact = with_header_columns("a", "b")
    assert fact.payloads.columns is not None
    assert rows_of_one(fact).measure() > empty + fact.payloads.columns.bytes_of(0, 3)


@pytest.mark.parametrize(("payloads", "is_one"), [((b"x", b"y"), True), ((b"x", b"yy"), False)])
def test_jobs_of_one_hand_out_that_end_one_by_one_share_their_columns(
    payloads: tuple[bytes, ...], is_one: bool
) -> None:
    """Unless their payloads differ in size."""
    world = keeping()
    world.plain(*payloads)
    leased = leases_of(world.lease(2))
    world.shard.take_applied()
    ends: list[Rows] = []
    for job_id, delivery in leased:
        world.ack([(job_id, delivery)])
        ends += rows_of(world.shard.take_applied())
    assert (ends[0].columns is ends[1].columns) == is_one
    sizes = [row["payload_bytes"] for rows in ends for row in expanded(rows)]
    assert sizes == [len(payload) for payload in payloads]
