"""`jobline queue ls` where there are many queues."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from jobline import Client, Queue
from jobline._objective import WorkersNeeded
from jobline.cli import queue_list, queues
from jobline.cli.exit_codes import Exit
from tests.cli.guarded import guarded_server, run

MANY = 130


@pytest.fixture(scope="module")
def many(served) -> str:
    """What the names of many queues begin with: every other one is mail."""
    with Client(served["grpc"]) as client:
        for number in range(MANY):
            client.push(f"many-{number:03}-{'mail' if number % 2 else 'sms'}", b"x")
    return "many-"


def names(ended) -> list[str]:
    return [line.split()[0] for line in ended.out.splitlines()[1:]]


def test_a_person_gets_the_first_hundred_and_what_to_do(jobline, many):
    ended = jobline("queue", "ls", many)
    assert len(names(ended)) == queue_list.ROWS == 100
    assert "The first 100, and there are more: --limit 0 for all" in ended.err


@pytest.mark.parametrize(
    ("flags", "shown", "more"),
    [
        (["--limit", 3], 3, True),
        (["-n", MANY - 1], MANY - 1, True),
        (["-n", MANY], MANY, False),
        (["-n", MANY + 1], MANY, False),
        (["-n", 0], MANY, False),
    ],
)
def test_limit(jobline, many, flags, shown, more):
    ended = jobline("queue", "ls", many, *flags)
    assert len(names(ended)) == shown
    assert ("there are more" in ended.err) == more


def test_all_for_programs(jobline, many):
    assert len(jobline("queue", "ls", many, "--json").lines) == MANY
    assert len(jobline("queue", "ls", many, "--json", "--limit", 5).lines) == 5


def test_without_a_name_it_says_of_how_many(jobline, many):
    total = jobline("stats", "--json").document["queues"]
    ended = jobline("queue", "ls", "--limit", 2)
    assert len(names(ended)) == 2
    assert f"The first 2 of {total:,}: " in ended.err


def test_a_glob(jobline, many):
    assert len(names(jobline("queue", "ls", f"{many}*-mail"))) == MANY // 2
    assert names(jobline("queue", "ls", f"{many}00*-sms")) == [
        f"{many}00{n}-sms" for n in (0, 2, 4, 6, 8)
    ]
    assert names(jobline("queue", "ls", f"{many}007*")) == [f"{many}007-mail"]
    nothing = jobline("queue", "ls", f"{many}*-fax")
    assert nothing.code == Exit.OK
    assert "No queue has such a name." in nothing.err


def test_a_page_holds_what_is_asked_for(served, many, monkeypatch):
    """The first lines need one call, however many queues there are."""
    asked: list[int] = []
    with Client(served["grpc"]) as client:
        original = client.queues.list

        def listed(begin: str, *, page_size: int):
            asked.append(page_size)
            return original(begin, page_size=page_size)

        monkeypatch.setattr(client.queues, "list", listed)
        assert len(list(queue_list.matching(client, many, 101))) == MANY
    assert asked == [101]


def test_a_caller_who_may_not_see_all_gets_no_number(tmp_path):
    """How many there are is a statistic of the server, which only `read` for all queues shows."""
    with guarded_server(tmp_path) as server:
        with server.client() as client:
            for number in range(3):
                client.push(f"elsewhere{number}", b"x")
        ended = run("queue", "ls", "--limit", 1, *server.flags("stranger-of-three"))
    assert ended.code == Exit.OK, ended.err
    assert "The first 1, and there are more" in ended.err


def test_a_caller_who_may_see_none_is_told_so(tmp_path):
    """Queues were said not to be there."""
    with guarded_server(tmp_path) as server:
        with server.client() as client:
            client.push("mail", b"x")
        ended = run("queue", "ls", *server.flags("push"))
        named = run("queue", "ls", "mail", *server.flags("push"))
        known = run("queue", "ls", "sms", *server.flags("read"))
    said = "that this caller may read: the list has those for which a role of it has the verb read."
    assert f"No queue {said}" in ended.err
    assert f"No queue of such a name {said}" in named.err
    assert "No queue has such a name." in known.err


@pytest.mark.parametrize(
    ("slots", "said"),
    [(1.0, "1 job at a time each"), (2.0, "2 jobs at a time"), (1.5, "1.5 jobs at a time each")],
)
def test_workers_with_one_slot_do_one_job(slots, said):
    """The number is a mean, so it may be a fraction."""
    needed = WorkersNeeded(
        workers=3, slots_per_worker=slots, backlog=0, arrivals_per_second=2.0, mean_run=None
    )
    shown = queues._workers_needed(cast("Queue", SimpleNamespace(workers_needed=needed)))
    assert shown.startswith(f"3, {said}")
