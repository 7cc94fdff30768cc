"""Invariants of limits; `invariants` lists them with the others."""

from __future__ import annotations

from jobline_server.engine.shard import Shard


def allowances_fit_settings(shard: Shard) -> str:
    """G14: a queue has an allowance if it has limits, and no more tokens than it may have."""
    for name, queue in shard.queues.items():
        settings, allowance = queue.settings, queue.allowance
        is_limited = bool(settings.rate or settings.concurrency or queue.limited)
        if is_limited != (allowance is not None):
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
