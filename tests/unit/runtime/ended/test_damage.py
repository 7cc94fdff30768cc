"""Ended jobs that rotted on the disk: left out of lists, and said so."""

from __future__ import annotations

from typing import Any

import pytest

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.runtime.ended import damage
from jobline_server.runtime.ended.damage import Damage
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import JobFilter
from jobline_server.storage.sqlite.ended_store import SqliteEndedJobStore
from jobline_server.web.metrics import ServerCollector
from tests.unit.runtime.ended.test_writer import completed


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What the log says: first ids and counts."""
    found: list[tuple[int, int]] = []

    class Log:
        def error(self, event: str, *, first_id: int, count: int) -> None:
            assert event == "ended jobs are damaged"
            found.append((first_id, count))

    monkeypatch.setattr(damage, "LOG", Log())
    return found


async def listed(runtime: Runtime) -> list[int]:
    views, _ = await runtime.jobs.list_jobs(
        JobFilter(), page_size=10, page_token="", include_payloads=False
    )
    return [view.id for view in views]


async def metric(runtime: Runtime, name: str) -> Any:
    collector = ServerCollector(runtime, version="1", transport="grpcio")
    await collector.refresh()
    (value,) = [
        one.value for family in collector.collect() for one in family.samples if one.name == name
    ]
    return value


async def test_a_list_says_in_log_and_metrics_what_it_leaves_out(
    runtime: Runtime, lines: list[tuple[int, int]]
) -> None:
    """Once, however often it is asked, and by whatever call."""
    ids = [await completed(runtime, "mail") for _ in range(3)]
    assert await listed(runtime) == ids
    assert (lines, await metric(runtime, "jobline_damaged_jobs_total")) == ([], 0)
    rot = f"UPDATE ended SET checksum = checksum + 1 WHERE first_id = {ids[1]}"
    ended_store = runtime.ended.ended_store
    assert isinstance(ended_store, SqliteEndedJobStore)
    await ended_store.database.run(lambda raw: raw.execute(rot))
    for _ in range(2):
        assert await listed(runtime) == [ids[0], ids[2]]
        with pytest.raises(Refused) as refused:
            await runtime.jobs.get_job(ids[1])
        assert refused.value.kind is RefusalKind.DATA_LOSS
    assert (lines, await metric(runtime, "jobline_damaged_jobs_total")) == ([(ids[1], 1)], 1)


def test_each_damaged_job_is_said_once(lines: list[tuple[int, int]]) -> None:
    """Lists meet the same row from different sides."""
    found = Damage()
    found.found([(5, 3)])
    found.found([(6, 2)])
    found.found([(3, 7), (20, 1), (21, 1)])
    assert lines == [(5, 3), (3, 2), (8, 2), (20, 2)]
    assert found.count() == 9


def test_what_is_known_of_damage_is_bounded(
    lines: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damage, "DAMAGED_MAX", 4)
    found = Damage()
    found.found([(5, 3), (10, 3), (20, 1)])
    assert lines == [(5, 3), (10, 1)]
    assert found.count() == 4
