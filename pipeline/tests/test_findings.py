"""What stands out, how values are written, and how a period is cut: without Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobline_pipeline.report import shown
from jobline_pipeline.report.charts import COLOURS, OTHERS, charts, colours
from jobline_pipeline.report.findings import findings
from jobline_pipeline.report.moments import SPANS_MAX, period_of

NOTHING = {name: [] for name in ("files", "slo", "versions", "errors", "workers", "capacity")}
NOTHING["fairness"] = []
VERSION = {
    "name": "send", "queue": "mail", "from_version": "1", "worker_version": "2",
    "failure_rate_before": 0.01, "failure_rate": 0.01,
    "run_p95_before_ms": 100.0, "run_p95_ms": 100.0,
}  # fmt: skip
AT = datetime(2026, 11, 2, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("answer", "row", "said"),
    [
        ("versions", {**VERSION, "failure_rate": 0.15}, "send under version 2 fails in 15 %"),
        ("versions", {**VERSION, "run_p95_ms": 250.0}, "takes 250 ms (p95)"),
        ("errors", {"share": 0.4, "message": "no", "queues": "mail"}, "40 % of all failures"),
        ("workers", {"worker": "w1", "stalled": 7}, "w1 lost 7 leases"),
        ("slo", {"objective": "quick", "kept": 0.9, "share": 0.99}, "was missed: 90 % instead"),
        ("files", {"status": "bad", "files": 2, "rows_apart": 9}, "2 files could not be used"),
        (
            "capacity",
            {"queue": "mail", "workers_needed_max": 5, "workers_seen_max": 3},
            "mail needed 5 workers",
        ),
        (
            "fairness",
            {"queue": "mail", "groups": 4, "run_share_max": 0.8, "busiest_group": "a"},
            "One of 4 groups of mail, a,",
        ),
    ],
)
def test_what_stands_out_is_said(answer, row, said):
    """One sentence a row."""
    (sentence,) = findings({**NOTHING, answer: [row]})
    assert said in sentence


@pytest.mark.parametrize(
    ("answer", "row"),
    [
        ("versions", VERSION),
        ("versions", {**VERSION, "failure_rate_before": 0.0, "failure_rate": 0.015}),
        ("errors", {"share": 0.1, "message": "no", "queues": "mail"}),
        ("workers", {"worker": "w1", "stalled": 0}),
        ("slo", {"objective": "quick", "kept": 0.99, "share": 0.99}),
        ("files", {"status": "taken", "files": 2, "rows_apart": 0}),
        ("capacity", {"queue": "mail", "workers_needed_max": 3, "workers_seen_max": 3}),
        (
            "fairness",
            {"queue": "mail", "groups": 1, "run_share_max": 1.0, "busiest_group": "a"},
        ),
    ],
)
def test_what_is_as_it_should_be_is_not(answer, row):
    """A list of all that is fine hides what is not."""
    assert findings({**NOTHING, answer: [row]}) == []


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"), (0.123, "0.12 ms"), (12.34, "12.3 ms"), (999, "999 ms"), (1500, "1.50 s"),
        (60_000, "1 min"), (1_177_458, "19.6 min"), (7_200_000, "2 h"), (100 * 86_400_000, "100 d"),
    ],
)  # fmt: skip
def test_durations_have_a_unit_that_fits(ms, text):
    """Three digits tell enough."""
    assert shown.duration(ms) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"),
        (0.125, "12.5 %"),
        (1, "100 %"),
        (0.99996, "99.996 %"),
        (0.999, "99.9 %"),
        (1 - 1e-9, "99.999 %"),
    ],
)
def test_shares_are_only_whole_where_they_are(share, text):
    """99.996 % of what shall be 100 % is a breach."""
    assert shown.share(share) == text


@pytest.mark.parametrize(
    ("length", "grain"),
    [
        (timedelta(0), 1),
        (timedelta(seconds=40), 1),
        (timedelta(minutes=5), 5),
        (timedelta(hours=1), 60),
        (timedelta(days=1), 1800),
        (timedelta(days=365), 7 * 86_400),
        (timedelta(days=100_000), 28 * 86_400),
    ],
)
def test_periods_are_cut_into_spans_that_can_be_told_apart(length, grain):
    """Short ones by seconds; those of months by weeks."""
    assert period_of(AT, AT + length).grain == grain
    assert length.total_seconds() / grain <= SPANS_MAX or grain == 28 * 86_400


def test_queues_beyond_the_colours_share_a_grey():
    """Their jobs are not left out of sums."""
    spans = [
        {
            "begin": AT.isoformat(), "queue": f"q{n:02}", "opened": 100 - n, "completed": 1,
            "failed": 0, "wait_p99_ms": 1.0, "open": 0,
        }
        for n in range(len(COLOURS) + 3)
    ]  # fmt: skip
    assert list(colours(spans)) == [*(f"q{n:02}" for n in range(len(COLOURS))), OTHERS]
    (pushed,) = charts(spans, 60)["Jobs pushed per minute"]["datasets"].values()
    assert sum(row["opened"] for row in pushed) == sum(row["opened"] for row in spans)
    assert {row["opened"] for row in pushed if row["queue"] == OTHERS} == {92 + 91 + 90}


def test_a_history_without_events_has_no_plots():
    """And no colours."""
    assert charts([], 60) == colours([]) == {}
