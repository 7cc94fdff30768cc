"""`jobline top`: the queues and workers of a server, live."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from jobline import Client
from jobline.cli import top
from jobline.cli.exit_codes import Exit
from tests.cli.test_commands import push
from tests.cli.test_looking import started, wait_line


def test_top_shows_each_look(jobline, queue):
    push(jobline, queue, "x")
    looks = jobline("top", queue, "--limit", 2, "--interval", "100ms", "--json").lines
    assert [one["queues"][0]["name"] for one in looks] == [queue, queue]
    assert "pushed_per_second" in looks[0]["queues"][0]
    assert queue in jobline("top", queue, "--limit", 1).out


@pytest.mark.parametrize("interval", ["0", "99ms"])
@pytest.mark.parametrize("command", [["top"], ["job", "logs", "7", "--follow"]])
def test_looks_have_time_between_them(jobline, command, interval):
    """It was a busy loop, for the server as well."""
    ended = jobline(*command, "--interval", interval)
    assert ended.code == Exit.USAGE
    assert f"{interval}: at least 0.1 s between two looks, such as 100ms or 1s" in ended.err


def test_the_first_look_that_is_printed_has_rates(jobline, queue):
    """Trial D10: `top -n 1` measures for an interval instead of showing 0/s."""
    told = jobline("top", queue, "--limit", 1, "--interval", "100ms").out
    assert "pushed/s" in told


def test_top_fits_a_narrow_terminal(jobline, queue, served):
    """Trial D10: at 60 characters a queue is one line, without the columns that matter least."""
    push(jobline, queue, "x")
    jobline("queue", "pause", queue, "--reason", "repairs")
    with Client(served["grpc"]) as client:
        cli: Any = SimpleNamespace(client=client, now=lambda: datetime.now(UTC))
        sample = top.take_sample(cli, queue)
        shown = top.view(sample, sample, datetime.now(UTC), rows_max=10, width=60)
    screen = io.StringIO()
    Console(width=60, file=screen).print(shown)
    (row,) = [line for line in screen.getvalue().splitlines() if line.startswith("q-")]
    assert queue in row
    assert "paused" not in row


def test_top_asks_for_the_busiest_queues_and_says_that_there_are_more(queue, served):
    """However many there are: as many as its screen shows, and one more."""
    asked = []
    with Client(served["grpc"]) as client:
        for number, jobs in enumerate((1, 3, 2)):
            client.push_many(f"{queue}-{number}", [b"x"] * jobs)

        def listed(prefix: str, **how: Any) -> Any:
            asked.append(how)
            return client.queues.list(prefix, **how)

        queues = SimpleNamespace(list=listed, history=client.queues.history)
        cli: Any = SimpleNamespace(
            client=SimpleNamespace(queues=queues, admin=client.admin),
            now=lambda: datetime.now(UTC),
        )
        sample = top.take_sample(cli, queue, 2)
        of_all = top.take_sample(cli, "", 2)
    assert asked == [{"order_by": "activity desc", "page_size": 3}] * 2
    assert [*sample.queues] == [f"{queue}-1", f"{queue}-2"]
    assert sample.more is None
    assert of_all.more == of_all.stats.queues - 2 > 0
    screen = io.StringIO()
    for one in (sample, of_all):
        Console(file=screen, width=80).print(top.view(one, one, datetime.now(UTC), rows_max=10))
    assert "… and more queues" in screen.getvalue()
    assert f"… and {of_all.more:,} queues" in screen.getvalue()


@pytest.mark.parametrize("width", [60, 80])
def test_the_head_of_top_breaks_between_facts(jobline, queue, served, width):
    """None of them is cut in two, whatever stands in it, and the screen still has its rows."""
    with Client(served["grpc"]) as client:
        cli: Any = SimpleNamespace(client=client, now=lambda: datetime.now(UTC))
        sample = top.take_sample(cli, queue)
    counts: dict[str, Any] = {
        "ready": 1_234_567,
        "scheduled": 765_432,
        "blocked": 0,
        "active": 12_345,
    }
    large = replace(sample.stats, **counts, disk_full=True)
    sample = replace(sample, stats=large, is_silent=True)
    before = replace(sample, at=sample.at - 1)
    screen = io.StringIO()
    Console(width=width, file=screen).print(
        top.view(before, sample, datetime.now(UTC), rows_max=10, width=width)
    )
    head = screen.getvalue().partition("\n\n")[0].splitlines()
    assert all(line == line.strip() for line in head)
    facts = [fact for line in head for fact in line.split("  ")]
    assert [fact for fact in facts if fact.isupper() or fact[0].isdigit()][:4] == [
        "1,234,567 ready",
        "765,432 scheduled",
        "0 blocked",
        "12,345 active",
    ]
    assert facts[-2:] == ["DISK FULL", "NO ANSWER, asking again"]


def test_top_goes_on_when_the_server_restarts(tmp_path):
    """It ends when somebody stops it, and not before."""
    command = [sys.executable, "-m", "jobline.cli", "serve", "--data", str(tmp_path), "--http", ""]
    server, address = started([*command, "--listen", "127.0.0.1:0"])
    watch = [sys.executable, "-m", "jobline.cli", "top", "--interval", "100ms", "-s", address]
    top = subprocess.Popen(watch, stdout=subprocess.PIPE, text=True)
    assert top.stdout is not None
    try:
        wait_line(top.stdout, lambda line: "pushed/s" in line and "NO ANSWER" not in line)
        server.kill()
        server.wait()
        wait_line(top.stdout, lambda line: "NO ANSWER" in line)
        server, _ = started([*command, "--listen", address])
        wait_line(top.stdout, lambda line: "pushed/s" in line and "NO ANSWER" not in line)
        top.send_signal(signal.SIGINT)
        assert top.wait() == Exit.INTERRUPTED
    finally:
        top.kill()
        server.kill()
