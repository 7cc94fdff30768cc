"""`jobline job follow`: pieces as they come, and how the job ended."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace

import pytest

from jobline import JobDead, JobEnd, JobState, Partial
from jobline._enums import EndReason
from jobline.cli.job_follow import follow


def piece(number: int, data: bytes) -> Partial:
    return Partial(7, 3, number, data)


class Waiting:
    """The calls of the client that the command makes."""

    def __init__(self, pieces, end):
        self._pieces, self._end = pieces, end

    def partials(self, _job, timeout):
        assert timeout == 3_600
        return iter(self._pieces)

    def wait_one(self, _job, timeout):
        assert timeout == 0
        return self._end


@pytest.fixture
def cli():
    """What the command needs of the real one."""
    lines: list[object] = []
    notes: list[str] = []
    pieces = [piece(1, b'"one "'), piece(2, b"two \xff"), piece(4, b'{"a":1}')]
    client = Waiting(pieces, JobEnd(7, JobState.COMPLETED))
    out = SimpleNamespace(as_json=False, line=lines.append, note=notes.append)
    return SimpleNamespace(out=out, client=client, lines=lines, notes=notes)


def test_text_and_bytes_are_printed_as_they_are(cli, monkeypatch):
    raw = io.BytesIO()
    stdout = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    monkeypatch.setattr("sys.stdout", stdout)
    follow(cli, 7)
    assert raw.getvalue() == b"one two \xff"
    assert (cli.lines, cli.notes) == ([{"a": 1}], ["job 7: COMPLETED"])


def test_programs_get_each_piece_as_json(cli):
    cli.out.as_json = True
    follow(cli, 7)
    assert [json.loads(json.dumps(line))["number"] for line in cli.lines] == [1, 2, 4]
    assert cli.notes == []


def test_job_that_did_not_complete_is_an_error(cli):
    cli.client = Waiting([], JobEnd(7, JobState.DEAD, b"", EndReason.EXPLICIT_FAIL))
    with pytest.raises(JobDead):
        follow(cli, 7)
