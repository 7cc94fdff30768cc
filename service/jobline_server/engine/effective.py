"""Effective options of a job: its own option, else its queue's setting, else the default."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.dead_letters import AutoRetry
from jobline_server.engine.group_settings import GroupSettings, OnDeadHead
from jobline_server.engine.rules import DeliveryMode, DependencyPolicy
from jobline_server.engine.unique_rule import UniqueMode
from jobline_server.engine.values import (
    Backoff,
    BackoffKind,
    EndReason,
    JobOptions,
    JobState,
    QueueSettings,
)

# Enum attribute access is slow before Python 3.12.
_EXPONENTIAL = BackoffKind.EXPONENTIAL
_ONCE = DeliveryMode.ONCE
_COMPLETED, _DEAD = JobState.COMPLETED, JobState.DEAD
# A job that was interrupted may never run again, the time of one with a deadline is over, and one
# whose parents failed would run without them.
_NOT_AGAIN = frozenset(
    {
        EndReason.INTERRUPTED,
        EndReason.EXPIRED,
        EndReason.RETRY_UNTIL_PASSED,
        EndReason.DEPENDENCY_FAILED,
    }
)


def lease_ms(options: JobOptions, settings: QueueSettings) -> int:
    """Returns the length of a lease, in milliseconds."""
    return options.lease_ms or settings.lease_ms or limits.LEASE_MS_DEFAULT


def timeout_ms(options: JobOptions, settings: QueueSettings) -> int:
    """Returns how long one attempt may take in all, in milliseconds; 0: as long as it takes."""
    return _first(options.rules.timeout_ms, settings.timeout_ms, 0)


def max_attempts(options: JobOptions, settings: QueueSettings) -> int:
    """Returns how many attempts may fail; 0 means unlimited."""
    default = 1 if is_once(options, settings) else limits.MAX_ATTEMPTS_DEFAULT
    return _first(options.max_attempts, settings.max_attempts, default)


def is_once(options: JobOptions, settings: QueueSettings) -> bool:
    """Returns whether a job may be handed out only once."""
    return (options.rules.delivery_mode or settings.delivery_mode) is _ONCE


def max_stalls(options: JobOptions, settings: QueueSettings) -> int:
    """Returns how many times a job may lose its lease before it is DEAD."""
    return _first(options.max_stalls, settings.max_stalls, limits.MAX_STALLS_DEFAULT)


def backoff_ms(options: JobOptions, settings: QueueSettings, job_id: int, attempt: int) -> int:
    """Returns the pause after this attempt (from 1) failed: the same for the same job and
    attempt.
    """
    job, queue = options.backoff, settings.backoff
    if job.delays_ms or queue.delays_ms:
        delays = job.delays_ms or (() if _has_formula(job) else queue.delays_ms)
        if delays:
            delay = delays[min(attempt, len(delays)) - 1]
            return _jittered(delay, job, queue, job_id, attempt)
    base = _first(job.base_ms, queue.base_ms, limits.BACKOFF_BASE_MS_DEFAULT)
    ceiling = _first(job.max_delay_ms, queue.max_delay_ms, limits.BACKOFF_MAX_DELAY_MS_DEFAULT)
    if (job.kind or queue.kind or _EXPONENTIAL) is _EXPONENTIAL:
        base <<= min(attempt - 1, limits.BACKOFF_DOUBLINGS_MAX)
    return _jittered(min(ceiling, base), job, queue, job_id, attempt)


def _has_formula(backoff: Backoff) -> bool:
    """Returns whether it says how pauses grow: it then overrides a list of its queue."""
    return (backoff.kind, backoff.base_ms, backoff.max_delay_ms) != (None, None, None)


def _jittered(delay: int, job: Backoff, queue: Backoff, job_id: int, attempt: int) -> int:
    jitter = job.jitter if job.jitter is not None else queue.jitter
    share = limits.BACKOFF_JITTER_DEFAULT if jitter is None else jitter
    return delay + round(delay * share * (2.0 * _unit(job_id, attempt) - 1.0))


def on_dead_head(options: JobOptions, group: GroupSettings, settings: QueueSettings) -> OnDeadHead:
    """Returns what the group of a job does when this job is dead."""
    own = options.rules.on_dead_head or group.on_dead_head
    return own or settings.group.on_dead_head or OnDeadHead.CONTINUE


def is_kept(options: JobOptions, settings: QueueSettings, state: JobState) -> bool:
    """Returns whether a job that ended in this state goes to the ended store."""
    job, queue = options.retention, settings.retention
    if state is _COMPLETED:
        return not (
            queue.remove_on_complete if job.remove_on_complete is None else job.remove_on_complete
        )
    if state is _DEAD:
        return not (queue.remove_on_fail if job.remove_on_fail is None else job.remove_on_fail)
    return True


def auto_retry(options: JobOptions, settings: QueueSettings, reason: EndReason) -> AutoRetry | None:
    """Returns the rule by which a dead job is put back by itself; None if it is not."""
    rule = settings.dead_letters.auto_retry
    if rule is None or reason in _NOT_AGAIN or is_once(options, settings):
        return None
    return rule


def dead_age_ms(settings: QueueSettings) -> int | None:
    """Returns how long dead jobs without an age of their own are kept; None: for ever."""
    letters = settings.dead_letters
    if letters.keep_forever:
        return None
    if letters.expire_after_ms is not None:
        return letters.expire_after_ms
    queue_age_ms = settings.retention.age_ms
    return limits.STALE_AFTER_DEAD_MS_DEFAULT if queue_age_ms is None else queue_age_ms


def delete_after_ms(settings: QueueSettings) -> int:
    """Returns how long jobs without a time of their own are STALE before they are deleted."""
    return _first(None, settings.retention.delete_after_ms, limits.DELETE_AFTER_MS_DEFAULT)


def dead_bytes_max(settings: QueueSettings) -> int:
    """Returns how many bytes of dead jobs are kept."""
    return settings.dead_letters.max_bytes or limits.DEAD_KEPT_BYTES_MAX


def unique_mode(options: JobOptions, settings: QueueSettings) -> UniqueMode:
    """Returns what a push does while another job holds its unique key."""
    return options.rules.unique.mode or settings.unique_mode or UniqueMode.KEEP


def unique_ttl_ms(options: JobOptions, settings: QueueSettings) -> int:
    """Returns how long a unique key is held; 0 means until its job has ended."""
    return _first(options.rules.unique.ttl_ms, settings.unique_ttl_ms, 0)


def unique_max_wait_ms(options: JobOptions, settings: QueueSettings) -> int | None:
    """Returns how long a series of pushes may delay its job; None means without a limit."""
    own = options.rules.unique.max_wait_ms
    return settings.unique_max_wait_ms if own is None else own


def on_dependency_failure(options: JobOptions, settings: QueueSettings) -> DependencyPolicy:
    """Returns what happens to a job if one that it depends on does not complete."""
    of_job = options.rules.on_dependency_failure
    return of_job or settings.on_dependency_failure or DependencyPolicy.FAIL


def block_timeout_ms(options: JobOptions, settings: QueueSettings) -> int:
    """Returns how long a job may be BLOCKED from its push on, in milliseconds; 0 means no limit."""
    return _first(options.rules.block_timeout_ms, settings.block_timeout_ms, 0)


def _first(of_job: int | None, of_queue: int | None, default: int) -> int:
    if of_job is not None:
        return of_job
    return default if of_queue is None else of_queue


def _unit(job_id: int, attempt: int) -> float:
    """Returns a pseudo-random number in [0, 1): the finalizer of SplitMix64 (Steele, Lea, Flood
    2014).
    """
    mask = (1 << 64) - 1
    z = (job_id * 0x9E3779B97F4A7C15 + attempt * 0xD1B54A32D192ED03) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) / (1 << 53)
