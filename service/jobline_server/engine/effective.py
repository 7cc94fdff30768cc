"""What is in force for a job: its own option, else its queue's setting, else the default."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.values import BackoffKind, JobOptions, JobState, QueueSettings

# Enum attribute access is slow before Python 3.12.
_EXPONENTIAL = BackoffKind.EXPONENTIAL
_COMPLETED, _DEAD = JobState.COMPLETED, JobState.DEAD


def lease_ms(options: JobOptions, settings: QueueSettings) -> int:
    """How long a worker may stay silent."""
    return options.lease_ms or settings.lease_ms or limits.LEASE_MS_DEFAULT


def max_attempts(options: JobOptions, settings: QueueSettings) -> int:
    """How many attempts may fail; 0 means unlimited."""
    return _first(options.max_attempts, settings.max_attempts, limits.MAX_ATTEMPTS_DEFAULT)


def max_stalls(options: JobOptions, settings: QueueSettings) -> int:
    """How many lost leases are forgiven."""
    return _first(options.max_stalls, settings.max_stalls, limits.MAX_STALLS_DEFAULT)


def backoff_ms(options: JobOptions, settings: QueueSettings, job_id: int, attempt: int) -> int:
    """The pause after this attempt failed (from 1): the same for the same job and attempt."""
    own, queue = options.backoff, settings.backoff
    base = _first(own.base_ms, queue.base_ms, limits.BACKOFF_BASE_MS_DEFAULT)
    ceiling = _first(own.max_delay_ms, queue.max_delay_ms, limits.BACKOFF_MAX_DELAY_MS_DEFAULT)
    if (own.kind or queue.kind or _EXPONENTIAL) is _EXPONENTIAL:
        doublings = attempt - 1
        most = limits.BACKOFF_DOUBLINGS_MAX
        base <<= min(most, doublings)
    delay = min(ceiling, base)
    jitter = own.jitter if own.jitter is not None else queue.jitter
    share = limits.BACKOFF_JITTER_DEFAULT if jitter is None else jitter
    return delay + round(delay * share * (2.0 * _unit(job_id, attempt) - 1.0))


def is_kept(options: JobOptions, settings: QueueSettings, state: JobState) -> bool:
    """Whether a job that ended in this state goes to the ended store."""
    own, queue = options.retention, settings.retention
    if state is _COMPLETED:
        return not (
            queue.remove_on_complete if own.remove_on_complete is None else own.remove_on_complete
        )
    if state is _DEAD:
        return not (queue.remove_on_fail if own.remove_on_fail is None else own.remove_on_fail)
    return True


def _first(own: int | None, queue: int | None, default: int) -> int:
    if own is not None:
        return own
    return default if queue is None else queue


def _unit(job_id: int, attempt: int) -> float:
    """A number in [0, 1) that looks random: the finalizer of SplitMix64 (Steele, Lea, Flood
    2014).
    """
    mask = (1 << 64) - 1
    z = (job_id * 0x9E3779B97F4A7C15 + attempt * 0xD1B54A32D192ED03) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) / (1 << 53)
