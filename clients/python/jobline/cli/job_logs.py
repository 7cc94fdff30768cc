"""`jobline job logs`: the log of a job, or what it writes from now on."""

from __future__ import annotations

import time

from rich.text import Text

from jobline._enums import JobState, named
from jobline._job_log import JobLog, LogLevel, LogLine
from jobline._printable import printable
from jobline.cli import options as option
from jobline.cli.as_json import plain
from jobline.cli.command import Cli
from jobline.cli.output import counted
from jobline.errors import JobNotFound

_STYLES = {LogLevel.DEBUG: "dim", LogLevel.WARNING: "yellow", LogLevel.ERROR: "bold red"}
_LIVE = {JobState.SCHEDULED, JobState.BLOCKED, JobState.READY, JobState.ACTIVE}


def logs(
    cli: Cli,
    job: option.JobId,
    *,
    level: option.MinLevel = "debug",
    follow: option.Follow = False,
    interval: option.Interval = 1.0,
) -> None:
    """Print the log of a job: its last 1,000 lines.

    With --follow it goes on with what the job writes, until the job has ended.
    """
    wanted = named(LogLevel, level)
    log = cli.client.jobs.log(job, level=wanted)
    if log.dropped:
        cli.out.note(f"{counted(log.dropped, 'older line')} no longer kept")
    last = _print(cli, log, 0)
    while follow and log.state in _LIVE:
        time.sleep(interval)
        try:
            log = cli.client.jobs.log(job, after=last, level=wanted)
        except JobNotFound:  # it ended and is not kept
            return
        last = _print(cli, log, last)


def _print(cli: Cli, log: JobLog, last: int) -> int:
    """Prints lines; returns the number of the last one that was printed so far."""
    for line in log.lines:
        last = line.number
        if cli.out.as_json:
            cli.out.line(plain(line))
        else:
            cli.out.console.print(line_text(line))
    return last


def line_text(line: LogLine) -> Text:
    """A line with its time and level."""
    shown = Text(line.at.astimezone().strftime("%H:%M:%S.%f")[:-3] if line.at else "", style="dim")
    shown.append(f" {line.level.name.lower():<7} ", style=_STYLES.get(line.level, ""))
    shown.append(printable(line.text))
    return shown
