"""Messages between shards about jobs that depend on jobs of another shard.

    the shard of the job that waits            the shard of its parent

      AwaitJobs: tell me of their ends  ─────▶  notes who waits, whether they are live or not
                                        ◀─────  JobsNotLive: look these up, they ended before
                                        ◀─────  EndsOfJobs: these have ended
      ForgetJobs: nobody waits any more ─────▶  forgets who waited

A parent that died is not forgotten as long as somebody waits: it may be retried, and complete.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobline_server.engine.dependencies import ParentEnd

# What an id of a message takes in an outbox.
ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class _OfIds:
    ids: tuple[int, ...]

    def jobs(self) -> int:
        """Returns the number of its jobs: it pushes none."""
        return 0

    def payload_bytes(self) -> int:
        """Returns the bytes that it takes in an outbox."""
        return ID_BYTES * len(self.ids)


@dataclass(frozen=True, slots=True)
class AwaitJobs(_OfIds):
    """Asks to tell a shard of the ends of jobs."""

    by_shard: int


@dataclass(frozen=True, slots=True)
class JobsNotLive(_OfIds):
    """Answers that jobs are not live any more, or were never pushed."""


@dataclass(frozen=True, slots=True)
class EndsOfJobs(_OfIds):
    """Tells of the ends of jobs."""

    ends: tuple[ParentEnd, ...]


@dataclass(frozen=True, slots=True)
class ForgetJobs(_OfIds):
    """Says that a shard waits for jobs no more."""

    by_shard: int
