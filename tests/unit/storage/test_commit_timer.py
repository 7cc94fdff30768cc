"""How long a commit gathers."""

from __future__ import annotations

from jobline_server.storage.commit_timer import (
    BUFFERED_MS_MAX,
    CROWD,
    ENOUGH,
    WAIT_MS_MAX,
    CommitTimer,
)


def gathered(gather: CommitTimer, callers: int, now_ms: float) -> None:
    """So many callers come."""
    for _ in range(callers):
        gather.note_callers(now_ms)


def after_commits_of(callers: int, *, meanwhile: int = 0) -> CommitTimer:
    """A gather that has seen many commits, each shared by so many, others coming meanwhile."""
    gather = CommitTimer()
    for _ in range(50):
        gathered(gather, callers, 0.0)
        gather.go()
        gathered(gather, meanwhile, 0.0)
        gather.landed()
        gather.go()
    return gather


def test_nothing_is_due_while_nothing_is_to_be_written() -> None:
    """An idle server commits nothing."""
    assert CommitTimer().due_ms() is None


def test_one_caller_alone_waits_for_nothing() -> None:
    """One after another, each commit goes at once."""
    gather = after_commits_of(1)
    assert gather.note_callers(10.0)
    assert gather.due_ms() == 10.0


def test_a_few_callers_are_not_kept_waiting() -> None:
    """Fewer than a crowd: what they would save is less than what they would wait."""
    gather = after_commits_of(CROWD - 1)
    gather.note_callers(10.0)
    assert gather.due_ms() == 10.0


def test_a_crowd_is_waited_for_until_it_is_there() -> None:
    """The last of them has the commit go."""
    gather = after_commits_of(ENOUGH - 1)
    gathered(gather, ENOUGH - 2, 10.0)
    assert gather.due_ms() == 10.0 + WAIT_MS_MAX
    assert gather.note_callers(11.0)
    assert gather.due_ms() == 11.0


def test_enough_of_a_large_crowd_need_not_wait_for_the_others() -> None:
    """Those are served while the commit flies."""
    gather = after_commits_of(4 * ENOUGH)
    gathered(gather, ENOUGH - 1, 10.0)
    assert gather.due_ms() == 10.0 + WAIT_MS_MAX
    assert gather.note_callers(11.0)
    assert gather.due_ms() == 11.0


def test_those_who_come_while_a_commit_flies_are_part_of_the_crowd() -> None:
    """So that a crowd whose commits went too early grows together."""
    gather = after_commits_of(CROWD - 1, meanwhile=1)
    gather.note_callers(10.0)
    assert gather.due_ms() == 10.0 + WAIT_MS_MAX


def test_a_crowd_that_is_one_short_once_is_still_one() -> None:
    """Else commits of one or two would follow, whose callers come apart."""
    gather = after_commits_of(CROWD)
    gathered(gather, CROWD - 1, 10.0)
    gather.go()
    gather.landed()
    gather.note_callers(20.0)
    assert gather.due_ms() == 20.0 + WAIT_MS_MAX


def test_the_loop_is_told_only_of_a_new_moment() -> None:
    """The first caller and the last change something, those between them do not."""
    gather = after_commits_of(8)
    assert [gather.note_callers(10.0) for _ in range(9)] == [True, *[False] * 6, True, False]


def test_callers_who_come_together_count_one_by_one() -> None:
    """A burst that is enough goes at once."""
    gather = after_commits_of(8)
    assert (gather.note_callers(10.0, 3), gather.due_ms()) == (True, 10.0 + WAIT_MS_MAX)
    assert (gather.note_callers(11.0, 6), gather.due_ms()) == (True, 11.0)
    assert gather.note_callers(12.0, 4) is False


def test_waits_only_for_a_bounded_time_and_forgets_a_crowd_soon() -> None:
    """A caller that is left alone after a crowd waits no longer, and in the end not at all."""
    gather = after_commits_of(64)
    gather.note_callers(10.0)
    assert gather.due_ms() == 10.0 + WAIT_MS_MAX
    for _ in range(20):
        gather.go()
        gather.landed()
        gather.note_callers(20.0)
    assert gather.due_ms() == 20.0


def test_commits_that_nobody_waits_for_say_nothing_of_the_crowd() -> None:
    """Leases are written between the pushes of a crowd."""
    gather = after_commits_of(64)
    for _ in range(20):
        gather.note(10.0)
        gather.go()
        gather.landed()
    gather.note_callers(20.0)
    assert gather.due_ms() == 20.0 + WAIT_MS_MAX


def test_what_nobody_waits_for_is_written_within_its_own_bound() -> None:
    """BUFFERED pushes and leases: soon, but not at once."""
    gather = CommitTimer()
    gather.note(10.0)
    gather.note(12.0)
    assert gather.due_ms() == 10.0 + BUFFERED_MS_MAX


def test_a_caller_hastens_what_was_only_noted() -> None:
    """What was noted goes along with the caller's commit."""
    gather = CommitTimer()
    gather.note(10.0)
    gather.note_callers(11.0)
    assert gather.due_ms() == 11.0


def test_a_crowd_does_not_put_off_what_was_noted_before() -> None:
    """Its own bound stands."""
    gather = after_commits_of(64)
    gather.note(10.0)
    gather.note_callers(10.0 + BUFFERED_MS_MAX - 1)
    assert gather.due_ms() == 10.0 + BUFFERED_MS_MAX


def test_go_begins_anew() -> None:
    """The next commit counts from nothing."""
    gather = CommitTimer()
    gathered(gather, 2, 1.0)
    gather.go()
    assert gather.due_ms() is None
