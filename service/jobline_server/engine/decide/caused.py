"""Pushes jobs that other work caused, such as a callback or a message of another shard: that work
was admitted, so they are never refused.
"""

from __future__ import annotations

from dataclasses import replace

from jobline_server.engine.commands import Push, Pushed, RefusalKind, Refused
from jobline_server.engine.decide.push import decide_push
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.shard_messages import PushJobs
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.unique_rule import NO_UNIQUE_RULE
from jobline_server.engine.values import AckLevel, JobOptions, Now
from jobline_server.engine.view import ShardView


def push_caused(shard: ShardView, now: Now, message: PushJobs) -> Pushed:
    """Pushes jobs to a queue of this shard, even if it is full. A job with a group or a unique key
    that the queue does not take as it is goes without these, and without its priority.
    """
    push = Push(
        message.queue,
        message.options,
        payloads=message.payloads,
        run_at_ms=now.wall_ms + message.delay_ms if message.delay_ms else 0,
        level=AckLevel.FSYNCED,
        # A job whose key is known with another payload is skipped: no caller waits for the reply.
        atomic=False,
        has_room=True,
    )
    if message.ties == NO_TIES:
        return decide_push(shard, now, push)
    try:
        pushed = decide_push(shard, now, _as_row(push, message.ties))
        if pushed.count or not _is_refused(pushed):
            return pushed
    except Refused:
        pass
    return decide_push(shard, now, replace(push, options=_untied(message.options)))


def _as_row(push: Push, ties: Ties) -> Push:
    """Returns the push of one job with ties, which is a row."""
    (payload,) = push.payloads
    options = push.payloads.options_of(0, push.options)
    run_at_ms = [push.run_at_ms] if push.run_at_ms else []
    rows = JobColumns([payload], [options], run_at_ms=run_at_ms, ties=[ties])
    return Push(push.queue, options, rows, level=push.level, atomic=False, has_room=True)


def _is_refused(pushed: Pushed) -> bool:
    return any(isinstance(outcome, RefusalKind) for _, outcome, _ in pushed.exceptions)


def _untied(options: JobOptions) -> JobOptions:
    """Returns options without those that mean nothing without a group or a unique key."""
    rules = replace(options.rules, on_dead_head=None, sticky=False, unique=NO_UNIQUE_RULE)
    return replace(options, rules=NO_RULES if rules == NO_RULES else rules)
