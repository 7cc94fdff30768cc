"""A batch: the pushes that one call carries, in columns. Pure."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, Self, TypeVar

K = TypeVar("K", bound=Hashable)
W = TypeVar("W")

Headers = Mapping[str, str]


class Own(NamedTuple):
    """What a push has of its own beside its payload: "" without a key or group, None without
    headers.
    """

    job_key: str = ""
    unique_key: str = ""
    headers: Headers | None = None
    group: str = ""


NOTHING = Own()


@dataclass(slots=True, eq=False)
class Pushes(Generic[W]):
    """Pushes in columns: payloads, what else each has of its own, and who waits for it."""

    payloads: list[bytes] = field(default_factory=list)
    own: list[Own] = field(default_factory=list)
    waiters: list[W] = field(default_factory=list)

    def have_payloads_alone(self) -> bool:
        """Returns whether none has anything else of its own."""
        return self.own.count(NOTHING) == len(self.own)

    @property
    def job_keys(self) -> list[str]:
        """The job key of each."""
        return [own.job_key for own in self.own]

    @property
    def unique_keys(self) -> list[str]:
        """The unique key of each."""
        return [own.unique_key for own in self.own]

    @property
    def headers(self) -> list[Headers | None]:
        """The headers of each."""
        return [own.headers for own in self.own]

    def payload_bytes(self) -> int:
        """Returns the size of the payloads."""
        return sum(map(len, self.payloads))

    def all_have_keys(self) -> bool:
        """Returns whether all of them have a job key."""
        return all(own.job_key for own in self.own)

    def differ_in_headers(self) -> bool:
        """Returns whether some have other headers than the rest."""
        headers = self.headers
        return headers.count(headers[0]) < len(headers)

    def count_with_header_keys(self, limit: int) -> int:
        """Returns how many of the first pushes have up to `limit` header keys together; one always
        counts.
        """
        keys: set[str] = set()
        for index, own in enumerate(self.own):
            if own.headers:
                keys.update(own.headers)
                if len(keys) > limit:
                    return max(index, 1)
        return len(self.own)

    def part(self, start: int, end: int) -> Self:
        """Returns some neighbours."""
        return type(self)(self.payloads[start:end], self.own[start:end], self.waiters[start:end])

    def take(self, count: int) -> Self:
        """Removes and returns the first ones."""
        first = self.part(0, count)
        del self.payloads[:count], self.own[:count], self.waiters[:count]
        return first

    def remove(self, index: int) -> int:
        """Removes one push; returns the size of its payload."""
        del self.own[index], self.waiters[index]
        return len(self.payloads.pop(index))

    def parts(self) -> tuple[Self, Self]:
        """Returns two parts, neither of which is empty: those without a job key and those with
        one, or the halves if there are no such two kinds. A part keeps the order of its pushes.
        """
        middle = len(self.waiters) // 2
        keyed = [index for index, own in enumerate(self.own) if own.job_key]
        if not 0 < len(keyed) < len(self.waiters):
            return self.part(0, middle), self.part(middle, len(self.waiters))
        plain = [index for index, own in enumerate(self.own) if not own.job_key]
        return self._picked(plain), self._picked(keyed)

    def _picked(self, indexes: Iterable[int]) -> Self:
        picked = type(self)()
        for index in indexes:
            picked.payloads.append(self.payloads[index])
            picked.own.append(self.own[index])
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
