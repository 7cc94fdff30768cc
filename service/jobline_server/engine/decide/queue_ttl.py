"""The TTL that a queue gives to new jobs. It becomes part of their options: when the setting
changes, the jobs that are there keep theirs, and no step walks over them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from jobline_server.engine.commands import Push
from jobline_server.engine.values import JobOptions

# Options with a TTL that are kept for the next push: about those that are in use.
OPTIONS_MAX = 4_096


def with_ttl(command: Push, ttl_ms: int) -> Push:
    """Returns a push whose jobs have this TTL, unless they have one of their own."""
    rows = command.rows
    if rows:
        made = {id(options): _with_ttl(options, ttl_ms) for options in rows.options}
        own = [made[id(options)] for options in rows.options]
        rows = replace(rows, options=own, has_rules=True)
    return replace(command, options=_with_ttl(command.options, ttl_ms), rows=rows)


@lru_cache(maxsize=OPTIONS_MAX)
def _with_ttl(options: JobOptions, ttl_ms: int) -> JobOptions:
    """Returns options with a TTL, equal ones as one object."""
    if options.rules.ttl_ms is not None:
        return options
    return replace(options, rules=replace(options.rules, ttl_ms=ttl_ms))
