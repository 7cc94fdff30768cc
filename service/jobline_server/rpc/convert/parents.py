"""Reads and checks which jobs the jobs of a push depend on."""

from __future__ import annotations

from collections.abc import Sequence

from jobline_server.engine import limits
from jobline_server.engine.commands import Push
from jobline_server.engine.push_fields import depends_on_field
from jobline_server.engine.ties import NO_TIES
from jobline_server.rpc.validate import fields


def indexes_of_parents(columns: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Returns the indexes of the jobs of the same push that each job depends on. Refuses those of
    the job itself and of later ones.
    """
    for index, column in enumerate(columns):
        field = f"jobs[{index}].depends_on_indexes"
        fields.at_most(column, field, limits.PARENTS_MAX)
        if column and max(column) >= index:
            raise fields.invalid(field, "must be indexes of earlier jobs of this push")
    return [tuple(column) for column in columns]


def check_parents(command: Push) -> None:
    """Refuses a job that depends on more jobs than it may, and a push whose jobs do so together."""
    rows = command.rows
    ids: set[int] = set()
    total = 0
    indexes = rows.parent_indexes or [()] * len(rows)
    for at, (ties, own) in enumerate(zip(rows.ties or [NO_TIES] * len(rows), indexes, strict=True)):
        count = len(ties.parents) + len(own)
        if count > limits.PARENTS_MAX:
            raise fields.too_many(depends_on_field(command, at), limits.PARENTS_MAX)
        total += count
        ids.update(ties.parents)
    if total > limits.PUSH_PARENTS_MAX:
        why = f"the jobs of a push depend on at most {limits.PUSH_PARENTS_MAX} jobs together"
        raise fields.too_large("jobs", why)
    if len(ids) > limits.PARENTS_MAX:
        why = f"the jobs of a push depend on at most {limits.PARENTS_MAX} different jobs by id"
        raise fields.too_large("jobs", why)
