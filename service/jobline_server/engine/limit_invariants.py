"""Invariants of limits; `invariants` lists them with the others."""

from __future__ import annotations

from collections import Counter

from jobline_server.engine.gates import UNTIL_NOTICE
from jobline_server.engine.limiter_counts import active_of
from jobline_server.engine.shard import Shard


def allowances_fit_settings(shard: Shard) -> str:
    """G14: a queue has an allowance if it has limits, and no more tokens than it may have."""
    for name, queue in shard.queues.items():
        settings, allowance = queue.settings, queue.allowance
        is_limited = bool(settings.rate or settings.concurrency or queue.limited)
        if is_limited > (allowance is not None) or (allowance is not None and allowance.is_over()):
            return f"queue {name} has the allowance {allowance}"
        if allowance is None:
            continue
        rate = None if allowance.bucket is None else allowance.bucket.limit
        if (rate, allowance.concurrency) != (settings.rate, settings.concurrency):
            return f"queue {name} is limited to {rate} and {allowance.concurrency}"
        tokens = allowance.tokens(shard.clocks.mono_ms)
        if rate is not None and not 0 <= tokens <= rate.most():
            return f"queue {name} has {tokens} of {rate.most()} tokens"
    return ""


def limiters_count_what_is_active(shard: Shard) -> str:
    """G14: limiters count at least the active jobs of this shard; other shards share them."""
    found: Counter[str] = Counter()
    for rules, count in active_of(shard.jobs.values(), shard.lots.lots.values()):
        found.update(dict.fromkeys(rules.limiters, count))
    for name, count in found.items():
        limiter = shard.limiters.by_name.get(name)
        if limiter is None or limiter.active < count:
            return f"limiter {name} does not count {count} active jobs"
    return ""


def closed_lanes_are_in_line(shard: Shard) -> str:
    """G14: a lane that a limiter closed is in its line, so that somebody opens it."""
    for name, queue in shard.queues.items():
        for key, lane in queue.gates.closed.items():
            needs = key[3]
            if lane.opens_ms != UNTIL_NOTICE or needs is None or not needs.limiters:
                continue
            if key in queue.gates.own.get(needs.session, {}):
                continue
            limiters = [shard.limiters.by_name.get(one) for one in needs.limiters]
            if not any(one is not None and (queue, key) in one.line for one in limiters):
                return f"queue {name}: the lane {key} is closed and in no line"
    return ""
