"""`jobline work`: runs a shell command, or a Python function, for each job."""

from __future__ import annotations

import importlib
import logging
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import typer

from jobline.cli import options as option
from jobline.cli import shell
from jobline.cli import work_options as work_option
from jobline.cli.command import JOBS, Cli, command
from jobline.cli.exit_codes import UsageError
from jobline.cli.work_report import WorkReport

if TYPE_CHECKING:
    from jobline import JobType


def register(app: typer.Typer) -> None:
    """Adds `work`."""
    command(app, "work", rich_help_panel=JOBS)(work)


def work(  # noqa: PLR0913  # one argument an option of the command
    cli: Cli,
    queue: option.QueueName,
    arguments: work_option.Arguments = None,
    *,
    shell_line: work_option.ShellLine = "",
    function: work_option.Function = "",
    name: option.Name = "",
    concurrency: work_option.Concurrency = 1,
    result: work_option.Result = False,
    lease: option.Lease = None,
    patience: work_option.Patience = None,
    quiet: work_option.Quiet = False,
) -> None:
    """Work on the jobs of a queue.

    Give a command after `--`, a line for the shell with --shell, or a Python function with
    --function MODULE:NAME, which gets (payload), (payload, context), or values by name.

    A command finds the payload on stdin, and JOBLINE_JOB_ID, _DELIVERY, _QUEUE, _NAME, _ATTEMPT,
    _REASON, _KEY, _CONTENT_TYPE and _HEADERS in its environment. Exit code 0: done; 65: to the dead
    letters; 75: given back for 30 s; any other: failed, tried again. SIGTERM or ^C: finish, then
    end; once more: give back what runs.
    """
    from jobline import ANY, Worker

    job_type = _chosen(queue, name, function)
    run = None if job_type else _command(cli, arguments or [], shell_line, keep_result=result)
    if bool(job_type) == bool(run):
        raise UsageError("give one of: -- COMMAND ARGUMENTS…, --shell LINE, --function MODULE:NAME")
    _ = cli.client  # fails now if no server listens, instead of trying for ever
    middleware = () if quiet else (WorkReport(cli.out),)
    worker = Worker(
        **cli.connection.of_worker(), concurrency=concurrency, lease=lease, middleware=middleware
    )
    if job_type is not None:
        worker.add(job_type)
    elif run is not None:
        worker.handler(queue, name or ANY, payload=bytes)(run)
        if not quiet:  # the report has a line for each job already, and a command no traceback
            logging.getLogger("jobline.worker.jobs").setLevel(logging.CRITICAL)
    cli.out.note(f"working on {queue} at {cli.server}; ^C to finish and end")
    worker.run(exit_when_idle=patience)
    stats = worker.stats
    cli.out.note(f"{stats.done:,} done, {stats.failed:,} failed, {stats.released:,} given back")


def _chosen(queue: str, name: str, function: str) -> JobType[Any, Any] | None:
    """The Python function that the command line asks for, if it does. Raises Mistake."""
    from jobline import ANY, JobType

    if not function:
        return None
    found = load(function)
    if not isinstance(found, JobType):
        return JobType(queue=queue, name=name or ANY, function=found)
    if queue != found.queue or name not in {"", found.name}:  # declared with @job: it knows both
        raise UsageError(
            f"{function} is declared for {found.name!r} of the queue {found.queue!r}: "
            f"jobline work {found.queue} --function {function}"
        )
    return found


def _command(
    cli: Cli, arguments: Sequence[str], shell_line: str, *, keep_result: bool
) -> shell.Handler | None:
    """The command that the command line asks for, if it does. Raises Mistake."""
    if bool(arguments) == bool(shell_line):
        return None
    if arguments and shutil.which(arguments[0]) is None:
        raise UsageError(f"there is no command {arguments[0]!r}")
    words = arguments or ["/bin/sh", "-c", shell_line]
    # With --json our stdout is for lines of JSON alone.
    stdout = shell.PIPE if keep_result else sys.stderr if cli.out.as_json else None
    return shell.handler(words, stdout=stdout)


def load(place: str) -> Callable[..., Any]:
    """The function at `module:name`, found from the present directory too. Raises Mistake."""
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{place!r} is not MODULE:NAME")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109  # sys.path holds text
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise UsageError(f"{place}: there is no module {error.name}") from None
    except AttributeError as error:
        raise UsageError(f"{place}: {error}") from None
    if not callable(found):
        raise UsageError(f"{place} is not a function")
    handler: Callable[..., Any] = found
    return handler
