"""Checks pushes of jobs that become members of batches."""

from __future__ import annotations

from itertools import chain

from jobline_server.engine.batches import Batch
from jobline_server.engine.commands import Push, RefusalKind, Refused
from jobline_server.engine.job_columns import JobColumns
from jobline_server.engine.payloads import Payloads
from jobline_server.engine.push_fields import option_field
from jobline_server.engine.rules import NO_RULES
from jobline_server.engine.values import JobOptions, shard_of
from jobline_server.engine.view import ShardView


def batch_of(options: JobOptions) -> int:
    """Returns the batch that jobs with these options are members of; 0: none."""
    return options.rules.batch_id


def has_members(command: Push) -> bool:
    """Returns whether any job of a push is a member of a batch."""
    rows = command.rows
    every = chain([command.options], rows.options if rows.has_rules else ())
    return any(one.rules is not NO_RULES and one.rules.batch_id for one in every)


def check_batches(shard: ShardView, command: Push, rows: JobColumns, payloads: Payloads) -> None:
    """Refuses a push whose new jobs, `rows` and `payloads`, are to be members of a batch that does
    not exist, is complete or was cancelled.
    """
    shared = [command.options] if len(payloads) else []
    checked: set[int] = set()
    for options in chain(shared, rows.options if rows.has_rules else ()):
        if options.rules is NO_RULES or not options.rules.batch_id:
            continue
        batch_id = options.rules.batch_id
        if batch_id not in checked:
            checked.add(batch_id)
            try:
                check_joinable(shard, batch_id)
            except Refused as refused:
                raise Refused(
                    refused.kind, refused.message, field=_field_of(command, batch_id)
                ) from None


def check_joinable(shard: ShardView, batch_id: int, field: str = "options.batch_id") -> None:
    """Refuses new members of a batch of any shard of this process that does not exist, is complete
    or was cancelled.
    """
    tables, home = shard.load.batches, shard_of(batch_id)
    table = tables.get(home)
    if table is None and home in tables:
        message = f"shard {home} of batch {batch_id} is not served here any more"
        raise Refused(RefusalKind.SHARD_UNAVAILABLE, message, field=field)
    batch = None if table is None else table.records.get(batch_id)
    if batch is None:
        raise not_found(batch_id, field)
    if not batch.takes_members():
        raise takes_no_more(batch, field)


def not_found(batch_id: int, field: str) -> Refused:
    """Returns the refusal of a batch that does not exist."""
    message = f"there is no batch {batch_id}; complete ones are kept for a time only"
    return Refused(RefusalKind.BATCH_NOT_FOUND, message, field=field)


def takes_no_more(batch: Batch, field: str) -> Refused:
    """Returns the refusal of new members."""
    what = "was cancelled" if batch.cancelled_ms else "is complete"
    message = f"batch {batch.id} {what} and takes no new members"
    return Refused(RefusalKind.BATCH_COMPLETE, message, field=field)


def _field_of(command: Push, batch_id: int) -> str:
    """Returns the field of a push that names a batch."""
    shared = command.shared_options or command.options
    if batch_of(shared) == batch_id:
        return "options.batch_id"
    for index, options in enumerate(command.rows.options):
        if batch_of(options) == batch_id:
            return option_field(command, index, "batch_id", batch_of)
    # Without rows, the options of all jobs are the same.
    return "jobs[0].options.batch_id"
