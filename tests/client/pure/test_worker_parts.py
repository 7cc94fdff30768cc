"""The worker's pure parts: window, drain, batches, routes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobline import ANY, InvalidArgument, JobType
from jobline._worker.batches import JobBatches
from jobline._worker.drain import CONFIRM_SECONDS_MAX, Drain, Stage
from jobline._worker.grace_periods import GracePeriods
from jobline._worker.routes import Routes, route_of, route_of_type, weights_of
from jobline._worker.window import ADAPTIVE_MAX, INTERVAL, Window

# ---------------------------------------------------------------------- window


def follow(window, rate, seconds, *, start=0.0, finished=0):
    """Lets a worker finish `rate` jobs a second for a while; the moment, and what it has
    finished.
    """
    now = start
    while now < start + seconds:
        now += INTERVAL
        finished += round(rate * INTERVAL)
        window.measure(now, finished)
    return now, finished


def test_slow_handlers_get_what_they_can_run():
    """What waits at one worker cannot run at another that is idle."""
    window = Window(0.0, runners=16)
    follow(window, rate=4, seconds=5)
    assert window.size == 16


def test_fast_handlers_get_a_moment_of_work_ahead():
    """Enough for the round trip, however fast they are, and within bounds."""
    window = Window(0.0, runners=16)
    now, finished = follow(window, rate=20_000, seconds=1)
    assert 1_500 <= window.size <= 2_600
    follow(window, rate=10**7, seconds=1, start=now, finished=finished)
    assert window.size == ADAPTIVE_MAX


def test_an_idle_worker_returns_to_its_runners():
    """A burst of slow jobs after a quiet time is shared with others."""
    window = Window(0.0, runners=16)
    now, finished = follow(window, rate=20_000, seconds=1)
    assert not window.is_at_rest
    follow(window, rate=0, seconds=4, start=now, finished=finished)
    assert window.size == 16
    assert window.is_at_rest


def test_a_fixed_window_never_moves():
    """Whoever names a number gets it."""
    window = Window(0.0, runners=16, fixed=3)
    follow(window, rate=20_000, seconds=1)
    assert (window.size, window.is_at_rest) == (3, True)


# ---------------------------------------------------------------------- drain


def stages(drain, now, *, is_idle=False, is_confirmed=False):
    found = []
    while (stage := drain.step(now, is_idle=is_idle, is_confirmed=is_confirmed)) is not None:
        found.append(stage)
    return found


def test_a_drain_gives_each_stage_its_time():
    """Finish, then cancel, then release."""
    drain = Drain(soft_stop=20, hard_stop=5)
    assert stages(drain, 0.0) == []
    drain.request_stop()
    assert stages(drain, 1.0) == [Stage.FINISHING]
    assert drain.next_deadline() == 21.0
    assert stages(drain, 20.9) == []
    assert stages(drain, 21.0) == [Stage.CANCELLING]
    assert stages(drain, 26.0) == [Stage.RELEASING]
    assert stages(drain, 26.0 + CONFIRM_SECONDS_MAX) == [Stage.STOPPED]
    assert stages(drain, 99.0) == []


def test_a_worker_with_nothing_to_do_stops_at_once():
    """No stage waits for what is not there."""
    drain = Drain(soft_stop=20, hard_stop=5)
    drain.request_stop()
    found = stages(drain, 0.0, is_idle=True, is_confirmed=True)
    assert found == [Stage.FINISHING, Stage.CANCELLING, Stage.RELEASING, Stage.STOPPED]


def test_it_waits_for_the_last_confirm():
    """Handlers have ended, but the server has not said that it knows."""
    drain = Drain(soft_stop=20, hard_stop=5)
    drain.request_stop()
    assert stages(drain, 0.0, is_idle=True)[-1] is Stage.RELEASING
    assert stages(drain, 1.0, is_idle=True, is_confirmed=True) == [Stage.STOPPED]


def test_asking_again_goes_on_at_once():
    """Whoever presses Ctrl-C twice does not want to wait."""
    drain = Drain(soft_stop=20, hard_stop=5)
    drain.request_stop()
    drain.request_stop()
    assert stages(drain, 0.0) == [Stage.FINISHING, Stage.CANCELLING]
    drain.request_stop()
    assert stages(drain, 0.0) == [Stage.RELEASING]


def test_asking_while_a_stage_begins_is_not_lost(monkeypatch):
    """Whoever asks and whoever heeds are different threads."""
    drain = Drain(soft_stop=20, hard_stop=5)

    class Asking:
        """The lengths of the stages; somebody asks again in the middle of the first step."""

        def get(self, stage):
            if stage is Stage.FINISHING:
                drain.request_stop()
            return 20.0

    monkeypatch.setattr(drain, "_lengths", Asking())
    drain.request_stop()
    assert stages(drain, 0.0) == [Stage.FINISHING, Stage.CANCELLING]


def test_an_idle_worker_asks_by_itself():
    """Trial D8: busy or finished jobs start its time again; without a limit it never asks."""
    drain = Drain(soft_stop=20, hard_stop=5)
    assert drain.check_idle(0.0, is_busy=False, finished=0) is None
    drain.stop_when_idle(10)
    assert drain.check_idle(1.0, is_busy=True, finished=0) == 10
    assert drain.check_idle(5.0, is_busy=False, finished=0) == 6
    assert drain.check_idle(9.0, is_busy=False, finished=1) == 10
    assert stages(drain, 18.9) == []
    assert drain.check_idle(19.0, is_busy=False, finished=1) == 0
    assert stages(drain, 19.0) == [Stage.FINISHING]
    assert drain.check_idle(99.0, is_busy=False, finished=1) is None


# ---------------------------------------------------------------------- periods


def test_patience_is_over_once_for_each_that_hangs_on():
    """It runs from the first look at which somebody was told, and is forgotten when he stops."""
    periods: GracePeriods[str] = GracePeriods(grace=30)
    assert periods.expired(0.0, ["a"]) == []
    assert periods.expired(10.0, ["a", "b"]) == []
    assert periods.next_deadline() == 30.0
    assert periods.expired(30.0, ["a", "b"]) == ["a"]
    assert periods.next_deadline() == 40.0
    assert periods.expired(45.0, ["a", "b"]) == ["b"]
    assert periods.expired(60.0, ["a", "b"]) == []
    assert periods.next_deadline() is None
    assert periods.expired(61.0, []) == []
    assert periods.expired(62.0, ["a"]) == []
    assert periods.next_deadline() == 92.0


# ---------------------------------------------------------------------- batches


@given(st.lists(st.tuples(st.floats(0, 0.5), st.sampled_from("ab")), max_size=40))
def test_a_batch_is_full_or_its_first_job_has_waited(arrivals):
    """Nothing is lost, nothing waits longer than it may, no batch is too large."""
    collector: JobBatches[str, int] = JobBatches()
    now, came, batches = 0.0, {}, []
    for number, (pause, key) in enumerate(arrivals):
        now += pause
        batches += [(now, batch) for _, batch in collector.due(now)]
        came[number] = now
        full = collector.add(now, key, number, size=3, wait=0.3)
        if full is not None:
            assert len(full) == 3
            batches.append((now, full))
        deadline = collector.next_deadline()
        assert deadline is None or deadline > now
    batches += [(now + 1, batch) for _, batch in collector.due(now + 1)]
    assert sorted(number for _, batch in batches for number in batch) == sorted(came)
    for at, batch in batches:
        assert len(batch) == 3 or at >= came[batch[0]] + 0.3 - 1e-9


# ---------------------------------------------------------------------- routes


def plain(payload):
    return payload


async def with_context(payload, context):
    return context


def test_a_handler_is_called_the_way_it_is_written():
    """Async or plain, with a context or without; callables count as what their `__call__` is."""

    class Callable:
        async def __call__(self, payload, context):
            return None

    assert (route_of("q", "", plain).is_async, route_of("q", "", plain).wants_context) == (
        False,
        False,
    )
    for handler in (with_context, Callable(), lambda *both: both):
        assert route_of("q", "", handler).wants_context
    assert route_of("q", "", Callable()).is_async


def test_a_job_goes_to_its_name_or_to_whoever_takes_any():
    """And nobody else."""
    routes = Routes()
    named, anything = route_of("q", "a", plain), route_of("q", ANY, plain)
    routes.add(named)
    routes.add(anything)
    assert routes.find("q", "a") is named
    assert routes.find("q", "b") is anything
    assert routes.find("other", "a") is None
    assert [(one.name, one.any_name) for one in routes.announced()] == [("a", False), ("", True)]
    with pytest.raises(InvalidArgument, match="already"):
        routes.add(route_of("q", "a", plain))


def test_handlers_are_announced_with_the_schemas_of_their_types():
    """Each queue may have one for any name; what has no type says nothing."""
    routes = Routes()

    def typed(payload: list[int]) -> str:
        return str(payload)

    def unknown(payload) -> NotThere:  # type: ignore[name-defined]  # noqa: F821
        return payload

    routes.add(route_of("q", ANY, plain))
    routes.add(route_of("r", "a", typed))
    routes.add(route_of("r", "b", unknown))
    routes.add(route_of("r", "c", lambda items: items, size=2))
    anything, numbers, *others = routes.announced()
    assert (anything.any_name, anything.payload_schema, anything.result_schema) == (True, "", "")
    assert json.loads(numbers.payload_schema) == {"type": "array", "items": {"type": "integer"}}
    assert json.loads(numbers.result_schema) == {"type": "string"}
    assert [(one.payload_schema, one.result_schema) for one in others] == [("", "")] * 2


def test_weights_are_for_queues_that_have_handlers():
    """A misspelt queue is a mistake, not a silent default."""
    assert weights_of(["a", "b"], {"b": 3}) == [("a", 1), ("b", 3)]
    with pytest.raises(InvalidArgument, match="there is no handler"):
        weights_of(["a"], {"c": 1})


def test_a_declared_job_without_a_function_needs_one():
    """A producer's declaration says what, not how."""
    with pytest.raises(InvalidArgument, match="has no function"):
        route_of_type(JobType(queue="q", name="n"))
    assert route_of_type(JobType(queue="q", name="n", payload=int), plain).payload is int
