"""A batch: the pushes that one call carries, in columns. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")

Headers = Mapping[str, str]


@dataclass(slots=True, eq=False)
class Pushes(Generic[W]):
    """Pushes in columns: what each has of its own, and who waits for it. A push without a job key
    unique key or group has "", one without headers of its own None.
    """

    payloads: list[bytes] = field(default_factory=list)
    job_keys: list[str] = field(default_factory=list)
    unique_keys: list[str] = field(default_factory=list)
    headers: list[Headers | None] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    waiters: list[W] = field(default_factory=list)

    def payload_bytes(self) -> int:
        """Returns the size of the payloads."""
        return sum(map(len, self.payloads))

    def all_have_keys(self) -> bool:
        """Returns whether all of them have a job key."""
        return all(self.job_keys)

    def differ_in_headers(self) -> bool:
        """Returns whether some have other headers than the rest."""
        return self.headers.count(self.headers[0]) < len(self.headers)

    def count_with_header_keys(self, limit: int) -> int:
        """Returns how many of the first pushes have up to `limit` header keys together; one always
        counts.
        """
        keys: set[str] = set()
        for index, headers in enumerate(self.headers):
            if headers:
                keys.update(headers)
                if len(keys) > limit:
                    return max(index, 1)
        return len(self.headers)

    def part(self, start: int, end: int) -> Self:
        """Returns some neighbours."""
        return type(self)(
            self.payloads[start:end],
            self.job_keys[start:end],
            self.unique_keys[start:end],
            self.headers[start:end],
            self.groups[start:end],
            self.waiters[start:end],
        )

    def take(self, count: int) -> Self:
        """Removes and returns the first ones."""
        first = self.part(0, count)
        for column in (
            self.payloads,
            self.job_keys,
            self.unique_keys,
            self.headers,
            self.groups,
            self.waiters,
        ):
            del column[:count]
        return first

    def remove(self, index: int) -> int:
        """Removes one push; returns the size of its payload."""
        columns = (self.job_keys, self.unique_keys, self.headers, self.groups, self.waiters)
        for column in columns:
            del column[index]
        return len(self.payloads.pop(index))

    def parts(self) -> tuple[Self, Self]:
        """Returns two parts, neither of which is empty: those without a job key and those with
        one, or the halves if there are no such two kinds. A part keeps the order of its pushes.
        """
        middle = len(self.waiters) // 2
        keyed = [index for index, job_key in enumerate(self.job_keys) if job_key]
        if not 0 < len(keyed) < len(self.waiters):
            return self.part(0, middle), self.part(middle, len(self.waiters))
        plain = [index for index, job_key in enumerate(self.job_keys) if not job_key]
        return self._picked(plain), self._picked(keyed)

    def _picked(self, indexes: Iterable[int]) -> Self:
        picked = type(self)()
        for index in indexes:
            picked.payloads.append(self.payloads[index])
            picked.job_keys.append(self.job_keys[index])
            picked.unique_keys.append(self.unique_keys[index])
            picked.headers.append(self.headers[index])
            picked.groups.append(self.groups[index])
            picked.waiters.append(self.waiters[index])
        return picked


@dataclass(slots=True, eq=False)
class Batch(Generic[K, W]):
    """Pushes that are sent in one call."""

    key: K
    pushes: Pushes[W]
    payload_bytes: int
    give_up_at: float
    request_id: str = ""
    tries: int = 0

    @property
    def waiters(self) -> list[W]:
        """Who waits for the pushes, in order."""
        return self.pushes.waiters

    @property
    def repeat_id(self) -> str | None:
        """The id to repeat a push with. None if several pushes share the call: a repeat of one
        would count as all of them.
        """
        return self.request_id if self.request_id and len(self.waiters) == 1 else None
