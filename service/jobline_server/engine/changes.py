"""What the next checkpoint has to write and to delete, in the same shape for each durable kind.

A row per job is dear, to write as to load. So a checkpoint writes single jobs that nothing has
happened to yet as *bundles*: neighbours in one item. A job that is touched or ends leaves its
bundle for good, and the next checkpoint writes the bundle again, without it.
"""

from __future__ import annotations

from collections.abc import MutableSet
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=MutableSet[Any])


class Bundle:
    """Single jobs that are one item of a checkpoint, under the id that the first of them had. Its
    jobs have ids from there up to `end_id`, and are those whose `stored` it is: `jobs` of them.
    """

    __slots__ = ("end_id", "first_id", "jobs")

    def __init__(self, first_id: int, end_id: int, jobs: int) -> None:
        self.first_id = first_id
        self.end_id = end_id
        self.jobs = jobs


class KindChanges(Generic[S]):
    """`to_write` holds the ids of what changed, `to_delete` the item keys of what went and is in a
    checkpoint. What lived shorter than the time between two checkpoints is in neither.
    """

    __slots__ = ("to_delete", "to_write")

    def __init__(self, to_write: S) -> None:
        self.to_write = to_write
        self.to_delete: list[int] = []
