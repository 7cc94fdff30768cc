"""All tables of a simulated history, beside an independent computation with DuckDB."""

from __future__ import annotations

import duckdb
import pytest

from jobline_pipeline.store import Store
from jobline_pipeline.tables.all import TABLES
from jobline_pipeline.views import create_views
from tests.running import contents, run

ENDED = "(event IN ('completed','retrying','stalled','released','dead') AND leased_at IS NOT NULL)"


@pytest.fixture(scope="module")
def tables(spark, made):
    """The tables as views."""
    create_views(Store(spark, str(made[0])))
    return made


@pytest.fixture(scope="module")
def same(spark, tables, history):
    """Compares a query over the tables with one of DuckDB over the files."""
    duck = duckdb.connect()
    duck.sql("SET TimeZone = 'UTC'")
    duck.sql(f"CREATE VIEW events AS FROM read_parquet('{history}/events/*/*/*.parquet')")

    def compare(ours, theirs):
        mine = [tuple(row) for row in spark.sql(ours).collect()]
        other = duck.sql(theirs).fetchall()
        assert other, "nothing to compare with"
        assert sorted(map(_plain, mine)) == sorted(map(_plain, other))

    return compare


def _plain(row):
    return tuple(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row)


def test_every_table_has_its_columns(spark, tables):
    """In the order and of the types that its module says."""
    store = Store(spark, str(tables[0]))
    for table in TABLES:
        assert store.exists(table), table.name
        assert [(f.name, f.dataType) for f in store.read(table).schema] == [
            (c.name, c.type) for c in table.columns
        ], table.name


def test_events_are_all_there_once(tables, same):
    """By kind."""
    query = "SELECT event, count(*), count(DISTINCT shard * 1e9 + {}) FROM events GROUP BY event"
    same(query.format("`offset`"), query.format('"offset"'))
    assert tables[1][0].bad == 0


def test_attempts(same):
    """Counts and times by queue and outcome."""
    same(
        """SELECT queue, outcome, count(*), sum(wait_ms), sum(run_ms) FROM attempts
           GROUP BY queue, outcome""",
        f"""SELECT queue, event, count(*),
                   sum(greatest(0, epoch_us(leased_at) - epoch_us(ready_at))) / 1000.0,
                   sum(greatest(0, epoch_us("at") - epoch_us(leased_at))) / 1000.0
            FROM events WHERE {ENDED} GROUP BY queue, event""",
    )


def test_jobs_and_open_jobs(same):
    """Each pushed job is in one of the two."""
    same(
        "SELECT queue, outcome, count(*), sum(attempts), sum(total_ms) FROM jobs GROUP BY ALL",
        """SELECT queue, event, count(*), sum(attempts),
                  sum(epoch_us("at") - epoch_us(pushed_at)) / 1000.0
           FROM events WHERE final GROUP BY ALL""",
    )
    same(
        "SELECT job_id FROM open_jobs",
        """SELECT job_id FROM events WHERE event = 'pushed'
           EXCEPT SELECT job_id FROM events WHERE final""",
    )


def test_queue_minutes(same):
    """Counts, and quantiles: of so few values a sketch is exact."""
    same(
        """SELECT unix_seconds(minute), queue, opened, ended, completed, failed, dead, cancelled,
                  run_p50_ms, wait_p99_ms FROM queue_minutes""",
        f"""SELECT CAST(floor(epoch("at") / 60) * 60 AS BIGINT), queue,
                  count(*) FILTER (event = 'pushed'), count(*) FILTER (final),
                  count(*) FILTER (event = 'completed'),
                  count(*) FILTER (event IN ('retrying', 'dead', 'stalled')
                                   AND leased_at IS NOT NULL),
                  count(*) FILTER (event = 'dead'),
                  count(*) FILTER (event IN ('cancelled', 'expired')),
                  CAST(quantile_disc(((epoch_us("at") - epoch_us(leased_at)) / 1000.0)::FLOAT, 0.5)
                       FILTER ({ENDED}) AS DOUBLE),
                  CAST(quantile_disc(((epoch_us(leased_at) - epoch_us(ready_at)) / 1000.0)::FLOAT,
                       0.99) FILTER ({ENDED}) AS DOUBLE)
           FROM events WHERE event != 'leased' GROUP BY 1, 2""",
    )


