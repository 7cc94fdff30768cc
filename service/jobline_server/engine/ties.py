"""Ties: what binds a job to others. Each job has its own, so they are no part of its options, which
many jobs share.

A job with ties is a single job, never a member of a lot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobline_server.engine.rules import DependencyPolicy


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
    on_failure: bytes = b""
    """The policy about each of the first parents, as its number; 0: that of the job."""

    def policy_at(self, at: int) -> DependencyPolicy | None:
        """Returns the policy about the parent in this place; None: that of the job."""
        number = self.on_failure[at] if at < len(self.on_failure) else 0
        return DependencyPolicy(number) if number else None

    def with_parents(self, parents: Iterable[int], on_failure: bytes) -> Ties:
        """Returns the ties of a job that depends on more jobs, with its policies about them."""
        known = self.on_failure
        if on_failure:
            known = known.ljust(len(self.parents), b"\0") + on_failure
        return replace(self, parents=(*self.parents, *parents), on_failure=known)

    # Not `replace` in these two, which takes most of the time of a call for a thousand jobs.

    def of_parents(self, parents: tuple[int, ...]) -> Ties:
        """Returns these ties with these parents in place of their own."""
        return Ties(
            self.group, self.unique_key, parents, self.claim, self.is_flow_root, self.on_failure
        )

    def with_claim(self, claim: Claim) -> Ties:
        """Returns these ties with another claim on the unique key."""
        return Ties(
            self.group, self.unique_key, self.parents, claim, self.is_flow_root, self.on_failure
        )


NO_TIES = Ties()
