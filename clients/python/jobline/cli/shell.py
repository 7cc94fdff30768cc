"""A job as a child process: payload on stdin, what it is in the environment, exit code → outcome.

    0    done; stdout is the result, if asked for
    65   the payload is bad (EX_DATAERR): to the dead letters at once
    75   not now (EX_TEMPFAIL): given back, tried again later, no attempt used
    *    failed: tried again after the queue's backoff; the error is what it last wrote to stderr,
         and its stack all of it

The child has a process group of its own. When its job is cancelled or the worker stops, the whole
group gets SIGTERM, and SIGKILL five seconds later.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import IO

from jobline._context import Context
from jobline._outcomes import Dead, Retry, Snooze
from jobline._values import JobError

BAD_PAYLOAD = os.EX_DATAERR
NOT_NOW = os.EX_TEMPFAIL
SNOOZE_SECONDS = 30.0
GRACE_SECONDS = 5.0
# What the protocol keeps of a result, and of an error.
RESULT_BYTES_MAX = 1 << 20
STDERR_BYTES_KEPT = 16 << 10


PIPE = asyncio.subprocess.PIPE

Handler = Callable[[bytes, Context], Awaitable[bytes | None]]


def handler(arguments: Sequence[str], *, stdout: int | IO[str] | None) -> Handler:
    """A handler that runs a command for each job. `stdout`: where the command's goes; `PIPE` keeps
    it as the job's result.
    """

    async def run(payload: bytes, context: Context) -> bytes | None:
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=stdout,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **environment(context)},
            start_new_session=True,
        )
        try:
            output, stderr = await process.communicate(payload)
        except asyncio.CancelledError:
            await _end(process)
            raise
        judge(process.returncode or 0, stderr)
        return _result(output) if stdout == PIPE else None

    return run


def environment(context: Context) -> dict[str, str]:
    """Returns the environment variables of a command."""
    job = context.job
    variables = {
        "ID": str(job.id),
        "DELIVERY": str(job.delivery),
        "QUEUE": job.queue,
        "NAME": job.name,
        "ATTEMPT": str(job.attempt),
        "REASON": job.reason.name,
        "KEY": job.job_key,
        "CONTENT_TYPE": job.content_type,
        "HEADERS": json.dumps(job.headers),
    }
    # An environment cannot hold NUL.
    return {f"JOBLINE_JOB_{key}": value.replace("\0", "") for key, value in variables.items()}


def judge(code: int, stderr: bytes) -> None:
    """Raises what an exit code other than 0 means."""
    if code == 0:
        return
    words = last_words(stderr)
    if code == BAD_PAYLOAD:
        raise Dead(words or f"exit code {code}: the payload is bad")
    if code == NOT_NOW:
        raise Snooze(SNOOZE_SECONDS)
    how = f"exit code {code}" if code > 0 else f"ended by {_signal_name(-code)}"
    raise failed(f"{how}: {words}" if words else how, stderr)


def failed(why: str, stderr: bytes) -> Retry:
    """A command failed; its output takes the place of a stack."""
    stack = stderr[-STDERR_BYTES_KEPT:].decode(errors="replace")
    return Retry(error=JobError("ExitStatus", why, stack))


def last_words(stderr: bytes) -> str:
    """Returns the last line that is not blank."""
    kept = stderr[-STDERR_BYTES_KEPT:].decode(errors="replace")
    lines = [line.strip() for line in kept.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _result(stdout: bytes) -> bytes:
    if len(stdout) > RESULT_BYTES_MAX:
        raise failed(f"the result has {len(stdout):,} bytes; at most 1 MiB is kept", b"")
    return stdout.removesuffix(b"\n")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ends a command with all it started, politely first."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            async with asyncio.timeout(GRACE_SECONDS):
                await process.wait()
        except TimeoutError:
            continue
        return
