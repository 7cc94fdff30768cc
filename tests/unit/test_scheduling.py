"""Scheduling: threads that are made at a start interrupt nobody, and the loop is as others are."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

import pytest

from jobline_server import scheduling

linux = pytest.mark.skipif(sys.platform != "linux", reason="policies of Linux")


def in_thread(work: Any) -> Any:
    """What a function returns in a thread of its own."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(work()))
    thread.start()
    thread.join()
    return results[0]


def policy() -> int:
    return os.sched_getscheduler(0)


@linux
def test_threads_made_at_a_start_interrupt_nobody_and_the_loop_is_as_before() -> None:
    def start() -> tuple[bool, int, int, int]:
        worked = scheduling.run_threads_in_batches()
        made_at_start = in_thread(policy)
        scheduling.favour_loop()
        return worked, made_at_start, policy(), in_thread(policy)

    assert in_thread(start) == (True, os.SCHED_BATCH, os.SCHED_OTHER, os.SCHED_OTHER)


@linux
def test_the_policy_that_an_operator_chose_stays() -> None:
    def start() -> tuple[bool, int]:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        worked = scheduling.run_threads_in_batches()
        scheduling.favour_loop()
        return worked, policy()

    assert in_thread(start) == (False, os.SCHED_IDLE)


def test_a_system_without_policies_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "sched_getscheduler", forbidden, raising=False)
    assert not scheduling.run_threads_in_batches()
    monkeypatch.delattr(os, "sched_getscheduler")
    assert not scheduling.run_threads_in_batches()
