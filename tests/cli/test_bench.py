"""`jobline bench`: its figures, what it leaves behind, and how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time

import pytest

from jobline import Client
from jobline.cli.exit_codes import Exit

SMALL = ("--jobs", 2_000, "--singles", 10)


def bench_queues(address: str) -> list[str]:
    with Client(address) as client:
        return [queue.name for queue in client.queues.list("jobline.bench")]


def test_a_server_that_is_named_is_measured_and_left_clean(jobline, served):
    ended = jobline("bench", "--server", served["grpc"], *SMALL, "--json")
    assert ended.code == Exit.OK, ended.err
    pushed, worked, *singly = ended.lines
    assert pushed["count"] == worked["count"] == 2_000
    assert pushed["per_second"] > 0 < worked["per_second"]
    for one in singly:
        assert one["p50_seconds"] > 0
    assert not any("fsync, in" in one["what"] for one in singly)
    assert not bench_queues(served["grpc"])


def test_without_one_it_starts_its_own_and_takes_it_away(jobline, tmp_path, monkeypatch):
    """Whatever JOBLINE_SERVER says: nobody's server is measured by accident."""
    monkeypatch.setenv("JOBLINE_DATA", str(tmp_path / "precious"))
    ended = jobline("bench", "--data", tmp_path, *SMALL, server="127.0.0.1:1")
    assert ended.code == Exit.OK, ended.err
    for figure in ("push, 1,000 jobs a call", "stream of one", "one at a time", "4 KiB and fsync"):
        assert figure in ended.out
    assert not list(tmp_path.iterdir())


def test_a_disk_beside_a_server_that_is_named_is_refused(jobline, tmp_path):
    ended = jobline("bench", "--server", "127.0.0.1:1", "--data", tmp_path)
    assert ended.code == Exit.USAGE
    assert "leave it out with --server" in ended.err


def test_disk_that_cannot_be_written_is_said_at_once(jobline, tmp_path):
    ended = jobline("bench", "--data", tmp_path / "nowhere", *SMALL)
    assert ended.code == Exit.USAGE
    assert "nothing can be written in" in ended.err


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_its_server_does_not_outlive_it(tmp_path, kind):
    command = [sys.executable, "-m", "jobline.cli", "bench", "--data", str(tmp_path)]
    process = subprocess.Popen([*command, "--jobs", "10000000"], stderr=subprocess.PIPE)
    wait_until(lambda: any(tmp_path.glob("jobline-dev-*/finished.db")))
    process.send_signal(kind)
    process.wait(timeout=100)
    wait_until(lambda: not any(tmp_path.iterdir()))
    assert process.returncode == {signal.SIGINT: Exit.INTERRUPTED}.get(kind, -kind)


def wait_until(is_so, seconds: float = 40) -> None:
    """Looks until it is so: what another process does to a directory signals nobody."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end
        threading.Event().wait(0.02)
