"""Rows of single facts, where random histories come too rarely or cannot see what is in them."""

from __future__ import annotations

from typing import Any

from jobline_server.engine.decide.queues import decide_delete_queue
from jobline_server.engine.operations import Operation
from jobline_server.engine.report_entries import PhaseCompleted
from jobline_server.history.events import operation_number, rows_of
from jobline_server.history.pushes import trace_id_of
from tests.unit.engine.world import World
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
