"""The legal moves of a job, as data: state × move → state.

A move that is not in the table is illegal: `after` raises and nothing has changed. The diagram in
`docs/architecture.md` is generated from this table. `None` is the state before a push and after a
deletion.
"""

from __future__ import annotations

from enum import Enum

from jobline_server.engine.values import ENDED_STATES, WAITING_STATES, JobState


class Move(Enum):
    """The moves of a job, named after their facts."""

    # Enum members hash their names in Python code, which is slow; identity is enough.
    __hash__ = object.__hash__

    PUSHED = "pushed"
    PUSHED_FOR_LATER = "pushed for later"
    PUSHED_BLOCKED = "pushed behind others"
    DUE = "due"
    PROMOTED = "promoted"
    POSTPONED = "given another time"
    UNBLOCKED = "unblocked"
    UNBLOCKED_FOR_LATER = "unblocked before its time"
    LEASED = "leased"
    COMPLETED = "completed"
    FAILED = "failed, retried later"
    FAILED_RETRY_NOW = "failed, retried at once"
    STALLED = "lease lost"
    STALLED_WAIT = "lease lost again, retried later"
    RELEASED = "released"
    RELEASED_FOR_LATER = "released for later"
    SET_ASIDE = "added children"
    DIED = "died"
    EXPIRED = "expired"
    EXPIRED_TO_DEAD = "expired, to the dead letters"
    DEPENDENCY_FAILED = "a dependency failed"
    CANCELLED = "cancelled"
    RETRIED = "retried by hand"
    AGED_OUT = "past its first retention"
    DELETED = "deleted"


_S = JobState

MOVES: dict[tuple[JobState | None, Move], JobState | None] = {
    (None, Move.PUSHED): _S.READY,
    (None, Move.PUSHED_FOR_LATER): _S.SCHEDULED,
    (None, Move.PUSHED_BLOCKED): _S.BLOCKED,
    (_S.SCHEDULED, Move.DUE): _S.READY,
    (_S.SCHEDULED, Move.PROMOTED): _S.READY,
    (_S.SCHEDULED, Move.POSTPONED): _S.SCHEDULED,
    (_S.READY, Move.POSTPONED): _S.SCHEDULED,
    (_S.BLOCKED, Move.UNBLOCKED): _S.READY,
    (_S.BLOCKED, Move.UNBLOCKED_FOR_LATER): _S.SCHEDULED,
    (_S.READY, Move.LEASED): _S.ACTIVE,
    (_S.ACTIVE, Move.COMPLETED): _S.COMPLETED,
    (_S.ACTIVE, Move.FAILED): _S.SCHEDULED,
    (_S.ACTIVE, Move.FAILED_RETRY_NOW): _S.READY,
    (_S.ACTIVE, Move.STALLED): _S.READY,
    (_S.ACTIVE, Move.STALLED_WAIT): _S.SCHEDULED,
    (_S.ACTIVE, Move.RELEASED): _S.READY,
    (_S.ACTIVE, Move.RELEASED_FOR_LATER): _S.SCHEDULED,
    (_S.ACTIVE, Move.SET_ASIDE): _S.BLOCKED,
    (_S.ACTIVE, Move.DIED): _S.DEAD,
    (_S.ACTIVE, Move.CANCELLED): _S.CANCELLED,
    (_S.BLOCKED, Move.DEPENDENCY_FAILED): _S.DEAD,
    **{(state, Move.CANCELLED): _S.CANCELLED for state in sorted(WAITING_STATES)},
    **{(state, Move.EXPIRED): _S.EXPIRED for state in sorted(WAITING_STATES)},
    **{(state, Move.EXPIRED_TO_DEAD): _S.DEAD for state in sorted(WAITING_STATES)},
    **{(state, Move.RETRIED): _S.READY for state in [*sorted(ENDED_STATES), _S.STALE]},
    **{(state, Move.AGED_OUT): _S.STALE for state in sorted(ENDED_STATES)},
    (_S.ACTIVE, Move.DELETED): None,  # with its queue
    **{
        (state, Move.DELETED): None
        for state in [*sorted(WAITING_STATES), *sorted(ENDED_STATES), _S.STALE]
    },
}


class IllegalMove(Exception):
    """Raised for a fact that does not fit the state of its job, which is a bug."""


def after(state: JobState | None, move: Move, job_id: int) -> JobState | None:
    """Returns the state after a move; raises `IllegalMove` with state, move and id."""
    try:
        return MOVES[state, move]
    except KeyError:
        where = "no state" if state is None else state.name
        raise IllegalMove(f"job {job_id} in {where} cannot be {move.value}") from None


def live(state: JobState | None, move: Move, job_id: int) -> JobState:
    """Returns the state after a move that must not delete the job; raises `IllegalMove`."""
    following = after(state, move, job_id)
    if following is None:
        raise IllegalMove(f"job {job_id} would have no state after it was {move.value}")
    return following


def as_mermaid() -> str:
    """Returns the table as a Mermaid state diagram, for the documentation."""

    def label(state: JobState | None) -> str:
        return "[*]" if state is None else state.name

    rows = (
        f"    {label(before)} --> {label(following)}: {move.value}"
        for (before, move), following in MOVES.items()
    )
    return "stateDiagram-v2\n" + "\n".join(rows) + "\n"
