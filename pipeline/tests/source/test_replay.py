"""Replays against a real server."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from jobline import Client, NewJob
from jobline_pipeline.problems import PipelineError
from jobline_pipeline.replay import plan, view_of_server
from tests.source.conftest import Server


def test_what_a_statement_chooses_is_pushed_once(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """A plan pushes nothing, and pushing it twice is pushing it once."""
    jobs = [
        NewJob({"to": 1}, name="welcome", priority=3, headers={"a": "b"}, tags=["x"]),
        NewJob(b"two", group="acme"),
    ]
    client.push_many("broken", jobs)
    client.push_payloads("broken", [b"fine"])
    for leased in client.pull("broken", max_jobs=10):
        if leased.payload == b"fine":
            client.ack(leased)
        else:
            client.fail(leased, "no", then="dead")
    view_of_server(spark, shared_server.address, ["broken"])
    statement = "SELECT job_id, queue FROM server_jobs WHERE state = 'dead'"
    chosen = plan(spark, statement, shared_server.address)
    assert chosen.counts() == [("broken", "", 1), ("broken", "welcome", 1)]
    assert chosen.missing == 0
    assert client.queues.get("broken").counts.ready == 0
    for _ in range(2):
        plan(spark, statement, shared_server.address).push(shared_server.address)
    again = list(client.jobs.list(queue="broken", state="ready", include_payloads=True))
    first, second = sorted(again, key=lambda job: job.payload, reverse=True)
    assert (first.value(), first.name, first.options.priority) == ({"to": 1}, "welcome", 3)
    assert (dict(first.options.headers or {}), first.options.tags) == ({"a": "b"}, ("x",))
    assert (second.payload, second.options.group) == (b"two", "acme")


def test_a_table_that_has_payloads_needs_no_server_to_choose(
    spark: SparkSession, shared_server: Server, client: Client
) -> None:
    """Payloads that were exported are pushed; jobs without are counted."""
    rows = [(1, "old", b"one"), (2, "old", b"two"), (3, "old", None)]
    frame = spark.createDataFrame(rows, "job_id bigint, queue string, payload binary")
    frame.createOrReplaceTempView("exported")
    chosen = plan(spark, "SELECT * FROM exported", shared_server.address, run_id="r1")
    assert chosen.missing == 1
    chosen.push(shared_server.address, queue="second-chance")
    keys = ["replay:r1:1", "replay:r1:2"]
    found = [client.jobs.get_by_key("second-chance", key).payload for key in keys]
    assert found == [b"one", b"two"]
    assert client.queues.get("second-chance").counts.ready == 2


def test_a_statement_without_ids_is_refused(spark: SparkSession, shared_server: Server) -> None:
    """The sentence says what it has to give."""
    with pytest.raises(PipelineError, match="has to give job_id"):
        plan(spark, "SELECT 1 AS one", shared_server.address)
