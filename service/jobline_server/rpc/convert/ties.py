"""Reads the ties of jobs (group, unique key, jobs that they depend on), which are sent among their
options, or in columns beside payloads.

They are taken out before options are looked up: a thousand jobs of a thousand groups share their
options all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import TypeVar

from jobline.v1 import job_pb2
from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import NO_PAYLOADS
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.rpc.convert.columns import check_count, check_keys
from jobline_server.rpc.validate import fields

V = TypeVar("V")

_FIELDS = frozenset({"group", "unique_key", "depends_on"})


def take_ties(message: job_pb2.JobOptions, given: Iterable[str]) -> Ties:
    """Removes the ties from options, which were checked, and returns them; `NO_TIES` itself if
    there are none. `given`: the names of the fields that are set.
    """
    if _FIELDS.isdisjoint(given):
        return NO_TIES
    ties = Ties(message.group, message.unique_key, tuple(message.depends_on))
    message.ClearField("group")
    message.ClearField("unique_key")
    message.ClearField("depends_on")
    return ties


def fill_ties(message: job_pb2.JobOptions, ties: Ties) -> None:
    """Writes the ties of a job into its options, where they were sent."""
    message.group = ties.group
    message.unique_key = ties.unique_key
    message.depends_on.extend(ties.parents)


def merged(shared: Ties, own: Ties) -> Ties:
    """Returns the ties of a job that overrides the shared ones of its push. A list is extended, as
    protobuf merges messages.
    """
    if own is NO_TIES or shared is NO_TIES:
        return shared if own is NO_TIES else own
    return replace(
        own,
        group=own.group or shared.group,
        unique_key=own.unique_key or shared.unique_key,
        parents=shared.parents + own.parents,
    )


def groups_of(groups: Sequence[str], count: int) -> list[str]:
    """Returns the column of the groups of `count` payloads; empty if none has one."""
    fields.at_most(groups, "groups", limits.PUSH_JOBS_MAX)
    check_count(len(groups), count, "groups")
    fields.single_lines(groups, "groups", limits.NAME_CHARACTERS_MAX)
    return list(groups) if any(groups) else []


def ties_beside(
    unique_keys: Sequence[str], groups: Sequence[str], count: int, shared: Ties
) -> list[Ties]:
    """Returns the ties of `count` payloads, whose unique keys and groups stand in columns beside
    them; empty if there are none.
    """
    ties = [shared] * count
    if unique_keys:
        fields.at_most(unique_keys, "unique_keys", limits.PUSH_JOBS_MAX)
        check_count(len(unique_keys), count, "unique_keys")
        check_keys(unique_keys, "unique_keys[{}]", limits.UNIQUE_KEY_BYTES_MAX)
        ties = [merged(shared, Ties(unique_key=key)) if key else shared for key in unique_keys]
    if groups:
        pairs = zip(ties, groups, strict=True)
        ties = [replace(one, group=group) if group else one for one, group in pairs]
    elif not unique_keys and shared is NO_TIES:
        return []
    return ties if any(one is not NO_TIES for one in ties) else []


def make_rows(command: Push, ties: Sequence[Ties]) -> None:
    """Makes rows of all jobs of a push, the payloads after the others: jobs with ties are no
    members of lots. `ties` are those of the payloads.
    """
    rows, payloads = command.rows, command.payloads
    options, run_at_ms = command.options, command.run_at_ms
    before, after = len(rows), len(payloads)
    keys = [key.decode() for key in payloads.job_keys]
    command.rows = JobColumns(
        payloads=[*rows.payloads, *payloads],
        options=[*rows.options, *[payloads.options_of(at, options) for at in range(after)]],
        job_keys=_joined(rows.job_keys, before, keys, after, ""),
        run_at_ms=_joined(rows.run_at_ms, before, [run_at_ms] * after, after, 0),
        ties=_joined(rows.ties, before, list(ties), after, NO_TIES),
        parent_indexes=_joined(rows.parent_indexes, before, [()] * after, after, ()),
        has_rules=rows.has_rules or options.rules is not NO_RULES,
    )
    command.payloads = NO_PAYLOADS
    command.listed = before if command.listed is None else command.listed


def _joined(first: list[V], before: int, second: list[V], after: int, unset: V) -> list[V]:
    """Returns a column of two parts, of which either may be empty because it has no value."""
    if not any(value != unset for value in chain(first, second)):
        return []
    return [*(first or repeat(unset, before)), *(second or repeat(unset, after))]
