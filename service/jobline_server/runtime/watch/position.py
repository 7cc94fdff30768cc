"""Positions: where a watcher is in the feed, and the token of that position.

A batch has a number, valid for one life of the server (until a restart); a journal row has its
offset in its shard, valid in every life. A position has both: within a life the number is exact,
also for batches that are in no journal; after a restart the offsets are used.

    1.44.7.3:20.9       life 1, batch 44; sent up to offsets 7, 3, 9, and 20 events of the second
                        shard's row 4
    1.44.7.3.9@1+20     the same: batch 44 is a row of shard 1, and 20 of its events were sent
    1.44.7.3.9@+2       batch 44 is in no journal, and 2 of its events were sent

A client that got a run of events may append `+n` to the run's token, after its first n events. The
events of a row come before those of jobs that are never written, so n means the same in every life.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class BadToken(Exception):
    """The token is no position of this server."""


@dataclass(slots=True)
class Position:
    """A position. `number`: the next batch. `offsets`, by shard: rows sent. `partly`, by shard: how
    many events of the next row were sent. `skip`: how many events of the next batch were sent, if
    that is in no journal.
    """

    life: int
    number: int
    offsets: list[int]
    partly: dict[int, int] = field(default_factory=dict)
    skip: int = 0
    _base: str = ""

    def sent_of(self, shard: int, *, written: bool) -> int:
        """Returns how many events of the next batch were sent."""
        return self.partly.get(shard, 0) if written else self.skip

    def pass_batch(self, shard: int, offset: int, *, written: bool) -> None:
        """Moves past the next batch: all of it was sent or skipped."""
        self.number += 1
        self.skip = 0
        self._base = ""
        if written and offset > self.offsets[shard]:
            self.offsets[shard] = offset
            self.partly.pop(shard, None)

    def token(self) -> str:
        """Returns the token of a position between two batches."""
        if not self._base:
            offsets = list(map(str, self.offsets))
            for shard, events in self.partly.items():
                offsets[shard] += f":{events}"
            self._base = ".".join((str(self.life), str(self.number), *offsets))
        return self._base

    def token_within(self, shard: int, sent: int, *, written: bool) -> str:
        """Returns the token of a position within the next batch, after `sent` of its events."""
        return f"{self.token()}@{shard if written else ''}+{sent}"


def parse(token: str, shards: int) -> Position:
    """Returns the position of a token. Raises `BadToken`."""
    base, within, origin = token.partition("@")
    parts = base.split(".")
    if len(parts) == shards:
        # A token of an older version, which had only offsets.
        parts = ["0", "0", *parts]
    if len(parts) != shards + 2:
        raise BadToken
    position = Position(_number(parts[0]), _number(parts[1]), [])
    for shard, part in enumerate(parts[2:]):
        offset, partly, events = part.partition(":")
        position.offsets.append(_number(offset))
        if partly:
            position.partly[shard] = _number(events)
    if within:
        _go_within(position, origin, shards)
    return position


def _go_within(position: Position, origin: str, shards: int) -> None:
    shard, *counts = origin.split("+")
    count = sum(map(_number, counts))
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
