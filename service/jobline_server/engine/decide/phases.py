"""Phases: finishes the steps of jobs one after the other.

The end of a phase is one fact. A worker that does not know whether it was recorded says it again:
the end of a finished phase changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobline_server.engine import limits
from jobline_server.engine.commands import ExtendItem, RefusalKind, Refused
from jobline_server.engine.job import Job
from jobline_server.engine.lot import Lot, RunLease
from jobline_server.engine.phases import overall_progress, results_bytes
from jobline_server.engine.report_entries import PhaseCompleted
from jobline_server.engine.values import Now
from jobline_server.engine.view import ShardView

Progress = dict[int, tuple[int, int]]
"""How many phases of each job are finished, and the bytes of their results, once all checked items
are done.
"""


def check_phases(
    shard: ShardView, items: Iterable[tuple[str, ExtendItem]], progress: Progress
) -> None:
    """Raises `Refused` if an item finishes what is no phase of its job, or not the next one, or if
    the results of its phases become too large. Leases that are lost are not checked. Items come
    with their field in the request, and share `progress` if they are checked in slices.
    """
    for place, item in items:
        lease, _ = shard.find_lease(item.id)
        if not item.phase or lease is None or lease.delivery != item.delivery:
            continue
        names = _owner_of(lease).options.rules.phases
        finished, size = progress.get(item.id) or _finished_of(lease)
        if item.phase in names[:finished]:
            continue
        if names[finished : finished + 1] != (item.phase,):
            why = _why_not(item, names[finished:])
            raise Refused(RefusalKind.WRONG_STATE, why, field=f"{place}.phase")
        size += len(item.phase_result)
        if size > limits.PHASE_RESULTS_BYTES_MAX:
            message = f"at most {limits.PHASE_RESULTS_BYTES_MAX} bytes for all phases of a job"
            raise Refused(RefusalKind.TOO_LARGE, message, field=f"{place}.phase_result")
        progress[item.id] = finished + 1, size


def _owner_of(lease: Job | RunLease) -> Job | Lot:
    return lease if isinstance(lease, Job) else lease.lot


def _finished_of(lease: Job | RunLease) -> tuple[int, int]:
    """Returns how many phases are finished, and the bytes of their results."""
    if not isinstance(lease, Job):
        return 0, 0
    return len(lease.details.phases), results_bytes(lease.details.phases)


def _why_not(item: ExtendItem, left: tuple[str, ...]) -> str:
    if item.phase in left:
        return f"job {item.id} is at its phase {left[0]!r}"
    return f"job {item.id} has no such phase"


def finish_phase(shard: ShardView, now: Now, item: ExtendItem, lease: Job | RunLease) -> None:
    """Finishes the next phase of a job, if it is the one that an item names; call `check_phases`
    before.
    """
    owner, (finished, _) = _owner_of(lease), _finished_of(lease)
    names = owner.options.rules.phases
    if names[finished : finished + 1] != (item.phase,):
        return
    progress = overall_progress(finished + 1, 0.0, len(names))
    fact = PhaseCompleted(
        now.wall_ms, owner.queue.name, item.id, item.phase, item.phase_result, progress
    )
    shard.emit(fact, volatile=owner.volatile)


def progress_of(shard: ShardView, item: ExtendItem) -> float | None:
    """Returns the progress of a job with phases, from that of its current phase."""
    lease, _ = shard.find_lease(item.id)
    if item.progress is None or lease is None:
        return None
    count = len(_owner_of(lease).options.rules.phases)
    return overall_progress(_finished_of(lease)[0], item.progress, count)
