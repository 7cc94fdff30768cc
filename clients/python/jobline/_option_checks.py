"""What is checked of the options of jobs where they are made: what may be given in several ways, so
that equal options are the same value; and what has no hash.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from jobline._arguments import (
    headers_given,
    ids_given,
    member_given,
    no_bool,
    ordered_given,
    refuse,
    tags_given,
    value_given,
)
from jobline._group_values import OnDeadHead
from jobline._option_parts import Backoff, Retention

PARTS: dict[str, type] = {"backoff": Backoff, "retention": Retention}
"""Options that have fields of their own, which are merged one by one."""

# True is equal to 1: messages of options are kept by value, so this cannot wait for them.
_NUMBERS = (
    *("priority", "max_attempts", "max_stalls", "cost", "slots", "lease", "ttl"),
    *("attempt_timeout", "unique_ttl", "unique_max_wait", "block_timeout", "batch_id"),
)

CHECKS: dict[str, Callable[[Any], Any]] = {
    **{name: partial(no_bool, f"options.{name}") for name in _NUMBERS},
    "headers": lambda headers: MappingProxyType(headers_given(headers)),
    "tags": lambda tags: tags_given("options.tags", tags) or None,
    "on_dead_head": lambda head: member_given("options.on_dead_head", OnDeadHead, head),
    "phases": lambda phases: ordered_given("options.phases", phases) or None,
    "limiters": lambda names: tags_given("options.limiters", names) or None,
    "depends_on": lambda ids: ids_given("options.depends_on", ids) or None,
}
"""By option, what returns its value as it is kept."""


def refuse_unhashable(options: Mapping[str, Any]) -> None:
    """Raises InvalidArgument for the first option that has no hash and so is none."""
    for name, value in options.items():
        if name != "headers" and not isinstance(value, Hashable):
            if name in PARTS:
                value_given(f"options.{name}", value, PARTS[name])
            refuse(f"options.{name}", f"must not be a {type(value).__name__}: {value!r}")
