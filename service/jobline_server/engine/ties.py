"""Ties: what binds a job to others. Each job has its own, so they are no part of its options, which
many jobs share.

A job with ties is a single job, never a member of a lot.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A job's claim on its unique key. It holds the key until `until_ms`, a time of `Age.at`, or
    with 0 until it has ended; with `throttles` all of that time, also when it has ended. `first_ms`
    is when the first job of its series was pushed, 0 if it is the first. While it is `parked` it
    waits until the holder has ended.
    """

    until_ms: int = 0
    first_ms: int = 0
    parked: bool = False
    throttles: bool = False


NO_CLAIM = Claim()


@dataclass(frozen=True, slots=True)
class Ties:
    """The ties of a job, as it was pushed: its group, its unique key ("" for none), and the ids of
    the jobs that it depends on. `claim` is what it has of its unique key, and changes. The end of a
    flow's root is an event of the flow, too.
    """

    group: str = ""
    unique_key: str = ""
    parents: tuple[int, ...] = ()
    claim: Claim = NO_CLAIM
    is_flow_root: bool = False


NO_TIES = Ties()
