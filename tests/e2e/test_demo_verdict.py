"""The demo's judge: each broken promise is found in a journal that shows it."""

from __future__ import annotations

import fcntl
import re
import threading
from pathlib import Path

import pytest
from rich.console import Console

from jobline_server.cli.demo.gate import Gate
from jobline_server.cli.demo.journal import Journal, Reader, What, read
from jobline_server.cli.demo.play import Cast
from jobline_server.cli.demo.screen import ResultRow, Screen, screenful
from jobline_server.cli.demo.verdict import Hands, broken_guarantees, sorted_journal, taken_over


def pushed(*paths, first_id=1, request_id="r"):
    return [
        {"what": What.PUSH_CALLED, "request_id": request_id, "paths": list(paths)},
        {"what": What.PUSH_ANSWERED, "request_id": request_id, "first_id": first_id},
    ]


def handed(job_id, delivery, worker="w1"):
    return {"what": What.HANDED, "id": job_id, "delivery": delivery, "worker": worker}


def finished(job_id, delivery, worker="w1"):
    return {"what": What.FINISHED, "id": job_id, "delivery": delivery, "worker": worker}


def dropped(job_id, delivery, worker="w1"):
    return finished(job_id, delivery, worker) | {"what": What.DROPPED}


def ended(job_id, delivery, worker="w1", state="COMPLETED"):
    told = {"id": job_id, "delivery": delivery, "worker": worker, "state": state, "error": ""}
    return {"what": What.ENDED, **told}


def test_a_journal_without_faults_breaks_nothing():
    lines = [*pushed("a", "b"), handed(1, 1), handed(2, 1), ended(1, 1), ended(2, 1)]
    assert broken_guarantees(sorted_journal(lines)) == []


@pytest.mark.parametrize(
    ("lines", "promise"),
    [
        (pushed("a"), "G1: job 1 .a. was acknowledged and never ended"),
        ([*pushed("a"), ended(1, 1, state="DEAD")], "G1: job 1 .a. ended as DEAD"),
        (
            [
                *pushed("a"),
                *pushed("a", first_id=2),
                *[line for n in (1, 2) for line in (handed(n, 1), ended(n, 1))],
            ],
            "G6: a was pushed 1 times and stored 2 times",
        ),
        ([handed(7, 1)], "G6: job 7 was handed out and never answered"),
        ([*pushed("a"), handed(1, 1), handed(1, 1, "w2"), ended(1, 1)], "G8: job 1 .* 2 times"),
        ([*pushed("a"), handed(1, 1), ended(1, 1), handed(1, 2)], "G9: job 1 completed under"),
    ],
)
def test_each_broken_promise_is_named(lines, promise):
    problems = broken_guarantees(sorted_journal(lines))
    assert len(problems) == 1
    assert re.match(promise, problems[0])


def test_what_a_killed_worker_had_begun_counts_once_another_did_it():
    killed = {"what": What.WORKER_KILLED, "worker": "w1"}
    lines = [handed(1, 1), finished(1, 1), ended(1, 1), handed(2, 1), handed(3, 1), killed]
    assert taken_over(sorted_journal([*lines, handed(2, 2, "w2"), ended(2, 2, "w2")])) == 1


def test_what_a_worker_had_dropped_before_it_was_killed_is_not_counted():
    killed = {"what": What.WORKER_KILLED, "worker": "w1"}
    lines = [handed(1, 1), dropped(1, 1), killed, handed(1, 2, "w2"), ended(1, 2, "w2")]
    assert taken_over(sorted_journal(lines)) == 0


@pytest.mark.parametrize(
    ("lines", "holder"),
    [
        ([], None),
        ([handed(1, 1), handed(2, 1, "w2")], "w2"),
        ([handed(1, 1), handed(2, 1, "w2"), finished(2, 1, "w2")], "w1"),
        ([handed(1, 1), dropped(1, 1)], None),
        ([handed(1, 1), handed(1, 2, "w2"), finished(1, 1)], "w2"),
        ([handed(1, 1), handed(2, 1, "w2"), handed(1, 2, "w3")], "w3"),
    ],
)
def test_the_last_who_was_handed_a_job_and_still_has_it_is_the_holder(lines, holder):
    hands = Hands()
    for line in lines:
        hands.take(line)
    assert hands.holder() == holder


def test_nobody_passes_a_gate_that_is_shut(tmp_path):
    said = []
    mine, theirs = Gate(tmp_path / "gate"), Gate(tmp_path / "gate")
    begun = threading.Event()

    def pass_through():
        begun.set()
        with theirs.passing():
            said.append("passed")

    with theirs.passing(), theirs.passing():
        pass
    mine.shut()
    mine.shut()
    with mine.path.open() as file, pytest.raises(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    passing = threading.Thread(target=pass_through)
    passing.start()
    begun.wait()
    said.append("opened")
    mine.open()
    mine.open()
    passing.join()
    assert said == ["opened", "passed"]


def test_a_line_is_read_when_it_is_whole(tmp_path):
    path = tmp_path / "journal"
    journal = Journal(path)
    reader = Reader(path)
    journal.note(What.SERVER_KILLED)
    with path.open("ab") as file:
        file.write(b'{"what":"ha')
        file.flush()
        assert [line["what"] for line in reader.new()] == [What.SERVER_KILLED]
        file.write(b'nded"}\n')
    assert [line["what"] for line in reader.new()] == ["handed"]
    assert len(read(path)) == 2


def test_a_screenful_shows_what_is_wrong_first():
    rows = [ResultRow(str(n), 1, "", "w", "FIRST", "right") for n in range(50)]
    wrong = ResultRow("wrong", 1, "", "w", "FIRST", "WRONG")
    chosen, left_out = screenful([*rows, wrong], 10)
    assert chosen[-1] is wrong
    assert left_out == 41


def test_pace_makes_small_and_large_trees_last_alike():
    cast = Cast(workers=4, concurrency=2, pace=None, kills_server=False)
    assert cast.pace_for(10) == 0.4
    assert cast.pace_for(480) == pytest.approx(0.1)
    assert cast.pace_for(1_000_000) == 0.002


@pytest.mark.parametrize("width", [60, 80])
def test_results_are_read_on_a_narrow_terminal(width):
    """The path takes what the other columns leave; none of these is cut."""
    rows = [ResultRow(f"/tree/{'long' * 20}", 10_240, "ab" * 32, "worker-1", "STALLED", "right")]
    screen = Screen(1, Path("/tree"))
    screen.console = Console(width=width, highlight=False)
    with screen.console.capture() as shown:
        screen.results(rows)
    lines = shown.get().splitlines()
    assert all(len(line) <= width for line in lines)
    assert ("abababababab" in lines[1]) == (width == 80)
    for whole in ("10,240", "worker-1", "stalled", "right"):
        assert whole in lines[1]
