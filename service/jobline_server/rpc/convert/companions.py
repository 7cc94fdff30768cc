"""Refuses options that mean nothing without another one, such as `unique_mode` without a
`unique_key`.

A job's own option needs its companion in this job, wherever that comes from: its own options, the
shared ones, a column. A shared option may serve some jobs of a push only, so it is refused if it
serves none of them. What becomes of a job whose dependencies fail is never alone: the job may add
children while it runs. Settings of queues are defaults for all kinds of jobs, and never refused.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import NamedTuple

from jobline.v1 import job_service_pb2
from jobline_server.engine.commands import Push, Refused
from jobline_server.engine.push_fields import listed_of, option_field
from jobline_server.engine.rules import NO_RULES, JobRules
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.unique_rule import UniqueMode
from jobline_server.rpc.validate import fields


class _Job(NamedTuple):
    """What a job has that options may need."""

    rules: JobRules
    ties: Ties
    has_start: bool


class _Need(NamedTuple):
    """An option, its value (None: unset), and what a job needs for it. With `of_each`
    each job needs it, also where the option is shared.
    """

    option: str
    value: Callable[[JobRules], object]
    is_met: Callable[[_Job], bool]
    why: str
    of_each: bool = False


def _has_key(job: _Job) -> bool:
    return bool(job.ties.unique_key)


def _has_group(job: _Job) -> bool:
    return bool(job.ties.group)


def _may_debounce(job: _Job) -> bool:
    # The mode of the queue may be DEBOUNCE.
    return job.rules.unique.mode in {None, UniqueMode.DEBOUNCE}


def _has_delay_to_restart(job: _Job) -> bool:
    return job.has_start or job.rules.unique.mode is not UniqueMode.DEBOUNCE


_MODE, _MAX_WAIT = attrgetter("unique.mode"), attrgetter("unique.max_wait_ms")
_NO_KEY, _NO_GROUP = "needs a unique_key", "needs a group"

_NEEDS = (
    _Need("sticky", lambda rules: rules.sticky or None, _has_group, _NO_GROUP, of_each=True),
    _Need("on_dead_head", attrgetter("on_dead_head"), _has_group, _NO_GROUP),
    _Need("unique_mode", _MODE, _has_key, _NO_KEY),
    _Need("unique_ttl", attrgetter("unique.ttl_ms"), _has_key, _NO_KEY),
    _Need("unique_max_wait", _MAX_WAIT, _has_key, _NO_KEY),
    _Need("unique_mode", _MODE, _has_delay_to_restart, "DEBOUNCE needs a delay or run_at"),
    _Need("unique_max_wait", _MAX_WAIT, _may_debounce, "only DEBOUNCE has a max_wait"),
)


def refuse_alone(command: Push, request: job_service_pb2.PushRequest, *, all_start: bool) -> None:
    """Refuses options of a push that have no companion. `all_start`: all its jobs have a start;
    otherwise `request` tells which of `jobs` have one.
    """
    rows, shared = command.rows, command.options.rules
    distinct = {id(options): options for options in rows.options}
    needs = {key: found for key, one in distinct.items() if (found := _needs_of(one.rules))}
    of_shared = _needs_of(shared)
    if not needs and not of_shared:
        return
    met: set[_Need] = set()
    listed = listed_of(command)
    for index, options in enumerate(rows.options):
        for need in needs.get(id(options), ()):
            starts = all_start or (index < listed and _has_start(request, index))
            if need.is_met(_job_of(command, index, starts)):
                met.add(need)
            elif need.of_each or need.value(options.rules) != need.value(shared):
                raise _refusal(command, index, need)
    for need in of_shared:
        # Payloads that are no rows have neither ties nor options of their own.
        has_plain = len(command.payloads) > 0
        is_met_by_plain = has_plain and need.is_met(_Job(shared, NO_TIES, all_start))
        if not is_met_by_plain and (need not in met or (has_plain and need.of_each)):
            raise fields.invalid(f"options.{need.option}", need.why)


def _job_of(command: Push, index: int, has_start: bool) -> _Job:
    rows = command.rows
    ties = rows.ties[index] if rows.ties else NO_TIES
    return _Job(rows.options[index].rules, ties, has_start)


def _has_start(request: job_service_pb2.PushRequest, index: int) -> bool:
    return request.jobs[index].WhichOneof("start") is not None


def _refusal(command: Push, index: int, need: _Need) -> Refused:
    field = option_field(command, index, need.option, lambda options: need.value(options.rules))
    return fields.invalid(field, need.why)


def needs_companions(rules: JobRules) -> bool:
    """Returns whether an option is set that means nothing alone."""
    return bool(_needs_of(rules))


def _needs_of(rules: JobRules) -> tuple[_Need, ...]:
    """Returns the needs of the options that are set."""
    if rules is NO_RULES:
        return ()
    return tuple([need for need in _NEEDS if need.value(rules) is not None])
