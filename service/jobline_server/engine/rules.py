"""Rules: the options of jobs that few of them set.

They stand beside the common options in an object of their own, so that jobs without any share one
and pay nothing for them: a verb compares `options.rules is NO_RULES` and is done.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobRules:
    """The rules of jobs; `None` means the queue's setting, then the default of `limits`."""

    tags: tuple[str, ...] = ()


NO_RULES = JobRules()
