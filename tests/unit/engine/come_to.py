"""What histories come to: counted, as what never happens is not tested."""

from __future__ import annotations

from collections import Counter

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind
from jobline_server.engine.invariants import LIVE_STATES
from jobline_server.engine.records import JobRecord
from jobline_server.engine.shard import Shard
from jobline_server.engine.values import JobState, PushOutcome
from tests.unit.engine.reference_model import ReferenceModel


def named(outcome: PushOutcome | RefusalKind) -> str:
    """The name of an outcome of a push; one for all reasons to refuse a job alone."""
    return "REFUSED" if isinstance(outcome, RefusalKind) else outcome.name


def note_reached(
    reached: Counter[str],
    shard: Shard,
    model: ReferenceModel,
    kept: dict[int, tuple[JobState, JobRecord]],
) -> None:
    """Counts what is rare, and there at this moment."""
    live = model.live(*LIVE_STATES)
    reached.update(f"{job.state.name} again: {job.why.name}" for job in live)
    reached["full log"] += any(len(job.log) == limits.LOG_LINES_MAX for job in live)
    reached["job between its phases"] += any(job.phases for job in live)
    for job in live:
        own = bool(job.options.headers)
        reached["job with headers of its own in a lot"] += own and bool(job.beside_bytes)
        reached["job with headers of its own that left its lot"] += own and not job.beside_bytes
    reached.update(f"{state.name}: {record.reason.name}" for state, record in kept.values())
    reached["DEAD again"] += any(record.auto_retries for _, record in kept.values())
    for group in model.groups.groups.values():
        reached["job that waits in its group"] += bool(group.line)
        reached["group held by a dead head"] += bool(group.dead)
        reached["group lets two run"] += len(group.admitted) > 1
    for lot in shard.lots.lots.values():
        reached["lot with holes"] += bool(lot.holes)
        reached["lot that is never written"] += lot.volatile
        reached["run partly settled"] += any(lease.settled for lease in lot.leases)
        reached["run with ends of its own"] += any(lease.later for lease in lot.leases)
