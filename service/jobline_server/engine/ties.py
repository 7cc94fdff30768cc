"""Ties: what binds a job to others. Each job has its own, so they are no part of its options, which
many jobs share.

A job with ties is a single job, never a member of a lot.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ties:
    """The ties of a job, as it was pushed: its group, its unique key ("" for none), and the ids of
    the jobs that it depends on.
    """

    group: str = ""
    unique_key: str = ""
    parents: tuple[int, ...] = ()


NO_TIES = Ties()
