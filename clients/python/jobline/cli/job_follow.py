"""`jobline job follow`: the pieces of a job's result, as its worker sends them."""

from __future__ import annotations

import sys

from jobline._job_end import JobEnd
from jobline._partial import Partial
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import Cli

# Seconds of one wait; the server's limit.
WAIT_SECONDS = 3_600


def follow(cli: Cli, job: option.JobId) -> None:
    """Print the pieces of the result of a job as its worker sends them, until it has ended.

    Text is printed as it is, and so are bytes; other JSON one to a line.
    """
    for piece in cli.client.partials(job, timeout=WAIT_SECONDS):
        _print(cli, piece)
    end: JobEnd = cli.client.wait_one(job, timeout=0)
    if not cli.out.as_json:
        cli.out.note(f"job {end.id}: {end.state.name}")
    if not end.ok:
        raise end.exception()


def _print(cli: Cli, piece: Partial) -> None:
    if cli.out.as_json:
        cli.out.line(plain(piece))
        return
    value = piece.value()
    if isinstance(value, bytes):
        sys.stdout.buffer.write(value)
        sys.stdout.buffer.flush()
    elif isinstance(value, str):
        sys.stdout.write(value)
        sys.stdout.flush()
    else:
        cli.out.line(value)
