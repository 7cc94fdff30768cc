"""Unique keys: decides what becomes of a pushed job while another one of its queue holds its key.

The jobs of a push are decided one after the other, each as if those before it were stored. Nothing
is emitted until all are decided, so `Claims` keeps what the push has made of each key so far.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter

from jobline_server.engine import effective
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.decide.held_keys import Deviation, HeldKey, Waiting, going
from jobline_server.engine.decide.unique_holders import settings_of
from jobline_server.engine.entries import CancelRequested
from jobline_server.engine.job import Job
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.push_fields import option_field, unique_key_field
from jobline_server.engine.ties import Claim, Ties
from jobline_server.engine.unique import has_let_go, unique_hash
from jobline_server.engine.unique_entries import JobsReplaced, UniqueKeysExtended
from jobline_server.engine.unique_rule import UniqueMode
from jobline_server.engine.values import (
    STORED_OUTCOMES,
    JobOptions,
    JobState,
    Now,
    PushOutcome,
)
from jobline_server.engine.view import ShardView

_KEEPS = {
    UniqueMode.KEEP: PushOutcome.DUPLICATE,
    UniqueMode.EXTEND: PushOutcome.EXTENDED,
    UniqueMode.THROTTLE: PushOutcome.THROTTLED,
}
# They cannot do without a `unique_ttl`.
_NEEDS_TTL = (UniqueMode.EXTEND, UniqueMode.THROTTLE)
_MODE = attrgetter("rules.unique.mode")


class Claims:
    """Decides the unique keys of the `rows` of a push. Call `decide` for each job in order, then
    `put_into` for the rows that are new; `emit` after they are stored.
    """

    __slots__ = (
        "_aged_ms",
        "_awaited_ids",
        "_awaited_indexes",
        "_cancelled",
        "_command",
        "_extended",
        "_keys",
        "_now",
        "_replaced",
        "_run_at_ms",
        "_settings",
        "_shard",
        "_throttles",
        "_ties",
        "stored_rows",
    )

    def __init__(self, shard: ShardView, now: Now, command: Push) -> None:
        self._shard = shard
        self._now = now
        self._command = command
        self._aged_ms = shard.age.at(now)
        self._settings = settings_of(shard, command.queue)
        rows = command.rows
        self._awaited_ids = {parent for ties in rows.ties for parent in ties.parents}
        self._awaited_indexes = set(chain.from_iterable(rows.parent_indexes))
        self._keys: dict[str, HeldKey] = {}
        self._ties: dict[int, Ties] = {}
        self._run_at_ms: dict[int, int] = {}
        self._replaced: list[Waiting] = []
        self._cancelled: list[int] = []
        self._extended: dict[tuple[str, int], int] = {}
        self._throttles = 0
        self.stored_rows = b""
        """Which rows are stored, for a repeat of the push; empty for all."""

    def decide(self, index: int, next_id: int) -> Deviation | None:
        """Decides the row with this index, which gets `next_id` if it is stored. Returns None if it
        is stored and nothing else happens.
        """
        deviation = None
        if self._command.rows.ties[index].unique_key:
            deviation = self._decide(index, next_id)
        self.note_id(index, next_id if deviation is None else deviation[1])
        return deviation

    def _decide(self, index: int, next_id: int) -> Deviation | None:
        rows = self._command.rows
        ties = rows.ties[index]
        options, settings = rows.options[index], self._settings
        mode = effective.unique_mode(options, settings)
        ttl_ms = effective.unique_ttl_ms(options, settings)
        if mode in _NEEDS_TTL and not ttl_ms:
            why = f"{mode.name} needs a unique_ttl, of the job or of its queue"
            field = option_field(self._command, index, "unique_ttl", _MODE)
            raise Refused(RefusalKind.INVALID_FIELD, why, field=field)
        until_ms = self._aged_ms + ttl_ms if ttl_ms else 0
        key: HeldKey = self._find(ties.unique_key)
        deviation = self._deviation(key, mode, ties.unique_key, index, next_id, until_ms)
        if deviation is not None and deviation[0] not in STORED_OUTCOMES:
            return deviation
        replaced_now = going(key, deviation)
        if any(self._is_awaited(one.id) for one in replaced_now):
            return self._refuse_awaited(index)
        if mode is UniqueMode.SUPERSEDE:
            self._cancel_holder(key, deviation)
        replaced, first_ms = self._replace(key, replaced_now), 0
        is_parked = deviation is not None and deviation[0] is PushOutcome.PARKED
        throttles = mode is UniqueMode.THROTTLE
        if mode is UniqueMode.DEBOUNCE and replaced is not None:
            first_ms = replaced.first_ms
            self._bound_delay(index, first_ms, effective.unique_max_wait_ms(options, settings))
        if until_ms or first_ms or is_parked:
            claim = Claim(until_ms, first_ms, is_parked, throttles)
            self._ties[index] = replace(ties, claim=claim)
        size = len(rows.payloads[index])
        new = Waiting(next_id, size, ties.group, first_ms or self._now.wall_ms)
        if is_parked:
            key.parked = new
            return deviation
        self._throttles += throttles
        throttled_id = next_id if throttles else key.throttled_id
        self._keys[ties.unique_key] = HeldKey(next_id, new, throttled_id=throttled_id)
        return deviation

    def _deviation(
        self, key: HeldKey, mode: UniqueMode, name: str, index: int, next_id: int, until_ms: int
    ) -> Deviation | None:
        """Returns what becomes of a job whose key is held; None if it is free."""
        parked_id = 0 if key.parked is None else key.parked.id
        held_by = key.holder_id or parked_id or key.throttled_id
        if mode in _KEEPS or mode is UniqueMode.REJECT:
            if not held_by:
                return None
            if mode is UniqueMode.EXTEND:
                before_ms = self._extended.get((name, held_by), 0)
                self._extended[name, held_by] = max(before_ms, until_ms)
            return self._reject(index, held_by) if mode not in _KEEPS else (_KEEPS[mode], held_by)
        if not key.holder_id:
            # A throttle alone does not keep a job from taking the key.
            return None if key.parked is None else (PushOutcome.REPLACED, next_id)
        if key.waiting is None or (mode is UniqueMode.AFTER_ACTIVE and key.stays):
            return PushOutcome.PARKED, next_id
        debounced = mode is UniqueMode.DEBOUNCE
        return PushOutcome.DEBOUNCED if debounced else PushOutcome.REPLACED, next_id

    def _reject(self, index: int, held_by: int) -> Deviation:
        if not self._command.atomic:
            return RefusalKind.UNIQUE_KEY_HELD, 0
        raise Refused(
            RefusalKind.UNIQUE_KEY_HELD,
            f"job {held_by} holds this unique_key"
            if held_by < self._shard.next_id()
            # That job has no id: nothing of this push is stored.
            else "another job of this push has this unique_key",
            field=unique_key_field(self._command, index),
        )

    def note_id(self, index: int, job_id: int) -> None:
        """Notes which job a row stands for: other rows may depend on it."""
        if index in self._awaited_indexes:
            self._awaited_ids.add(job_id)

    def _is_awaited(self, job_id: int) -> bool:
        is_listed = self._shard.dependencies.awaited.find(job_id) is not None
        return is_listed or job_id in self._awaited_ids

    def _refuse_awaited(self, index: int) -> Deviation:
        if not self._command.atomic:
            return RefusalKind.JOB_AWAITED, 0
        raise Refused(
            RefusalKind.JOB_AWAITED,
            "others depend on the job whose place this one would take",
            field=unique_key_field(self._command, index),
        )

    def _cancel_holder(self, key: HeldKey, deviation: Deviation | None) -> None:
        """Notes that an ACTIVE holder is to be cancelled."""
        is_parked = deviation is not None and deviation[0] is PushOutcome.PARKED
        if is_parked and key.cancels:
            self._cancelled.append(key.holder_id)
            key.cancels = False

    def _replace(self, key: HeldKey, going: Sequence[Waiting]) -> Waiting | None:
        """Notes the jobs whose place a new one takes; returns the last of them."""
        self._replaced += going
        if not going:
            return None
        if going[-1] is key.parked:
            key.parked = None
        return going[-1]

    def _bound_delay(self, index: int, first_ms: int, max_wait_ms: int | None) -> None:
        """Has a job start no later than its series may wait."""
        starts = self._command.rows.run_at_ms
        if max_wait_ms is not None and starts and starts[index] > first_ms + max_wait_ms:
            self._run_at_ms[index] = first_ms + max_wait_ms

    def _find(self, name: str) -> HeldKey:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = self._look_up(unique_hash(self._command.queue, name))
        return key

    def _look_up(self, key_hash: bytes) -> HeldKey:
        unique, jobs = self._shard.unique, self._shard.jobs
        holder_id, parked_id = unique.holder(key_hash), unique.behind(key_hash)
        throttle = unique.throttled.find(key_hash, self._aged_ms)
        key = HeldKey(throttled_id=0 if throttle is None else throttle.job_id)
        holder = None if holder_id is None else jobs.find(holder_id)
        parked = None if parked_id is None else jobs.find(parked_id)
        if parked is not None:
            key.parked = self._waiting(parked)
        if holder is None or has_let_go(holder, self._aged_ms):
            return key
        key.holder_id = holder.id
        key.stays = holder.delivery > 0
        key.cancels = not holder.cancel_requested
        if holder.state is not JobState.ACTIVE:
            key.waiting = self._waiting(holder)
        return key

    def _waiting(self, job: Job) -> Waiting:
        ties = job.ties
        first_ms = ties.claim.first_ms or job.pushed_ms
        return Waiting(job.id, len(job.payload), ties.group, first_ms)

    def replaced_load(self) -> tuple[list[str], int]:
        """Returns the group of each waiting job that is replaced, and the bytes of their
        payloads.
        """
        groups = [one.group for one in self._replaced]
        return groups, sum([one.payload_bytes for one in self._replaced])

    def check_room(self) -> None:
        """Refuses a push whose keys would be more throttled ones than the server keeps."""
        load = self._shard.load
        if self._throttles and load.throttles + self._throttles > load.keys_max:
            raise Refused(
                RefusalKind.KEYS_FULL,
                f"the server keeps {load.throttles} of {load.keys_max} throttled keys",
                retry_after_ms=60_000,
            )

    def put_into(self, rows: JobColumns, fresh: Sequence[int]) -> JobColumns:
        """Returns the rows that are stored, which have these indexes, with their claims."""
        starts = self._run_at_ms
        run_at_ms = rows.run_at_ms
        if starts:
            run_at_ms = [starts.get(at, due_ms) for at, due_ms in enumerate(run_at_ms)]
        ties = [self._ties.get(at, of_row) for at, of_row in enumerate(rows.ties)]
        claimed = replace(rows, run_at_ms=run_at_ms, ties=ties)
        if len(fresh) == len(rows):
            return claimed
        self.stored_rows = as_bits(fresh, len(rows))
        return claimed.picked(fresh)

    def emit(self) -> None:
        """Emits what the push does to other jobs, after its own are stored."""
        at_ms, queue, shard = self._now.wall_ms, self._command.queue, self._shard
        if self._replaced:
            shard.emit(JobsReplaced(at_ms, queue, [one.id for one in self._replaced]))
        if self._cancelled:
            shard.emit(CancelRequested(at_ms, queue, self._cancelled))
        if self._extended:
            keys, ids = map(list, zip(*self._extended, strict=True))
            until_ms = list(self._extended.values())
            shard.emit(UniqueKeysExtended(at_ms, queue, keys, ids, until_ms, self._aged_ms))


def outcome_of_kept(shard: ShardView, queue: str, options: JobOptions) -> PushOutcome | RefusalKind:
    """Returns the outcome of a job that was not stored because of its unique key, for a repeat of
    its push.
    """
    mode = effective.unique_mode(options, settings_of(shard, queue))
    if mode is UniqueMode.REJECT:
        return RefusalKind.UNIQUE_KEY_HELD
    # Another mode stores a job, unless others depend on the one whose place it would take.
    return _KEEPS.get(mode, RefusalKind.JOB_AWAITED)


def as_bits(indexes: Sequence[int], count: int) -> bytes:
    """Returns `count` bits, of which those with these indexes are 1, the first one lowest."""
    bits = 0
    for index in indexes:
        bits |= 1 << index
    return bits.to_bytes((count + 7) // 8, "little")
