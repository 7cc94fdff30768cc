"""What a push must do, said as plainly as can be; a part of the reference model."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from jobline_server.engine.commands import Push, RefusalKind
from jobline_server.engine.producers import Call
from jobline_server.engine.values import AckLevel, EndReason, JobOptions, JobState, PushOutcome
from tests.pushed_payloads import jobs_in
from tests.pushed_rows import NewJob
from tests.unit.engine.reference_dependencies import fail_new, policies_of, push_behind
from tests.unit.engine.reference_jobs import Key, ModelJob, ModelProducer, Request
from tests.unit.engine.reference_limits import ModelQueue
from tests.unit.engine.reference_model import ReferenceModel
from tests.unit.engine.reference_state import WAITING
from tests.unit.engine.reference_unique import (
    STORED,
    Awaited,
    Held,
    NeedsTtl,
    Plan,
    decide,
    held_by,
    mode_of,
    plan_on,
    rule_of,
    told_of,
)

KEY_WINDOW_MS = 24 * 3_600_000
REQUEST_WINDOW_MS = 10 * 60_000

Outcomes = list[tuple[PushOutcome | RefusalKind, int]]


class Refusal(Exception):
    """The command is refused, for this reason."""


def push(model: ReferenceModel, command: Push, next_id: int) -> Outcomes:
    """An outcome and an id for each job, in order. `next_id` is the first id that is free."""
    name = command.queue
    _check_serial(model, command)
    command = _written(command)
    again = model.requests.get((name, command.request_id))
    if command.request_id and again and again.expires_ms > model.wall_ms:
        return _told_again(model, command, again.outcomes)
    for call in command.calls:
        again = _call_again(model, call)
        if again:
            return _told_again(model, command, again.outcomes)
    # A queue that is not there yet takes the first id itself.
    first_id = next_id + (name not in model.queues)
    plan = plan_on(model.unique, model.jobs, command)
    outcomes, created, keys = _sort_out(model, command, first_id, plan)
    parents = _parents_of(model, command, outcomes, first_id)
    _check_room(model, name, created, first_id, plan)
    volatile = command.level is AckLevel.MEMORY
    if not created:
        model.unique = plan.keys
        return outcomes
    model.queues.setdefault(name, ModelQueue())
    model.keys |= keys
    if command.request_id:
        expires_ms = model.wall_ms + REQUEST_WINDOW_MS
        model.requests[name, command.request_id] = Request(outcomes, expires_ms, volatile)
    for call in command.calls:
        _remember_call(model, call, Request(outcomes, 0, volatile))
    _store(model, command, created, first_id, plan, parents)
    model.unique = plan.keys
    for job_id in plan.replaced:
        model.end(model.jobs[job_id], JobState.CANCELLED, EndReason.REPLACED)
    for job_id in plan.cancelled:
        model.jobs[job_id].cancel_requested = True
    model.superseded += plan.cancelled
    fail_new(model)
    return outcomes


def _store(
    model: ReferenceModel,
    command: Push,
    created: list[NewJob],
    first_id: int,
    plan: Plan,
    parents: dict[int, list[int]],
) -> None:
    plain = [new.beside_bytes for new in created if new.beside_bytes is not None]
    first_plain = first_id + len(created) - len(plain)
    ready: list[ModelJob] = []
    for job_id, new in enumerate(created, first_id):
        options = _with_ttl(new.options, model.settings(command.queue).ttl_ms)
        job = ModelJob(
            job_id, command.queue, new.payload, options, command.level is AckLevel.MEMORY
        )
        if options.rules.ttl_ms:
            job.expires_ms = model.wall_ms + options.rules.ttl_ms
        job.job_key, job.unique_key, job.pushed_ms = new.job_key, new.ties.unique_key, model.wall_ms
        job.beside_bytes, job.group = new.beside_bytes or 0, new.ties.group
        job.policies = policies_of(new.ties)
        model.jobs[job_id] = job
        run_at_ms = plan.run_at_ms.get(job_id, new.run_at_ms)
        if job_id in plan.parked:
            job.parked = True
        if push_behind(model, job, parents[job_id], run_at_ms):
            continue
        if run_at_ms > model.wall_ms:
            # Plain jobs become ready together, when the first of them does.
            model.wait_until(job, run_at_ms, min(job_id, first_plain))
        else:
            ready.append(job)
    model.ready_together(ready)


def _written(command: Push) -> Push:
    """Jobs of groups, with unique keys, or that depend on others, are written, whatever the push
    asks for.
    """
    if command.level is AckLevel.MEMORY and (command.rows.ties or command.rows.parent_indexes):
        return replace(command, level=AckLevel.BUFFERED)
    return command


def _check_serial(model: ReferenceModel, command: Push) -> None:
    """Jobs of a serial group run in the order of their pushes."""
    rows = zip(command.rows.options, command.rows.ties, strict=False)
    out_of_order = [own for own, ties in rows if ties.group and (own.priority or own.rules.lifo)]
    if out_of_order and not model.settings(command.queue).fair:
        raise Refusal("INVALID_FIELD")


def _with_ttl(options: JobOptions, ttl_ms: int | None) -> JobOptions:
    """A job without a TTL has that of its queue."""
    if not ttl_ms or options.rules.ttl_ms is not None:
        return options
    return replace(options, rules=replace(options.rules, ttl_ms=ttl_ms))


def _parents_of(
    model: ReferenceModel, command: Push, outcomes: Outcomes, first_id: int
) -> dict[int, list[int]]:
    """The parents of each new job by its id, each once; all of them must be known."""
    parents: dict[int, list[int]] = {}
    for job, (outcome, job_id) in zip(jobs_in(command), outcomes, strict=True):
        if outcome not in STORED:
            continue
        named = list(job.ties.parents)
        for index in job.parent_indexes:
            if isinstance(outcomes[index][0], RefusalKind):
                raise Refusal("JOB_NOT_FOUND")
            named.append(outcomes[index][1])
        for parent in named:
            if parent not in model.jobs and parent < first_id:
                raise Refusal("JOB_NOT_FOUND")
        parents[job_id] = list(dict.fromkeys(named))
    return parents


def _call_again(model: ReferenceModel, call: Call) -> Request | None:
    """The call when it came before. What is never written is known beside the rest, and goes with
    the process.
    """
    for volatile in (False, True):
        known = model.producers.get((call.producer, volatile))
        if known and known.last_seen_ms + REQUEST_WINDOW_MS > model.wall_ms:
            if call.sequence < known.below:
                raise Refusal("CALL_OVER")
            if call.sequence in known.calls:
                return known.calls[call.sequence]
    return None


def _remember_call(model: ReferenceModel, call: Call, answer: Request) -> None:
    place = (call.producer, answer.volatile)
    known = model.producers.get(place)
    if known is None or known.last_seen_ms + REQUEST_WINDOW_MS <= model.wall_ms:
        known = model.producers[place] = ModelProducer()
    known.last_seen_ms = model.wall_ms
    known.below = max(known.below, call.answered_below)
    known.calls[call.sequence] = answer


def _sort_out(
    model: ReferenceModel, command: Push, first_id: int, plan: Plan
) -> tuple[Outcomes, list[NewJob], dict[tuple[str, str], Key]]:
    """What becomes of each job, which are new, and their keys."""
    outcomes: Outcomes = []
    created: list[NewJob] = []
    keys: dict[tuple[str, str], Key] = {}
    volatile = command.level is AckLevel.MEMORY
    referred = {index for indexes in command.rows.parent_indexes for index in indexes}
    for index, job in enumerate(jobs_in(command)):
        job_id, place = first_id + len(created), (command.queue, job.job_key)
        known = keys.get(place) or model.keys.get(place) if job.job_key else None
        if known is None or known.expires_ms <= model.wall_ms:
            outcome = _by_unique_key(model, command, job, job_id, plan)
            outcomes.append(outcome)
            if index in referred:
                plan.awaited.add(outcome[1])
            if outcome[0] not in STORED:
                continue
            created.append(job)
            if job.job_key:
                keys[place] = Key(job_id, job.payload, model.wall_ms + KEY_WINDOW_MS, volatile)
        elif _is_same(known, job, command):
            outcomes.append((PushOutcome.DUPLICATE, known.job_id))
        elif command.atomic:
            raise Refusal("IDEMPOTENCY_MISMATCH")
        else:
            outcomes.append((RefusalKind.IDEMPOTENCY_MISMATCH, 0))
        if index in referred:
            plan.awaited.add(outcomes[index][1])
    return outcomes, created, keys


def _by_unique_key(
    model: ReferenceModel, command: Push, job: NewJob, job_id: int, plan: Plan
) -> tuple[PushOutcome | RefusalKind, int]:
    """What becomes of a job whose job key is new."""
    if not job.ties.unique_key:
        return PushOutcome.CREATED, job_id
    rule = rule_of(model.settings(command.queue))
    try:
        return decide(plan, command, job, job_id, rule, model.wall_ms)
    except NeedsTtl:
        raise Refusal("INVALID_FIELD") from None
    except Held:
        if command.atomic:
            raise Refusal("UNIQUE_KEY_HELD") from None
        return RefusalKind.UNIQUE_KEY_HELD, 0
    except Awaited:
        if command.atomic:
            raise Refusal("JOB_AWAITED") from None
        return RefusalKind.JOB_AWAITED, 0


def _is_same(known: Key, job: NewJob, command: Push) -> bool:
    """The same payload, and no promise that the first job does not have."""
    safe = not known.volatile or command.level is AckLevel.MEMORY
    return known.payload == job.payload and safe


def _told_again(model: ReferenceModel, command: Push, outcomes: Outcomes) -> Outcomes:
    """What was created is told as before; what was known is looked up again."""
    told = list(outcomes)
    for index, job in enumerate(jobs_in(command)):
        if outcomes[index][0] in STORED:
            told[index] = (PushOutcome.CREATED, outcomes[index][1])
            continue
        known = model.keys.get((command.queue, job.job_key))
        valid = known is not None and known.expires_ms > model.wall_ms
        told[index] = (RefusalKind.IDEMPOTENCY_MISMATCH, 0)
        if job.ties.unique_key and not valid:
            name = command.queue, job.ties.unique_key
            mode = mode_of(job, rule_of(model.settings(command.queue)))
            told[index] = told_of(mode, held_by(model.unique, name, model.wall_ms))
        if known is not None and valid and _is_same(known, job, command):
            told[index] = (PushOutcome.DUPLICATE, known.job_id)
    return told


def _check_room(
    model: ReferenceModel, name: str, created: list[NewJob], first_id: int, plan: Plan
) -> None:
    """Jobs that are replaced leave their room to the new ones."""
    replaced = [
        (created[job_id - first_id].payload, created[job_id - first_id].ties.group)
        if job_id >= first_id
        else (model.jobs[job_id].payload, model.jobs[job_id].group)
        for job_id in plan.replaced
    ]
    count = len(created) - len(replaced)
    if model.limiters.missing(new.options for new in created):
        raise Refusal("LIMITER_NOT_FOUND")
    most = model.settings(name).max_waiting
    waiting = sum(job.queue == name for job in model.live(*WAITING))
    most_bytes = model.settings(name).max_waiting_bytes
    held = sum(job.bytes() for job in model.live(*WAITING, JobState.ACTIVE) if job.queue == name)
    new_bytes = sum(len(job.payload) + (job.beside_bytes or 0) for job in created)
    new_bytes -= sum(len(payload) for payload, _ in replaced)
    grows = count > 0 or new_bytes > 0
    if grows and most is not None and waiting + count > most:
        raise Refusal("QUEUE_FULL")
    if grows and most_bytes is not None and held + new_bytes > most_bytes:
        raise Refusal("QUEUE_FULL")
    for group, of_group in Counter(new.ties.group for new in created).items():
        depth = sum(job.group == group for job in model.live(*WAITING) if job.queue == name)
        more = of_group - sum(left == group for _, left in replaced)
        if group and more > 0 and model.groups.is_full(name, group, depth, more):
            raise Refusal("GROUP_FULL")
