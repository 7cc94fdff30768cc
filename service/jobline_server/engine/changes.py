"""What the next checkpoint has to write and to delete, in the same shape for each durable kind."""

from __future__ import annotations

from collections.abc import MutableSet
from typing import Any, Generic, TypeVar

S = TypeVar("S", bound=MutableSet[Any])


class KindChanges(Generic[S]):
    """`to_write` holds the ids of what changed, `to_delete` the item keys of what went and is in a
    checkpoint. What lived shorter than the time between two checkpoints is in neither.
    """

    __slots__ = ("to_delete", "to_write")

    def __init__(self, to_write: S) -> None:
        self.to_write = to_write
        self.to_delete: list[int] = []
