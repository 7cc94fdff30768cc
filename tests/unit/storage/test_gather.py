"""How long a commit gathers."""

from __future__ import annotations

from jobline_server.storage.gather import BUFFERED_MS_MAX, WAIT_MS_MAX, Gather


def after_commits_of(callers: int) -> Gather:
    """A gather that has seen many commits shared by so many callers."""
    gather = Gather()
    for _ in range(50):
        for _ in range(callers):
            gather.note_caller(0.0)
        gather.go()
    return gather


def test_nothing_is_due_while_nothing_is_to_be_written() -> None:
    """An idle server commits nothing."""
    assert Gather().due_ms() is None


def test_one_caller_alone_waits_for_nothing() -> None:
    """One after another, each commit goes at once."""
    gather = after_commits_of(1)
    gather.note_caller(10.0)
    assert gather.due_ms() == 10.0


def test_waits_for_as_many_as_shared_the_last_commits() -> None:
    """Then it goes without waiting out its time."""
    gather = after_commits_of(64)
    for _ in range(63):
        gather.note_caller(10.0)
    assert gather.due_ms() == 10.0 + WAIT_MS_MAX
    gather.note_caller(11.0)
    assert gather.due_ms() == 10.0


def test_waits_only_for_a_bounded_time() -> None:
    """A caller that is left alone after a crowd waits no longer than that, and soon not at all."""
    gather = after_commits_of(64)
    gather.note_caller(10.0)
    assert gather.due_ms() == 10.0 + WAIT_MS_MAX
    for _ in range(30):
        gather.note_caller(20.0)
        gather.go()
    gather.note_caller(30.0)
    assert gather.due_ms() == 30.0


def test_what_nobody_waits_for_is_written_within_its_own_bound() -> None:
    """BUFFERED pushes and leases: soon, but not at once."""
    gather = Gather()
    gather.note(10.0)
    gather.note(12.0)
    assert gather.due_ms() == 10.0 + BUFFERED_MS_MAX


def test_a_caller_hastens_what_was_only_noted() -> None:
    """What was noted goes along with the caller's commit."""
    gather = Gather()
    gather.note(10.0)
    gather.note_caller(11.0)
    assert gather.due_ms() == 11.0


def test_go_says_how_many_waited_and_begins_anew() -> None:
    """The next commit counts from nothing."""
    gather = Gather()
    gather.note_caller(1.0)
    gather.note_caller(1.0)
    assert gather.go() == 2
    assert gather.due_ms() is None
