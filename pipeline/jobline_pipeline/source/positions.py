"""Positions in the events of a server: what Spark keeps as offsets, and resume tokens.

A resume token is `life.number.o0.o1…`: the life of the server (it grows with each start), the
number of the next commit in this life, and the journal's offset of each shard; `:n` behind an
offset and `@…` at the end are a position within a commit. Spark's offsets are between two commits.
Within a life the number is exact. After a restart the offsets are: events that were written are the
same then, those of jobs in memory alone are gone with the process.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from jobline_pipeline.problems import PipelineError


@dataclass(frozen=True, slots=True)
class Position:
    """A position between two commits. `offsets`: by shard, the last journal row before it."""

    life: int
    number: int
    offsets: tuple[int, ...]

    def token(self) -> str:
        """Returns the token to resume from."""
        return ".".join(map(str, (self.life, self.number, *self.offsets)))

    def as_offset(self) -> dict[str, Any]:
        """Returns what Spark keeps: an offset a shard, and the server's life and commit."""
        shards = {str(shard): offset for shard, offset in enumerate(self.offsets)}
        return {"life": self.life, "commit": self.number, "shards": shards}

    def covers(self, other: Position) -> bool:
        """Returns whether all that comes before `other` comes before this."""
        if self.life == other.life:
            return self.number >= other.number
        return all(mine >= its for mine, its in zip(self.offsets, other.offsets, strict=True))

    def is_later_in_life(self, other: Position) -> bool:
        """Returns whether there are commits between `other` and this, in one life of the server."""
        return self.life == other.life and self.number > other.number


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run of events begins: before its commit. `written`: that is in the journal."""

    begun: Position
    written: bool


def from_offset(offset: dict[str, Any]) -> Position:
    """Returns the position that Spark kept. Raises PipelineError for another source's."""
    try:
        shards = offset["shards"]
        offsets = tuple(int(shards[str(shard)]) for shard in range(len(shards)))
        return Position(int(offset["life"]), int(offset["commit"]), offsets)
    except (KeyError, TypeError, ValueError):
        text = json.dumps(offset)
        raise PipelineError(f"this is no position in the events of a server: {text}") from None


def from_token(token: str) -> Position:
    """Returns the position of a token, or of the commit that it is within. Raises PipelineError."""
    return place_of(token).begun


def place_of(token: str) -> Place:
    """Returns where the events begin that this token resumes from. Raises PipelineError."""
    base, within, origin = token.partition("@")
    parts = [part.partition(":")[0] for part in base.split(".")]
    try:
        life, number, *offsets = (int(part) for part in parts)
    except ValueError:
        raise PipelineError(f"the server's resume token {token!r} is of an unknown form") from None
    return Place(Position(life, number, tuple(offsets)), written=not within or origin[:1] != "+")


def is_before(place: Place, shard: int, offset: int, end: Position) -> bool:
    """Returns whether the events of a run, of this shard and journal row, come before `end`."""
    if place.begun.life == end.life:
        return place.begun.number < end.number
    return place.written and offset <= end.offsets[shard]
