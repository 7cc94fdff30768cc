"""The log of a job on the command line: printed, and followed until the job has ended."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from jobline import JobLog, JobNotFound, JobState, LogLevel, LogLine
from jobline.cli.job_logs import line_text, logs

AT = datetime(2026, 1, 31, 18, 0, tzinfo=UTC)


def line(number, text, level=LogLevel.INFO):
    return LogLine(number, AT, level, text, 1)


class Jobs:
    """Answers one after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    def log(self, job, *, after=0, level):
        self.asked.append((job, after, level))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def cli():
    """What the command needs of the real one."""
    printed: list[str] = []
    notes: list[str] = []
    out = SimpleNamespace(
        as_json=False,
        console=SimpleNamespace(print=lambda text: printed.append(text.plain)),
        line=lambda document: printed.append(json.dumps(document)),
        note=notes.append,
    )
    return SimpleNamespace(out=out, client=None, printed=printed, notes=notes, file=io.StringIO())


def test_a_log_is_followed_from_its_last_line_until_the_job_has_ended(cli):
    jobs = Jobs(
        JobLog((line(3, "a"), line(4, "b")), 2, JobState.ACTIVE),
        JobLog((), 2, JobState.READY),
        JobLog((line(5, "c"),), 2, JobState.COMPLETED),
    )
    cli.client = SimpleNamespace(jobs=jobs)
    logs(cli, 7, follow=True, interval=0.0)
    said = [text.split()[1:] for text in cli.printed]
    assert said == [["info", "a"], ["info", "b"], ["info", "c"]]
    assert [after for _, after, _ in jobs.asked] == [0, 4, 4]
    assert cli.notes == ["2 older lines no longer kept"]


def test_a_job_that_is_not_kept_ends_the_log(cli):
    cli.client = SimpleNamespace(
        jobs=Jobs(JobLog((), 0, JobState.ACTIVE), JobNotFound("there is no job 7"))
    )
    logs(cli, 7, follow=True, interval=0.0)
    assert cli.printed == []


def test_lines_are_documents_with_json(cli):
    cli.out.as_json = True
    cli.client = SimpleNamespace(jobs=Jobs(JobLog((line(1, "a"),), 0, JobState.ACTIVE)))
    logs(cli, 7, level="warning")
    assert json.loads(cli.printed[0]) == {
        "number": 1,
        "at": "2026-01-31T18:00:00Z",
        "level": "INFO",
        "text": "a",
        "attempt": 1,
    }
    assert cli.client.jobs.asked == [(7, 0, LogLevel.WARNING)]


def test_a_line_cannot_steer_the_terminal():
    assert "\x1b" not in line_text(line(1, "\x1b[2J", LogLevel.ERROR)).plain
