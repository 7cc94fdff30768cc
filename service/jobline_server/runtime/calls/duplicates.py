"""Notices of pushes that returned jobs which were there already, for watchers."""

from __future__ import annotations

from jobline_server.engine.commands import Push, Pushed, RefusalKind
from jobline_server.engine.notices import DuplicatesFound
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import PushOutcome

# The outcomes of jobs that were not stored, as the one whose id they name stands for them.
KEPT_OUTCOMES = frozenset({PushOutcome.DUPLICATE, PushOutcome.EXTENDED, PushOutcome.THROTTLED})


def notice_duplicates(shard: Shard, at_ms: int, command: Push, pushed: Pushed) -> None:
    """Has watchers notified of the jobs that a push returned instead of storing others."""
    kept = [
        (index, outcome, job_id)
        for index, outcome, job_id in pushed.exceptions
        if not isinstance(outcome, RefusalKind) and outcome in KEPT_OUTCOMES and job_id
    ]
    if not kept:
        return
    own, shared = command.rows.options, command.options
    ids = [job_id for _, _, job_id in kept]
    notice = DuplicatesFound(
        at_ms,
        command.queue,
        ids,
        states=[shard.state_of(job_id) for job_id in ids],
        names=[(own[index] if index < len(own) else shared).name for index, _, _ in kept],
        outcomes=[outcome for _, outcome, _ in kept],
    )
    shard.notice(notice)
