"""Phases in a handler's hands, and how their ends are sent."""

from __future__ import annotations

import pytest

from jobline import InvalidArgument
from jobline._options import JobOptions
from jobline._stream.reports import Reports
from jobline.testing import make_context

NAMES = ("parse", "load")


def phases_of(*results):
    return make_context(phases=NAMES, phase_results=results).phases


def test_a_phase_runs_once_over_all_attempts():
    """Its result is what the first run returned, decoded anew."""
    phases = phases_of({"rows": 3})
    assert (phases.names, phases.current) == (NAMES, "load")
    assert phases.run("parse", pytest.fail) == {"rows": 3}
    assert phases.run("load", lambda rows: rows + 1, 4) == 5
    assert (phases.current, "load" in phases) == ("", True)


async def test_an_async_phase_is_awaited():
    phases = phases_of()

    async def parse(text):
        return text.upper()

    assert await phases.run("parse", parse, "a") == "A"
    assert await phases.run("parse", parse, "b") == "A"


def test_an_async_phase_in_a_plain_handler_is_refused():
    """Nothing could await it: the handler would go on with a coroutine for a result."""
    phases = phases_of()

    async def parse():
        pytest.fail("it ran")

    with pytest.raises(InvalidArgument, match=r"parse is async, .* make the handler async too"):
        phases.run("parse", parse)
    assert phases.current == "parse"


def test_phases_are_finished_in_their_order():
    """A mistake is told where it is made, and never reaches the server."""
    phases = phases_of()
    with pytest.raises(InvalidArgument, match="'load' cannot be finished now: the current one is"):
        phases.finish("load")
    with pytest.raises(InvalidArgument, match="'parse' is not finished"):
        phases.result("parse")
    phases.finish("parse")
    assert phases.result("parse") is None
    phases.finish("load", b"x")
    with pytest.raises(InvalidArgument, match="all are finished"):
        phases.finish("load")


def test_a_phase_that_is_not_the_next_one_does_not_run():
    """What it would do is not wanted now, and its result could not be kept."""
    with pytest.raises(InvalidArgument, match="the current one is 'parse'"):
        phases_of().run("load", pytest.fail)
    with pytest.raises(InvalidArgument, match="no phase 'save': those of its push are 'parse', 'l"):
        phases_of().run("save", pytest.fail)
    with pytest.raises(InvalidArgument, match="no phase 'parse': those of its push are none"):
        make_context().phases.finish("parse")
    with pytest.raises(InvalidArgument, match="all are finished"):
        phases_of(1, 2).finish("load")


def test_results_of_phases_are_at_most_a_mebibyte_together():
    phases = phases_of(b"x" * (1 << 20))
    with pytest.raises(InvalidArgument, match="at most 1 MiB together"):
        phases.finish("load", b"x")
    phases.finish("load")


def test_phases_of_options_that_are_merged_take_the_place_of_others():
    assert JobOptions(phases=["a", "b"]).merged(JobOptions(phases=["c"])).phases == ("c",)
    with pytest.raises(InvalidArgument, match=r"options\.phases: must be a list"):
        JobOptions(phases="ab")


def said(reports):
    return [(item.id, item.phase or item.progress) for item in reports.take()]


def test_ends_of_phases_are_sent_in_order_and_before_what_follows():
    """Progress within a phase that has ended is not sent."""
    reports = Reports()
    reports.add(1, 5, progress=10.0)
    reports.finish_phase(1, 5, "parse", b"")
    reports.add(1, 5, progress=20.0)
    reports.finish_phase(1, 5, "load", b"")
    reports.add(1, 5, progress=30.0)
    assert said(reports) == [(1, "parse"), (1, "load"), (1, 30.0)]
    assert not reports


def test_large_results_go_out_over_several_frames():
    reports = Reports()
    for job_id in range(3):
        reports.finish_phase(job_id, 5, "parse", b"x" * (1 << 20))
    reports.add(2, 5, progress=1.0)
    assert said(reports) == [(0, "parse"), (1, "parse")]
    assert said(reports) == [(2, "parse"), (2, 1.0)]


def test_ends_of_phases_are_said_again_on_a_new_stream_while_the_lease_is_held():
    """Nothing confirms them, and to say one twice does no harm."""
    reports = Reports()
    for job_id in (1, 2, 3, 4):
        reports.finish_phase(job_id, 5, "parse", b"")
    reports.take()
    reports.finish_phase(1, 5, "load", b"")
    reports.finish_phase(4, 5, "load", b"")
    reports.lose(2)
    reports.forget(3)
    reports.keep_until_sent(4)
    reports.repeat_checkpoints()
    assert said(reports) == [(4, "load"), (1, "parse"), (1, "load")]
    reports.repeat_checkpoints()
    reports.forget_waiting()
    assert not reports


def test_the_end_of_a_phase_of_a_lost_lease_is_dropped():
    reports = Reports()
    reports.finish_phase(1, 5, "parse", b"")
    reports.finish_phase(2, 5, "parse", b"")
    reports.lose(1)
    assert said(reports) == [(2, "parse")]
