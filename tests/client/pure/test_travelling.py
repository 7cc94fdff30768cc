"""Errors, outcomes and options are copied and sent to other processes as they are."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import pytest

from jobline import (
    Backoff,
    Cancel,
    Dead,
    EndReason,
    FlowJob,
    Internal,
    JobDead,
    JobEnd,
    JobError,
    JobOptions,
    JobState,
    OutcomeUnknown,
    QueueFull,
    Retry,
    Snooze,
    Stopped,
    WaitFor,
    WaitTimeout,
)
from jobline.errors import ErrorFacts

END = JobEnd(7, JobState.DEAD, reason=EndReason.STALLED, error=JobError("T", "no"))

CHILD = FlowJob("q", {"n": 1})

TRAVELLERS = [
    QueueFull("full", ErrorFacts("QUEUE_FULL", "RESOURCE_EXHAUSTED", {"queue": "x"}, 2.0)),
    OutcomeUnknown("lost", request_id="r1"),
    Internal("bug", ErrorFacts(reason="BUG")),
    WaitTimeout("late", 7),
    JobDead("dead", END),
    Retry(5, error="later"),
    Snooze(60),
    WaitFor(CHILD),
    Cancel("unwanted"),
    Dead("hopeless"),
    Stopped("stopping"),
]


@pytest.mark.parametrize("travel", [copy.copy, lambda value: pickle.loads(pickle.dumps(value))])
@pytest.mark.parametrize("error", TRAVELLERS, ids=lambda error: type(error).__name__)
def test_an_error_arrives_with_all_it_says(error, travel):
    """Pools, test runners and result backends pickle what was raised."""
    arrived = travel(error)
    assert type(arrived) is type(error)
    assert arrived.args == error.args
    assert _plain(arrived) == _plain(error)


def _plain(error):
    """What it says; children are compared by what they are made of."""
    fields = vars(error) | {"children": ()}
    return fields, [(one.queue, one.job) for one in getattr(error, "children", ())]


def test_a_twin_has_the_same_cause_and_a_trace_of_its_own():
    """Two callers who share a call share its error, but not where they raised it."""
    error = QueueFull("full")
    error.__cause__ = OSError("gone")
    with pytest.raises(QueueFull) as caught:
        raise error.twin()
    assert caught.value.__cause__ is error.__cause__
    assert error.__traceback__ is None


def test_options_travel_with_their_headers_and_are_hashed_where_they_arrive():
    """Hashes of text differ from process to process."""
    text = "JobOptions(name='n', headers={'a': 'b'}, backoff=Backoff(base=2))"
    program = (
        "import pickle, sys; from jobline import Backoff, JobOptions;"
        f"sys.stdout.buffer.write(pickle.dumps({text}))"
    )
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    pickled = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True
    ).stdout
    here = JobOptions(name="n", headers={"a": "b"}, backoff=Backoff(base=2))
    arrived = pickle.loads(pickled)
    assert {arrived: "found"}[here] == "found"
    assert copy.deepcopy(here) == here


def test_what_no_message_holds_is_cut_or_cleaned():
    """A job can always fail, whatever its error carries."""
    message = JobError("T", "ü" * 5_000, "x" * 20_000 + "end\udcff", b"d" * 20_000).to_message()
    assert len(message.message.encode()) <= 4 << 10
    assert len(message.stack.encode()) <= 16 << 10
    assert message.stack.endswith("end?")
    assert len(message.details) == 16 << 10
