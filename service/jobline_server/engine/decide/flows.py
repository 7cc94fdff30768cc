"""Flows: the checks before the pushes of a flow are decided one after another.

A flow is stored whole or not at all, and what is decided is never taken back. So all that may
refuse any of its pushes is checked before the first one is decided; then they are `is_checked`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from jobline_server.engine import limits
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.fairness import refuse_priorities
from jobline_server.engine.decide.limiters import check_limiters
from jobline_server.engine.group_room import GroupRoom
from jobline_server.engine.keys import REQUEST_ID, KeyRecord, hash_of
from jobline_server.engine.load import Load
from jobline_server.engine.room import RETRY_AFTER_MS, Room
from jobline_server.engine.ties import NO_TIES
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView


class FlowChecks:
    """Checks the pushes of a flow as if those before were stored. None has keys or a batch."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._room = Room(load)
        self._groups = GroupRoom(load)
        self._requests = self._children = 0
        self._new_queues: dict[int, set[str]] = {}

    def check(self, shard: ShardView, command: Push, children: int) -> None:
        """Checks the next push, whose jobs wait for so many together. Raises `Refused` with
        INVALID_FIELD, LIMITER_NOT_FOUND, QUEUE_FULL, GROUP_FULL, GROUPS_FULL, SERVER_FULL,
        DEPENDENCIES_FULL or REQUEST_IDS_FULL.
        """
        queue, rows, payloads = shard.queues.get(command.queue), command.rows, command.payloads
        refuse_priorities(queue, command)
        check_limiters(shard.limiters, command, rows, payloads)
        size = payloads.bytes_of(0, len(payloads)) + sum(map(len, rows.payloads))
        refusal = self._room.refusal(queue, len(rows) + len(payloads), size)
        if refusal is None and rows.ties:
            refusal = self._groups.refusal(queue, [ties.group for ties in rows.ties])
        if refusal is not None:
            try:
                raise refusal
            finally:
                # The exception holds this frame: without a cycle, it is freed at once.
                del refusal
        if queue is None:
            self._check_new_queue(shard, command.queue)
        self._check_load(children, has_request_id=bool(command.request_id))

    def check_children(self, children: int) -> None:
        """Checks so many children that a job gets besides. Raises `Refused` with
        DEPENDENCIES_FULL.
        """
        self._check_load(children, has_request_id=False)

    def _check_new_queue(self, shard: ShardView, name: str) -> None:
        new = self._new_queues.setdefault(shard.number, set())
        new.add(name)
        if len(shard.queues) + len(new) > limits.SHARD_QUEUES_MAX:
            message = f"there is no queue {name}, and its shard has as many others as there may be"
            raise Refused(RefusalKind.SERVER_FULL, message, retry_after_ms=RETRY_AFTER_MS)

    def _check_load(self, children: int, *, has_request_id: bool) -> None:
        load = self._load
        self._children += children
        self._requests += has_request_id
        if self._children and load.dependencies + self._children > load.dependencies_max:
            message = (
                f"the server keeps {load.dependencies} of {load.dependencies_max} dependencies"
            )
            raise Refused(RefusalKind.DEPENDENCIES_FULL, message, retry_after_ms=RETRY_AFTER_MS)
        if self._requests and load.requests + self._requests > load.requests_max:
            message = f"the server keeps {load.requests} of {load.requests_max} request ids"
            raise Refused(RefusalKind.REQUEST_IDS_FULL, message, retry_after_ms=60_000)


def known_part(shard: ShardView, now: Now, command: Push) -> KeyRecord | None:
    """Returns the record of the same push if it came before. Raises `Refused` with
    IDEMPOTENCY_MISMATCH if another one did.
    """
    if not command.request_id:
        return None
    request_hash = hash_of(REQUEST_ID, command.queue, command.request_id)
    record = shard.requests.find(request_hash, shard.age.at(now))
    if record is not None and record.digest != command.request_digest:
        raise Refused(
            RefusalKind.IDEMPOTENCY_MISMATCH,
            "request_id was used before with another request",
            field="request_id",
        )
    return record


def checked(
    command: Push, children: Sequence[tuple[int, ...]], on_failure: Sequence[bytes] = ()
) -> Push:
    """Returns a push that was checked, whose rows wait for the jobs with these ids; `on_failure`,
    empty if there are none, are their policies about these, as in `Ties`.
    """
    rows = command.rows
    if children:
        ties = rows.ties or [NO_TIES] * len(rows)
        policies = on_failure or [b""] * len(children)
        tied = [
            replace(own, parents=ids, on_failure=of_job)
            for own, ids, of_job in zip(ties, children, policies, strict=True)
        ]
        rows = replace(rows, ties=tied)
    return replace(command, rows=rows, has_room=True, is_checked=True)
