"""Rules: the options of jobs that few of them set.

They stand beside the common options in an object of their own, so that jobs without any share one
and pay nothing for them: a verb compares `options.rules is NO_RULES` and is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Needs(NamedTuple):
    """What a lease needs besides a consumer that handles the job's name. Jobs that differ in it are
    in lanes of their own, so none of them holds up others.
    """

    min_worker_version: str = ""
    limiters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobRules:
    """The rules of jobs; `None` means the queue's setting, then the default of `limits`. `cost`:
    the tokens of rate limits that a hand-out takes.
    """

    tags: tuple[str, ...] = ()
    """Words to filter by: sorted, each once."""
    min_worker_version: str = ""
    limiters: tuple[str, ...] = ()
    cost: int = 1

    @property
    def needs(self) -> Needs | None:
        """The needs of a lease; None if there are none."""
        if self.min_worker_version or self.limiters:
            return Needs(self.min_worker_version, self.limiters)
        return None


NO_RULES = JobRules()
