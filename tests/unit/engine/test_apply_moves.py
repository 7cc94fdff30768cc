"""Every move of a live job is looked up in the table: of single jobs, and of members of lots."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobline_server.engine import states
from jobline_server.engine.commands import ReleaseItem
from jobline_server.engine.decide.admin import (
    decide_cancel,
    decide_delete_waiting,
    decide_promote,
)
from jobline_server.engine.decide.queues import decide_delete_active, decide_delete_queue
from jobline_server.engine.decide.timers import tick
from jobline_server.engine.states import IllegalMove, Move
from jobline_server.engine.values import JobState
from tests.unit.engine.world import World

READY, SCHEDULED, ACTIVE = JobState.READY, JobState.SCHEDULED, JobState.ACTIVE
LATER_MS = 60_000


def alone(world: World, delay_ms: int) -> int:
    return world.row(delay_ms=delay_ms)


def in_a_lot(world: World, delay_ms: int) -> int:
    return world.plain(b"a", b"b", delay_ms=delay_ms).first_id


def due(world: World, _job_id: int) -> None:
    world.advance(LATER_MS)
    tick(world.shard, world.now)


STEPS: dict[tuple[JobState | None, Move], Callable[[World, int], object]] = {
    (SCHEDULED, Move.DUE): due,
    (SCHEDULED, Move.PROMOTED): lambda w, i: decide_promote(w.shard, w.now, [i]),
    (SCHEDULED, Move.CANCELLED): lambda w, i: decide_cancel(w.shard, w.now, [i]),
    (SCHEDULED, Move.DELETED): lambda w, i: decide_delete_waiting(w.shard, w.now, [i]),
    (READY, Move.LEASED): lambda w, _: w.lease(),
    (READY, Move.CANCELLED): lambda w, i: decide_cancel(w.shard, w.now, [i]),
    (READY, Move.DELETED): lambda w, _: decide_delete_queue(w.shard, w.now, "q", force=True),
    (ACTIVE, Move.COMPLETED): lambda w, i: w.ack([(i, held(w))]),
    (ACTIVE, Move.FAILED): lambda w, i: w.fail(i, held(w), retry_after_ms=LATER_MS),
    (ACTIVE, Move.FAILED_RETRY_NOW): lambda w, i: w.fail(i, held(w), retry_after_ms=0),
    (ACTIVE, Move.RELEASED): lambda w, i: w.release(ReleaseItem(i, held(w))),
    (ACTIVE, Move.RELEASED_FOR_LATER): lambda w, i: w.release(
        ReleaseItem(i, held(w), delay_ms=LATER_MS)
    ),
    (ACTIVE, Move.DELETED): lambda w, i: decide_delete_active(w.shard, w.now, [i]),
}


def forbid(monkeypatch: pytest.MonkeyPatch, row: tuple[JobState | None, Move]) -> None:
    """The table has every row but this one."""
    left = {key: state for key, state in states.MOVES.items() if key != row}
    monkeypatch.setattr(states, "MOVES", left)


def held(world: World) -> int:
    """The delivery of the job that is held."""
    return next(
        lease.delivery
        for holder in world.shard.clocks.holders.values()
        for lease in holder.leases.values()
    )


@pytest.mark.parametrize("push", [alone, in_a_lot])
@pytest.mark.parametrize(("state", "move"), STEPS, ids=str)
def test_move_that_is_not_in_the_table_cannot_happen(world, monkeypatch, push, state, move):
    """Take its row out, and the fact is refused."""
    job_id = push(world, LATER_MS if state is SCHEDULED else 0)
    if state is ACTIVE:
        world.lease(holder=world.session())
    forbid(monkeypatch, (state, move))
    with pytest.raises(IllegalMove, match=f"job {job_id} in {state.name} cannot be {move.value}"):
        STEPS[state, move](world, job_id)


@pytest.mark.parametrize("push", [alone, in_a_lot])
@pytest.mark.parametrize(
    ("move", "delay_ms"), [(Move.PUSHED, 0), (Move.PUSHED_FOR_LATER, LATER_MS)]
)
def test_job_is_pushed_into_a_state_of_the_table(world, monkeypatch, push, move, delay_ms):
    forbid(monkeypatch, (None, move))
    with pytest.raises(IllegalMove, match=f"in no state cannot be {move.value}"):
        push(world, delay_ms)


@pytest.mark.parametrize("push", [alone, in_a_lot])
def test_active_jobs_of_a_deleted_queue_make_their_move_too(world, monkeypatch, push):
    job_id = push(world, 0)
    world.lease(holder=world.session())
    forbid(monkeypatch, (ACTIVE, Move.DELETED))
    with pytest.raises(IllegalMove, match=f"job {job_id} in ACTIVE cannot be deleted"):
        decide_delete_queue(world.shard, world.now, "q", force=True)
