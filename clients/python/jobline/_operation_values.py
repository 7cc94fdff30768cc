"""What operators did, as the client returns it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum


class OperationState(IntEnum):
    """How far an operation is. One that is INTERRUPTED was ended by a caller that went away, a
    failure, or a stop of the server; what it did until then stays done.
    """

    UNSPECIFIED = 0
    RUNNING = 1
    DONE = 2
    INTERRUPTED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A call by which an operator changed something.

    - `verb`: the method that was called, such as "PauseQueue". `principal`: who called it; until
      callers have identities, "anonymous@" and their host. `reason`: why.
    - `queue`, `group`, `limiter`, `schedule`, `batch_id`: what was meant, "" or 0 where none was.
      `request`: all that was asked, as JSON, cut after 2,048 characters.
    - `count`: how many jobs it changed. `requested`: active ones that it asked to stop.
    - `undoable`: `client.admin.undo` may undo it; if not, `not_undoable_because` says why.
    - `undone_by`, `undoes`: ids of other operations, or "".
    - `change`: what it changed, as JSON with `before` and `after`, or "".
    """

    id: str
    state: OperationState
    verb: str
    principal: str
    reason: str
    queue: str
    group: str
    limiter: str
    schedule: str
    batch_id: int
    request: str
    started_at: datetime | None
    ended_at: datetime | None
    count: int
    requested: int
    undoable: bool
    not_undoable_because: str
    undone_by: str
    undoes: str
    change: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """The outcome of an undo, or what it would be with `dry_run`.

    - `count`: how many jobs are as they were before; `skipped`: those that were not put back.
    - `operation_id`: names the undo, which is an operation too; "" for a dry run.
    """

    count: int
    skipped: int
    operation_id: str
