"""Jobs that a running job pushes: their keys, which keep a repeated attempt from pushing them
again. Pure.
"""

from __future__ import annotations

from typing import Any

from jobline._arguments import refuse, text_given
from jobline._leased import LeasedJob

KEY_BYTES_MAX = 200


def of_spawn(parent: LeasedJob, job: Any, key: str | int, how: dict[str, Any]) -> dict[str, Any]:
    """Returns the keywords that a push from a handler of `parent` gets beside its own, `how`: a
    key, and the batch of the parent unless the declared job names another one. Raises
    InvalidArgument.
    """
    if not isinstance(job, str) and not hasattr(job, "with_options"):
        refuse("job", f"must be a queue or a declared job, not {job!r}")
    size = 1 if isinstance(key, int) else len(text_given("spawn_key", key).encode())
    if not 0 < size <= KEY_BYTES_MAX:
        refuse("spawn_key", f"must have 1 to {KEY_BYTES_MAX} bytes")
    if "job_key" in how and "job_key" not in _parameters(job):
        refuse("job_key", "a spawned job has a key of its own: give spawn_key")
    # A number and a text never make the same key.
    own: dict[str, Any] = {
        "job_key": f"spawn:{parent.id}:{'' if isinstance(key, int) else '='}{key}"
    }
    batch_id = parent.options_message.batch_id
    declared = (getattr(job, "options", None), how.get("options"))
    if batch_id and not any(getattr(options, "batch_id", None) for options in declared):
        own["batch_id"] = batch_id
    return own


def push_spawned(
    client: Any, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
) -> Any:
    """Pushes a job of a queue, or a declared one, with either client."""
    if isinstance(job, str):
        return client.push(job, *values, **{**own, **how})
    return job.with_options(**own).push(client, *values, **how)


def _parameters(job: Any) -> tuple[str, ...]:
    return getattr(getattr(job, "parameters", None), "names", ())