def test_workers_versions_and_capacity(same):
    """Sums of run times."""
    same(
        "SELECT worker, sum(attempts), sum(busy_ms), sum(stalled) FROM workers GROUP BY worker",
        f"""SELECT worker, count(*), sum(epoch_us("at") - epoch_us(leased_at)) / 1000.0,
                  count(*) FILTER (event = 'stalled') FROM events WHERE {ENDED} GROUP BY worker""",
    )
    same(
        "SELECT name, worker_version, attempts, attempts * failure_rate FROM version_comparison",
        f"""SELECT name, worker_version, count(*),
                  CAST(count(*) FILTER (event IN ('retrying', 'dead', 'stalled')) AS DOUBLE)
           FROM events WHERE {ENDED} GROUP BY name, worker_version""",
    )
    same(
        "SELECT unix_seconds(hour), queue, arrivals, offered FROM capacity",
        f"""SELECT CAST(floor(epoch("at") / 3600) * 3600 AS BIGINT), queue, count(*),
                  sum(epoch_us("at") - epoch_us(leased_at)) / 3.6e9
           FROM events WHERE {ENDED} GROUP BY 1, 2""",
    )


def test_fairness(same):
    """Jain's index of each queue and hour."""
    same(
        "SELECT unix_seconds(hour), queue, groups, jain FROM fairness GROUP BY ALL",
        f"""SELECT hour, queue, count(*), sum(r) ^ 2 / (count(*) * sum(r ^ 2)) FROM
            (SELECT CAST(floor(epoch("at") / 3600) * 3600 AS BIGINT) AS hour, queue, "group",
                    sum(epoch_us("at") - epoch_us(leased_at)) / 1000.0 AS r
             FROM events WHERE {ENDED} AND "group" IS NOT NULL GROUP BY ALL)
            GROUP BY hour, queue""",
    )


def test_errors(same):
    """No failure is lost by the grouping, neither of minutes nor of messages."""
    failed = "FROM events WHERE event IN ('retrying', 'dead', 'stalled')"
    same(
        "SELECT queue, sum(failures) FROM errors GROUP BY queue",
        f"SELECT queue, count(*) {failed} GROUP BY queue",
    )
    same(
        "SELECT sum(failures), sum(dead) FROM error_groups",
        f"SELECT count(*), count(*) FILTER (event = 'dead') {failed}",
    )


def test_flows(same):
    """Roots, what they waited for themselves, and their slack."""
    same(
        "SELECT job_id, waits_for, slack_ms FROM flows",
        """WITH children AS (SELECT parent_id, epoch_us("at") AS ended FROM events
                             WHERE final AND parent_id IS NOT NULL)
           SELECT job_id, count(*), (max(ended) - max(ended, 2)[2]) / 1000.0
           FROM children JOIN events ON job_id = children.parent_id AND final GROUP BY job_id""",
    )


def test_batches_slo_and_audit(same):
    """Members, breaches, principals."""
    same(
        "SELECT batch_id, jobs, ended, completed FROM batches",
        """SELECT batch_id, count(*) FILTER (event = 'pushed'), count(*) FILTER (final),
                  count(*) FILTER (event = 'completed')
           FROM events WHERE batch_id IS NOT NULL GROUP BY batch_id""",
    )
    same(
        "SELECT objective, sum(measured), sum(bad) FROM slo GROUP BY objective",
        f"""SELECT 'quick', count(*),
                   count(*) FILTER (epoch_us(leased_at) - epoch_us(ready_at) > 2000)
            FROM events WHERE queue = 'mail' AND {ENDED}
            UNION ALL SELECT 'done', count(*), count(*) FILTER (event != 'completed')
            FROM events WHERE final AND event IN ('completed', 'dead', 'expired')""",
    )
    same(
        "SELECT principal, event, sum(jobs) FROM audit GROUP BY ALL",
        "SELECT principal, event, count(*) FROM events WHERE principal IS NOT NULL GROUP BY ALL",
    )


@pytest.mark.fault
@pytest.mark.timeout(900)
def test_many_batches_make_the_same_tables(spark, expected, history, tmp_path):
    """Files in other batches give the same rows."""
    counts = run(spark, history, tmp_path, files_a_batch=6)
    assert len(counts) == 2
    assert contents(spark, tmp_path) == expected
