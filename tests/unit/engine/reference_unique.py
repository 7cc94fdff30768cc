"""What unique keys must do, said as plainly as can be; a part of the reference model.

A push is planned on a copy of who holds what (`Keys`), one job after the other; what came out is
done to the model once all of them are accepted.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from jobline_server.engine.commands import Push, RefusalKind
from jobline_server.engine.unique_rule import UniqueMode, UniqueRule
from jobline_server.engine.values import JobState, PushOutcome, QueueSettings
from tests.pushed_rows import NewJob
from tests.unit.engine.reference_jobs import ModelJob, first

S, Out, Why, Mode = JobState, PushOutcome, RefusalKind, UniqueMode
Name = tuple[str, str]
"""A queue, and a key."""

STORED = (Out.CREATED, Out.REPLACED, Out.DEBOUNCED, Out.PARKED)


@dataclass
class Holder:
    """Who holds a key, or waits behind the holder."""

    id: int
    first_ms: int
    until_ms: int = 0
    active: bool = False
    started: bool = False
    cancelled: bool = False
    follows: bool = False


@dataclass
class Keys:
    """Who holds each key, who waits behind, and until when a key is throttled by which job."""

    holders: dict[Name, Holder] = field(default_factory=dict)
    parked: dict[Name, Holder] = field(default_factory=dict)
    throttled: dict[Name, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Plan:
    """What a push does to keys and to jobs that were there before it."""

    keys: Keys
    run_at_ms: dict[int, int] = field(default_factory=dict)
    parked: set[int] = field(default_factory=set)
    replaced: list[int] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    awaited: set[int] = field(default_factory=set)
    """Jobs that others depend on."""


def plan_on(keys: Keys, jobs: dict[int, ModelJob], command: Push) -> Plan:
    """A plan that has changed nothing yet, with what the jobs do at this moment; on the keys
    themselves where none of them changes.
    """
    if not command.rows.ties:
        return Plan(keys)
    copy = deepcopy(keys)
    for holder in [*copy.holders.values(), *copy.parked.values()]:
        job = jobs[holder.id]
        holder.active, holder.started = job.state is S.ACTIVE, job.delivery > 0
        holder.cancelled = job.cancel_requested
    awaited = {parent for ties in command.rows.ties for parent in ties.parents}
    awaited |= {parent for job in jobs.values() for parent in job.parents_left}
    return Plan(copy, awaited=awaited)


class NeedsTtl(Exception):
    """Nobody says how long the key is held."""


class Held(Exception):
    """Another job holds the key."""


class Awaited(Exception):
    """Others depend on the job that would be replaced."""


def rule_of(settings: QueueSettings) -> UniqueRule:
    """What holds for jobs of a queue that do not say."""
    return UniqueRule(settings.unique_mode, settings.unique_ttl_ms, settings.unique_max_wait_ms)


def mode_of(job: NewJob, of_queue: UniqueRule) -> UniqueMode:
    return job.options.rules.unique.mode or of_queue.mode or Mode.KEEP


def told_of(mode: UniqueMode, by_id: int) -> tuple[PushOutcome | RefusalKind, int]:
    """What a push is told of a job that was not stored, for the one that holds its key."""
    kept = {Mode.KEEP: Out.DUPLICATE, Mode.EXTEND: Out.EXTENDED, Mode.THROTTLE: Out.THROTTLED}
    if mode in kept:
        return kept[mode], by_id
    return Why.UNIQUE_KEY_HELD if mode is Mode.REJECT else Why.JOB_AWAITED, 0


def decide(
    plan: Plan, command: Push, job: NewJob, job_id: int, of_queue: UniqueRule, now_ms: int
) -> tuple[PushOutcome | RefusalKind, int]:
    """What becomes of a job, which gets this id if it is stored."""
    own = job.options.rules.unique
    mode = mode_of(job, of_queue)
    ttl_ms = first(own.ttl_ms, of_queue.ttl_ms, 0)
    if mode in (Mode.EXTEND, Mode.THROTTLE) and not ttl_ms:
        raise NeedsTtl
    new = Holder(job_id, now_ms, now_ms + ttl_ms if ttl_ms else 0)
    name, keys = (command.queue, job.ties.unique_key), plan.keys
    if mode in (Mode.KEEP, Mode.REJECT, Mode.EXTEND, Mode.THROTTLE):
        by_id = held_by(keys, name, now_ms)
        if by_id:
            if mode is Mode.REJECT:
                raise Held
            if mode is Mode.EXTEND:
                _extend(keys, name, by_id, new.until_ms, now_ms)
            return told_of(mode, by_id)
        if mode is Mode.THROTTLE:
            keys.throttled[name] = (job_id, new.until_ms)
        keys.holders[name] = new
        return Out.CREATED, job_id
    outcome = _replacing(plan, mode, name, new, now_ms)
    if mode is Mode.DEBOUNCE and new.follows:
        max_wait_ms = own.max_wait_ms if own.max_wait_ms is not None else of_queue.max_wait_ms
        if max_wait_ms is not None:
            plan.run_at_ms[job_id] = min(job.run_at_ms, new.first_ms + max_wait_ms)
    return outcome, job_id


def held_by(keys: Keys, name: Name, now_ms: int) -> int:
    """The job that holds a key, or that it is throttled by; 0 for none."""
    holder = keys.holders.get(name)
    if holder is not None and not 0 < holder.until_ms <= now_ms:
        return holder.id
    if name in keys.parked:
        return keys.parked[name].id
    by_id, ends_ms = keys.throttled.get(name, (0, 0))
    return by_id if ends_ms > now_ms else 0


def _replacing(plan: Plan, mode: UniqueMode, name: Name, new: Holder, now_ms: int) -> PushOutcome:
    """The new job takes a place: the holder's, or the one behind it."""
    keys = plan.keys
    holder = keys.holders.get(name)
    if holder is not None and 0 < holder.until_ms <= now_ms:
        holder = None
    is_behind = holder and (holder.active or (mode is Mode.AFTER_ACTIVE and holder.started))
    replaced = [one for one in (None if is_behind else holder, keys.parked.get(name)) if one]
    if any(one.id in plan.awaited for one in replaced):
        raise Awaited
    keys.parked.pop(name, None)
    for one in replaced:
        plan.replaced.append(one.id)
        new.follows = True
        if mode is Mode.DEBOUNCE:
            new.first_ms = one.first_ms
    if is_behind and holder:
        if mode is Mode.SUPERSEDE and holder.active and not holder.cancelled:
            holder.cancelled = True
            plan.cancelled.append(holder.id)
        plan.parked.add(new.id)
        keys.parked[name] = new
        return Out.PARKED
    keys.holders[name] = new
    if not replaced:
        return Out.CREATED
    return Out.DEBOUNCED if mode is Mode.DEBOUNCE and holder else Out.REPLACED


def _extend(keys: Keys, name: Name, by_id: int, until_ms: int, now_ms: int) -> None:
    """Who holds the key until a time holds it for longer, and so does its throttle."""
    for held in (keys.holders.get(name), keys.parked.get(name)):
        if held is not None and held.id == by_id and held.until_ms:
            held.until_ms = max(held.until_ms, until_ms)
    thrown_by, ends_ms = keys.throttled.get(name, (0, 0))
    if ends_ms > now_ms:
        keys.throttled[name] = thrown_by, max(ends_ms, until_ms)
