"""Meters and log lines."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jobline_server.telemetry.calls import SECONDS_BOUNDS, CallMeters, Histogram
from jobline_server.telemetry.lag import LoopLag
from jobline_server.telemetry.log import CLIENT_WENT, GRPC_CORE, configure_logging, logger


def test_a_histogram_counts_at_or_below_its_bounds() -> None:
    """As Prometheus wants it: cumulative, the last bucket is everything."""
    histogram = Histogram()
    for seconds in (0.0001, SECONDS_BOUNDS[0], 0.002, 1_000.0):
        histogram.add(seconds)

    buckets = dict(histogram.cumulative())
    assert buckets["0.0005"] == 2
    assert buckets["0.002"] == 3
    assert buckets["60.0"] == 3
    assert buckets["+Inf"] == 4
    assert histogram.seconds == pytest.approx(1_000.0026)


def test_a_meter_is_one_for_its_method() -> None:
    """Begun, ended by status, and what is open."""
    meters = CallMeters()
    meter = meters.of("S", "Push")
    meter.begin()
    meter.begin()
    meter.end("OK", 0.1)

    assert meters.of("S", "Push") is meter
    assert (meter.started, meter.in_flight, meter.ended) == (2, 1, {"OK": 1})
    assert list(meters) == [meter]


def test_the_lag_shows_the_longest_of_the_last_minute() -> None:
    """Trial B9: a stall is shown for a minute, whatever comes after it, and then forgotten."""
    lag = LoopLag()
    assert lag.longest() == 0.0
    for beat in range(20 * 66):
        lag.add(beat / 20, 0.9 if beat == 10 else 0.001)
        if beat == 20 * 55:
            assert lag.longest() == 0.9
    assert lag.longest() == 0.001
    assert dict(lag.histogram.cumulative())["0.5"] == 20 * 66 - 1


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What is logged; the root logger is as before afterwards."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("json", "info", stream)
    yield stream
    root.handlers[:] = handlers
    root.setLevel(level)


def test_lines_are_json_with_level_time_and_fields(lines: io.StringIO) -> None:
    """Our loggers and the standard library's."""
    logger("rpc").info("hello", number=3)
    logging.getLogger("other").warning("plain %s", "text")
    logger("rpc").debug("left out")

    first, second = map(json.loads, lines.getvalue().splitlines())
    assert first["event"] == "hello"
    assert (first["level"], first["logger"], first["number"]) == ("info", "jobline.rpc", 3)
    assert first["timestamp"].endswith("Z")
    assert second["event"] == "plain text"


@pytest.mark.parametrize("form", ["json", "console"])
def test_a_stack_shows_no_values(form: str, lines: io.StringIO) -> None:
    """Payloads and keys are among local variables."""
    configure_logging(form, "info", lines)  # type: ignore[arg-type]  # a parameter is a str

    def fail(payload: str) -> None:
        raise ValueError(len(payload))

    try:
        fail("the secret " + "payload")
    except ValueError:
        logger("rpc").exception("bug")

    said = lines.getvalue()
    assert "ValueError" in said
    assert "the secret payload" not in said


def test_a_client_that_goes_away_as_it_is_answered_is_no_error(lines: io.StringIO) -> None:
    """Trial D9: gRPC's core would log it with a stack; what else it says is news."""
    core = logging.getLogger(GRPC_CORE)
    core.error(CLIENT_WENT + " [/jobline.v1.JobService/Push]")
    core.error("something else")
    assert [json.loads(line)["event"] for line in lines.getvalue().splitlines()] == [
        "something else"
    ]


def test_server_does_not_import_rich() -> None:
    code = "import sys, jobline_server.app; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
