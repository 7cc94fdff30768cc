"""Look-ups: what can be asked of the tables of jobs and lots, whoever holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from jobline_server.engine.lot import Lot

V_co = TypeVar("V_co", covariant=True)


class Jobs(Protocol[V_co]):
    """Single jobs by id."""

    def __contains__(self, job_id: object) -> bool: ...

    def find(self, item_id: int) -> V_co | None:
        """Returns the job with this id; None without."""

    def find_many(self, ids: Sequence[int]) -> tuple[Sequence[V_co | None], int | None]:
        """Returns the jobs with these ids, None for those without; and the number of the part of
        the table that holds all of them, None if there is none.
        """

    def part(self, item_id: int) -> Mapping[int, V_co]:
        """Returns the part of the table that holds an id, for look-ups of its neighbours."""


class Lots(Protocol):
    """Lots by the ids of their members."""

    def find(self, job_id: int) -> Lot | None:
        """Returns the lot whose range of ids includes this one; None without."""
