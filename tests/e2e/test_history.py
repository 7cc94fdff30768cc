"""The history that a real server exports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import httpx
import pyarrow.parquet as pq

from jobline import AsyncClient
from jobline_server.testing import ServerProcess


async def test_the_life_of_jobs_is_in_files_after_a_stop(tmp_path: Path) -> None:
    """Those of a lot, and one that fails; the page for Prometheus says how the export is doing."""
    history = tmp_path / "history"
    server = ServerProcess(tmp_path / "data", history=history)
    async with server, AsyncClient(server.address) as client:
        await client.push_payloads("mail", [b"x"] * 10)
        jobs = await client.pull("mail", max_jobs=10, worker="w1")
        await client.ack(*jobs[:9])
        await client.fail(jobs[9], ValueError("no such file"), then="dead")
        async with httpx.AsyncClient() as http:
            page = (await http.get(f"http://{server.http}/metrics")).text
        assert await server.terminate() == 0
    assert "jobline_history_lag_seconds" in page
    assert 'jobline_history_failures_total{step="send"} 0.0' in page
    files = sorted(history.rglob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    events = Counter(row["event"] for row in rows)
    assert events == {"pushed": 10, "leased": 10, "completed": 9, "dead": 1}
    (dead,) = [row for row in rows if row["event"] == "dead"]
    assert (dead["error_type"], dead["error"]) == ("ValueError", "no such file")
    assert (dead["worker"], dead["attempt"], dead["attempts"], dead["final"]) == ("w1", 1, 1, True)
    assert dead["pushed_at"] <= dead["leased_at"] <= dead["at"]
    assert {row["worker"] for row in rows if row["event"] == "completed"} == {"w1"}
