"""The demo on a small tree: workers and the server are killed, and every promise holds.

The journal is read a second time here, so that the demo does not judge itself.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from jobline_server.cli.demo import verdict
from jobline_server.cli.demo.journal import What, read
from jobline_server.cli.demo.play import Cast, play

FILES = 60
# A few seconds, unless the machine is busy with other things.
SECONDS_MAX = 150
pytestmark = pytest.mark.timeout(SECONDS_MAX + 10)


def plant(root, files):
    """Small files of many sizes, in folders; and what a tool left there."""
    for number in range(files):
        path = root / f"folder-{number % 7}" / f"file-{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(hashlib.sha256(str(number).encode()).digest() * (number**2 % 97))
    (root / ".git").mkdir()
    (root / ".git" / "index").write_text("not a file of the tree")
    return root


@pytest.fixture
def tree(tmp_path):
    """Enough files for several pushes."""
    return plant(tmp_path / "tree", FILES)


def run_demo(*arguments):
    command = [sys.executable, "-m", "jobline_server.cli.demo", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)


def test_killed_workers_jobs_are_done_by_others(tree, tmp_path):
    """Kill -9 of a worker half-way: every checksum is right, and others did what it had."""
    ended = run_demo(tree, "--keep", tmp_path / "kept", "--pace", 0.1)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "Every checksum is right" in ended.stdout
    journal = verdict.sorted_journal(read(tmp_path / "kept" / "journal.jsonl"))
    assert len(journal.ended) == len(journal.pushed) == FILES
    assert len(journal.killed) == 1
    assert verdict.taken_over(journal) > 0


@pytest.mark.fault
def test_killed_server_loses_nothing_it_acknowledged(tree, tmp_path):
    """Kill -9 of the server too, and a start on the same data: what was acknowledged is done (G1),
    and nothing was handed out twice under one delivery (G8) or after it completed (G9)."""
    ended = run_demo(tree, "--keep", tmp_path / "kept", "--pace", 0.1, "--kill-server")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = read(tmp_path / "kept" / "journal.jsonl")
    journal = verdict.sorted_journal(lines)
    assert journal.server_kills == 1
    assert not verdict.broken_guarantees(journal)
    assert {journal.ended[job_id]["state"] for job_id in journal.pushed} == {"COMPLETED"}
    assert max(journal.handed.values()) == 1
    killed_at = next(line["at"] for line in lines if line["what"] == What.SERVER_KILLED)
    sides = {line["at"] > killed_at for line in lines if line["what"] == What.PUSH_ANSWERED}
    assert sides == {True, False}, "pushes were answered before the kill and after it"


@pytest.mark.parametrize("files", [1, 12])
def test_a_show_that_looks_late_kills_a_worker_with_a_job_all_the_same(
    tmp_path, monkeypatch, files
):
    """Between two looks everything could be done; the journal says what is, not the moment."""
    monkeypatch.setattr("jobline_server.cli.demo.play._POLL_SECONDS", 0.5)
    kept = tmp_path / "kept"
    kept.mkdir()
    cast = Cast(workers=2, concurrency=2, pace=0.01, kills_server=False)
    assert play(plant(tmp_path / "tree", files), kept, cast)
    assert verdict.taken_over(verdict.sorted_journal(read(kept / "journal.jsonl"))) > 0


def test_nothing_to_do_is_a_failure(tmp_path):
    """An empty tree shows nothing."""
    ended = run_demo(tmp_path)
    assert ended.returncode == 1
    assert "has no files" in " ".join(ended.stderr.split())
