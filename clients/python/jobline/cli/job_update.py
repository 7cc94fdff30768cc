"""`jobline job update` and `forget-key`: change a job that waits, and free a key."""

from __future__ import annotations

from typing import Any

from jobline.cli import job_view
from jobline.cli import options as option
from jobline.cli import payloads as source
from jobline.cli import unique_options as unique_option
from jobline.cli.as_json import plain
from jobline.cli.command import Cli
from jobline.cli.exit_codes import UsageError


def update(
    cli: Cli,
    job: option.JobId,
    payload: option.Payload = None,
    *,
    file: option.File = None,
    priority: option.Priority = None,
    delay: option.Delay = None,
    reason: option.Why = "",
) -> None:
    """Change the payload, priority or time of a job that waits. --delay 0s makes it ready."""
    changes: dict[str, Any] = {"priority": priority, "delay": delay}
    if payload is not None or file is not None:
        changes["payload"] = source.single(payload, file)
    elif priority is None and delay is None:
        raise UsageError("nothing to change: give a payload, --file, --priority or --delay")
    found = cli.client.jobs.update(job, **changes, reason=reason)
    cli.out.document(plain(found), job_view.full(found, cli.now()))


def forget_key(
    cli: Cli,
    queue: option.QueueName,
    key: option.RequiredKey,
    *,
    unique: unique_option.IsUnique = False,
    reason: option.Why = "",
) -> None:
    """Forget an idempotency key, or free a unique one: the next push with it is a new job. Its job
    stays.
    """
    if unique:
        job_id = cli.client.jobs.forget_unique_key(queue, key, reason=reason)
        cli.out.document({"job_id": job_id}, f"free; job {job_id} held it")
        return
    job_id = cli.client.jobs.forget_key(queue, key, reason=reason)
    cli.out.document({"job_id": job_id}, f"forgotten; it named job {job_id}")
