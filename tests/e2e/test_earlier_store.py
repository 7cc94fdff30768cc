"""A store that an earlier version wrote opens unchanged.

`store.tar.xz` in `format_2` and `format_3` has the files of a server that was stopped once, so that
there is a checkpoint, and killed later, so that there is a journal after it: jobs in lots (with
columns in format 3) and with options of their own, keys, leases, progress, retries, dead letters,
cancelled and released jobs, queues with settings, paused and deleted ones. `shown.json` is what
that version showed of it after a restart, without the ends of leases, which begin anew.
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from grpc import aio

from jobline.v1 import job_admin_service_pb2 as admin
from jobline.v1 import queue_service_pb2 as queues
from jobline.v1.job_admin_service_pb2_grpc import JobAdminServiceStub
from jobline.v1.queue_service_pb2_grpc import QueueServiceStub
from jobline_server.runtime.clock import ManualClock
from jobline_server.testing import running_server

FORMATS = sorted(Path(__file__).parent.glob("format_*"))


async def shown_by(data: Path, written_ms: int) -> dict[str, Any]:
    """Starts a server on a directory, and returns all of its jobs and queues."""
    async with (
        running_server(data, clock=ManualClock(written_ms), shards=2) as server,
        aio.insecure_channel(server.address) as channel,
    ):
        listed = await JobAdminServiceStub(channel).ListJobs(
            admin.ListJobsRequest(include_payloads=True, page_size=1_000)
        )
        known = await QueueServiceStub(channel).ListQueues(
            queues.ListQueuesRequest(page_size=1_000)
        )
    for job in listed.jobs:
        job.ClearField("lease_until")
        job.ClearField("expires_at")  # that version did not show it
    return {
        "jobs": [MessageToDict(job) for job in listed.jobs],
        "queues": [MessageToDict(queue) for queue in known.queues],
    }


@pytest.mark.parametrize("folder", FORMATS, ids=[path.name for path in FORMATS])
async def test_store_of_an_earlier_version_opens_unchanged(tmp_path: Path, folder: Path) -> None:
    """Also a second time, from what this version wrote when it stopped."""
    expected = json.loads((folder / "shown.json").read_text(encoding="utf-8"))
    written_ms = expected.pop("written_ms")
    with tarfile.open(folder / "store.tar.xz") as files:
        files.extractall(tmp_path, filter="data")
    assert await shown_by(tmp_path, written_ms) == expected
    assert await shown_by(tmp_path, written_ms) == expected
    # From then on that version refuses it: it would leave out what it does not know.
    with closing(sqlite3.connect(tmp_path / "jobline.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (4,)
