"""A full disk is logged when it begins and when it ends; and what may have the last reserve."""

from __future__ import annotations

import logging

import pytest

from jobline_server.engine.entries import Fact, JobsAgedOut, JobsDeleted
from jobline_server.engine.queue_entries import (
    QueueChanged,
    QueueDeleted,
    QueuePaused,
    QueueResumed,
)
from jobline_server.engine.report_entries import JobReported
from jobline_server.engine.values import DEFAULT_SETTINGS, JobState
from jobline_server.runtime.commits.disk import Disk, make_room
from jobline_server.storage.space import NO_SPACE

KEEPS: tuple[Fact, ...] = (
    JobReported(1, "mail", 7, 0.5, None, None),
    QueuePaused(1, "mail", "", ""),
    QueueResumed(1, "mail"),
)
FREES: tuple[Fact, ...] = (
    JobsDeleted(1, "mail", JobState.DEAD, [7], [1]),
    JobsAgedOut(1, "mail", JobState.DEAD, [7], [1]),
    QueueChanged(1, "mail", DEFAULT_SETTINGS),
    QueueDeleted(1, "mail"),
)


def test_a_disk_has_room_until_it_is_said_to_be_full() -> None:
    disk = Disk(NO_SPACE)
    assert not disk.is_full
    disk.is_full = True
    assert disk.is_full
    disk.is_full = False
    assert not disk.is_full


def test_each_change_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """Every commit that finds the disk full says so, many times a second."""
    caplog.set_level(logging.INFO)
    disk = Disk(NO_SPACE)
    for is_full in (False, True, True, True, False, False, True):
        disk.is_full = is_full
    assert [record.levelno for record in caplog.records] == [
        logging.ERROR,
        logging.WARNING,
        logging.ERROR,
    ]
    assert "full" in caplog.records[0].getMessage()
    assert "room again" in caplog.records[1].getMessage()


@pytest.mark.parametrize("fact", FREES, ids=lambda fact: type(fact).__name__)
def test_facts_that_free_room_are_found_among_others(fact: Fact) -> None:
    """In whatever shard they are."""
    assert make_room([[*KEEPS, fact]])
    assert make_room([[], KEEPS, [fact]])


def test_other_facts_have_none_of_the_reserve() -> None:
    assert not make_room([])
    assert not make_room([[], KEEPS])
