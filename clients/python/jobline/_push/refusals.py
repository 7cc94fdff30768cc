"""What becomes of pushes that shared a call when it fails. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobline._arguments import refuse
from jobline._options import JobOptions
from jobline._push.batch import Batch, Own
from jobline._push.batching import PushBatcher
from jobline._push.calls import is_definite
from jobline._push.messages import BatchKey
from jobline.errors import InvalidArgument, JoblineError, ResourceExhausted, TooLarge

_OF_COLUMNS = ("payloads", "jobs", "job_keys", "unique_keys", "header_columns", "groups")
_OF_UNIQUE_KEYS = ("unique_mode", "unique_ttl", "unique_max_wait")
# The columns of a push that is alone in its call, as fields of a job.
_AS_A_JOB = {
    "groups[0]": "jobs[0].options.group",
    "unique_keys[0]": "jobs[0].options.unique_key",
    "job_keys[0]": "jobs[0].job_key",
}


def refuse_alone(options: JobOptions, own: Own) -> None:
    """Raises InvalidArgument, as the server would, for options that mean nothing without a group or
    a unique key. Among pushes that share a call it would take them, if another one has what they
    need.
    """
    if not own.unique_key:
        for name in _OF_UNIQUE_KEYS:
            if getattr(options, name) is not None:
                refuse(f"options.{name}", "needs a unique_key")
    if not own.group and (options.sticky or options.on_dead_head is not None):
        refuse("options.sticky" if options.sticky else "options.on_dead_head", "needs a group")


def handle_error(
    batcher: PushBatcher[BatchKey, Any],
    now: float,
    batch: Batch[BatchKey, Any],
    error: JoblineError,
) -> bool:
    """Handles a call that failed. Returns True if the batch is done and its pushes must be
    answered.
    """
    if _is_of_some_pushes(error, batch):
        return not batcher.handle_refused(batch)
    if error.definite or not error.retryable:
        batcher.handle_done(batch, is_known=is_definite(error, batch.tries))
        return True
    return not batcher.handle_unknown(now, batch)


def _is_of_some_pushes(error: JoblineError, batch: Batch[BatchKey, Any]) -> bool:
    """Returns whether the refusal is, or may be, about some of the pushes and not the others; what
    they share is refused for all at once.
    """
    pushes = batch.pushes
    if isinstance(error, InvalidArgument):
        field = error.field
        if field is None or field.startswith(_OF_COLUMNS):
            return True
        if field.startswith("options.unique"):
            # What is wrong with it matters for jobs with a unique key alone.
            return _is_mixed(pushes.unique_keys)
        return field.startswith("options.headers") and pushes.differ_in_headers()
    if isinstance(error, TooLarge) or error.reason == "GROUP_FULL":
        return True
    # Jobs with a key and jobs without one count towards different limits.
    is_mixed = _is_mixed(pushes.job_keys) or _is_mixed(pushes.unique_keys)
    return is_mixed and isinstance(error, ResourceExhausted)


def _is_mixed(keys: Sequence[str]) -> bool:
    """Returns whether some have a key and others none."""
    return any(keys) and not all(keys)


def refusal_of_one(error: JoblineError, batch: Batch[BatchKey, Any]) -> JoblineError:
    """Returns a refusal with the field as `push_many` names it: that a single push went in columns
    is not its caller's concern.
    """
    field = _AS_A_JOB.get(error.field or "")
    return error if field is None or len(batch.waiters) > 1 else error.about(field)
