"""Rules: the options of jobs that few of them set.

They stand beside the common options in an object of their own, so that jobs without any share one
and pay nothing for them: a verb compares `options.rules is NO_RULES` and is done.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from jobline_server.engine.group_settings import OnDeadHead
from jobline_server.engine.unique_rule import NO_UNIQUE_RULE, UniqueRule


class DeliveryMode(IntEnum):
    """How often a job may be handed out."""

    AT_LEAST_ONCE = 1
    ONCE = 2


class Needs(NamedTuple):
    """What a lease needs besides a consumer that handles the job's name. Jobs that differ in it are
    in lanes of their own, so none of them holds up others.
    """

    min_worker_version: str = ""
    limiters: tuple[str, ...] = ()
    is_once: bool = False
    slots: int = 1
    is_sticky: bool = False
    session: str = ""
    """The session for which the jobs of a lane are reserved (`sticky`)."""


NO_NEEDS = Needs()


class DependencyPolicy(IntEnum):
    """What happens to a BLOCKED job when one of the jobs that it depends on does not complete."""

    FAIL = 1
    CANCEL = 2
    IGNORE = 3
    WAIT = 4
    CONTINUE = 5


@dataclass(frozen=True, slots=True)
class JobRules:
    """The rules of jobs; `None` means the queue's setting, then the default of `limits`. `cost`:
    the tokens of rate limits that a hand-out takes.
    """

    tags: tuple[str, ...] = ()
    """Words to filter by: sorted, each once."""
    lifo: bool = False
    retry_until_ms: int | None = None
    timeout_ms: int | None = None
    """0: none."""
    ttl_ms: int | None = None
    """0: never. That of the queue at the push is part of it."""
    phases: tuple[str, ...] = ()
    """Names of the steps that the worker runs, in order."""
    min_worker_version: str = ""
    limiters: tuple[str, ...] = ()
    cost: int = 1
    delivery_mode: DeliveryMode | None = None
    slots: int | None = None
    on_dead_head: OnDeadHead | None = None
    unique: UniqueRule = NO_UNIQUE_RULE
    sticky: bool = False
    on_dependency_failure: DependencyPolicy | None = None
    block_timeout_ms: int | None = None
    batch_id: int = 0
    """The batch that it is a member of; 0: none."""
    webhook: str = ""
    """A URL that is told when it ends; "": none."""

    @property
    def needs(self) -> Needs | None:
        """The needs of a lease; None if there are none."""
        is_once, slots = self.delivery_mode is DeliveryMode.ONCE, self.slots or 1
        needs = Needs(self.min_worker_version, self.limiters, is_once, slots, self.sticky)
        return None if needs == NO_NEEDS else needs


NO_RULES = JobRules()


def is_past_retries(rules: JobRules, start_ms: int) -> bool:
    """Returns whether no retry may start at this time any more."""
    return rules.retry_until_ms is not None and start_ms > rules.retry_until_ms
