"""The report answers from the tables, and its page needs no network."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from jobline_pipeline.report import moments
from jobline_pipeline.report.answers import QUESTIONS
from jobline_pipeline.report.page import page
from jobline_pipeline.store import Store, count_of
from jobline_pipeline.tables import attempts, events, open_jobs, queue_minutes
from jobline_pipeline.upkeep import optimize, retain, vacuum
from jobline_pipeline.views import create_views
from tests.rows import pushed
from tests.running import contents, run


@pytest.fixture(scope="module")
def store(spark, history, tmp_path_factory):
    root = tmp_path_factory.mktemp("reported")
    run(spark, history, root, files_a_batch=6)
    return Store(spark, str(root))


def test_report_answers_every_question(answers):
    """As JSON too; with nothing bad there are no bad files."""
    assert set(json.loads(json.dumps(answers))) == {*QUESTIONS, "period", "moments"}
    assert [name for name, rows in answers.items() if not rows] == ["bad_files"]
    assert answers["totals"][0]["opened"] == 2000


def test_moments_add_up_to_the_totals(spark, made, answers):
    """By spans of minutes from sketches, and by spans of seconds from events."""
    store = Store(spark, str(made[0]))
    create_views(store)
    (total,) = answers["totals"]
    assert answers["period"][0]["grain"] == 300
    by_events = [row.asDict() for row in spark.sql(moments.question(30)).collect()]
    for rows in (answers["moments"], by_events):
        for name in ("opened", "completed", "failed"):
            assert sum(row[name] for row in rows) == total[name], name
        last = {row["queue"]: row["open"] for row in rows}
        assert sum(last.values()) == total["open"] == count_of(store, open_jobs.TABLE)


def test_capacity_was_checked_by_replay(answers):
    """With the workers that Erlang C asks for, few jobs of the busiest hour would have waited."""
    assert sum(row["replayed"] for row in answers["capacity"]) > 500
    assert max(row["replayed_late_share"] for row in answers["capacity"]) < 0.1


def test_page_is_self_contained(answers):
    """Nothing is loaded from elsewhere, and a message cannot end the script."""
    rows = [{**row, "message": "</script><b>"} for row in answers["errors"]]
    spans = [{**row, "queue": "</script><b>"} for row in answers["moments"]]
    html = page({**answers, "errors": rows, "moments": spans})
    assert html.count("</script>") == 2, "the libraries, and the plots"
    shown = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"<(script|link|img|iframe)\b|url\(|@import", shown)
    assert "</script><b>" not in html
    assert "&lt;/script&gt;&lt;b&gt;" in html
    assert "vegaEmbed" in html


@pytest.mark.fault
@pytest.mark.timeout(900)
def test_upkeep_changes_no_row_but_the_old_ones(spark, store):
    """`optimize` joins files, `vacuum` deletes what nobody needs, `retain` deletes old days."""
    before = contents(spark, store.root)
    joined = {name: (was, now) for name, was, now in optimize(store, lambda _: None)}
    assert joined["attempts"][0] > joined["attempts"][1]
    vacuum(store, 0, lambda _: None)
    assert contents(spark, store.root) == before
    still_open = count_of(store, open_jobs.TABLE)

    later, earlier = datetime(2026, 11, 3, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
    deleted = dict(retain(store, later, earlier, lambda _: None))

    assert deleted["queue_minutes"] == 0
    assert count_of(store, events.TABLE) == count_of(store, attempts.TABLE) == 0
    assert count_of(store, queue_minutes.TABLE) == len(before["queue_minutes"])
    assert count_of(store, open_jobs.TABLE) == still_open


def test_queue_that_handed_nothing_out_has_no_times(spark, frame):
    """Of empty sketches there is no quantile; the others are answered."""
    made = queue_minutes.make(frame(events.TABLE.schema(), [pushed(1)]))
    made.createOrReplaceTempView("queue_minutes")
    (row,) = spark.sql(QUESTIONS["queues"]).collect()
    assert (row.queue, row.opened, row.wait_p50_ms, row.total_p99_ms) == ("mail", 1, None, None)
    (span,) = spark.sql(moments.question(60)).collect()
    assert (span.opened, span.wait_p99_ms, span.open) == (1, None, 1)
