"""Positions: where a watcher stands in the feed, and the token that says so.

A batch has a number in the feed of one life of the server; each journal row has its offset in its
shard, in every life. A position knows both: within a life the number says exactly what was told,
also of jobs that are in no journal; over a restart the offsets do.

    1.44.7.3:20.9       life 1, batch 44; told up to offsets 7, 3, 9, and 20 events of the second
                        shard's row 4
    1.44.7.3.9@1+20     the same: batch 44 is a row of shard 1, and 20 of its events were told
    1.44.7.3.9@+2       batch 44 is in no journal, and 2 of its events were told

Whoever was told of a run of events may append `+n` for the first n of them; what is told of a row
comes before what is told of jobs that are never written, so that n counts the same in every life.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class BadToken(Exception):
    """No position of this server."""


@dataclass(slots=True)
class Position:
    """`number`: the next batch. `offsets`: sent up to there, by shard. `partly`: events that were
    sent of the row after that, by shard. `skip`: events that were sent of the next batch, if that
    is in no journal.
    """

    life: int
    number: int
    offsets: list[int]
    partly: dict[int, int] = field(default_factory=dict)
    skip: int = 0
    _base: str = ""

    def told_of(self, shard: int, *, written: bool) -> int:
        """How many events of the next batch were told."""
        return self.partly.get(shard, 0) if written else self.skip

    def pass_batch(self, shard: int, offset: int, *, written: bool) -> None:
        """All of the next batch was told, or is not wanted."""
        self.number += 1
        self.skip = 0
        self._base = ""
        if written and offset > self.offsets[shard]:
            self.offsets[shard] = offset
            self.partly.pop(shard, None)

    def token(self) -> str:
        """The token of a position between two batches."""
        if not self._base:
            told = list(map(str, self.offsets))
            for shard, events in self.partly.items():
                told[shard] += f":{events}"
            self._base = ".".join((str(self.life), str(self.number), *told))
        return self._base

    def token_within(self, shard: int, told: int, *, written: bool) -> str:
        """The token of a position within the next batch, after so many of its events."""
        return f"{self.token()}@{shard if written else ''}+{told}"


def parse(token: str, shards: int) -> Position:
    """The position of a token. Raises `BadToken`."""
    base, within, origin = token.partition("@")
    parts = base.split(".")
    if len(parts) == shards:
        # Of a version that counted offsets only.
        parts = ["0", "0", *parts]
    if len(parts) != shards + 2:
        raise BadToken
    position = Position(_number(parts[0]), _number(parts[1]), [])
    for shard, part in enumerate(parts[2:]):
        offset, partly, told = part.partition(":")
        position.offsets.append(_number(offset))
        if partly:
            position.partly[shard] = _number(told)
    if within:
        _go_within(position, origin, shards)
    return position


def _go_within(position: Position, origin: str, shards: int) -> None:
    shard, *told = origin.split("+")
    count = sum(map(_number, told))
    if not shard:
        position.skip = count
    elif (number := _number(shard)) < shards:
        position.partly[number] = count
    else:
        raise BadToken


def _number(part: str) -> int:
    if not (part.isascii() and part.isdecimal()):
        raise BadToken
    return int(part)
