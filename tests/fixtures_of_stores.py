"""Makes the files in `tests/fixtures/stores/v<version>`, which later versions must read:

    python -m tests.fixtures_of_stores

a store that was killed, so that its journal is not empty; a backup of it; its history; and what it
held. Files that are there already stay as they are: they are those of that version.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tarfile
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from jobline import AsyncClient
from jobline_server.testing import ServerProcess
from tests.backing_up import backed_up

STORES = Path(__file__).parent / "fixtures" / "stores"
SHARDS = 2
# What a fresh server does not have to hold.
LEFT_OUT = {"lock", "ballast"}


async def fill(client: AsyncClient) -> None:
    """Leaves jobs of all states, and what belongs to them."""
    for queue in ("mail", "report", "sync"):
        await client.push_many(queue, [{"n": number} for number in range(40)])
        taken = await client.pull(queue, max_jobs=20, lease=60)
        await client.ack(*taken[:10], result={"sent": True})
        await client.fail(taken[10], "for good", then="dead")
        await client.fail(taken[11], "later", retry_after=3_600)
    await client.push("mail", {"n": 1}, job_key="once", priority=5, headers={"trace": "a"})
    await client.push("mail", {"n": 2}, delay=3_600, unique_key="u")
    parent = await client.push("report", {"n": 3})
    await client.push("sync", {"n": 4}, depends_on=[parent.id])
    await client.schedules.create("nightly", "report", cron="0 3 * * *")
    await client.queues.pause("sync", reason="repairs")


async def shown_by(client: AsyncClient) -> dict[str, str]:
    """Returns the state of each job, by id."""
    return {str(job.id): job.state.name async for job in client.jobs.list(page_size=1_000)}


async def make(folder: Path, work: Path) -> None:
    """Makes the files of this version."""
    server = ServerProcess(
        work / "store",
        shards=SHARDS,
        backup_to=work / "backup",
        history=work / "history",
        history_seconds=1,
        ballast_bytes=0,
    )
    async with server, AsyncClient(server.address) as client:
        await fill(client)
        await server.terminate()
        await server.start()
        await client.push_many("mail", [{"n": number} for number in range(10)])
        await backed_up(client)
        while not list((work / "history").rglob("*.parquet")):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.1)
        shown: dict[str, object] = {
            "written_ms": time.time_ns() // 1_000_000,
            "jobs": await shown_by(client),
        }
        await server.kill()
    await asyncio.to_thread(pack, folder, work, shown)


def pack(folder: Path, work: Path, shown: dict[str, object]) -> None:
    """Packs what was made."""
    folder.mkdir(parents=True)
    for name in ("store", "backup", "history"):
        with tarfile.open(folder / f"{name}.tar.xz", "w:xz") as files:
            files.add(work / name, name, filter=_without_locks)
    (folder / "shown.json").write_text(json.dumps(shown, indent=0))


def _without_locks(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return None if Path(info.name).name in LEFT_OUT else info


def main() -> int:
    """Makes them, unless they are there."""
    folder = STORES / f"v{version('jobline-server')}"
    if folder.exists():
        sys.stderr.write(f"{folder} is there; it stays as that version made it\n")
        return 1
    work = Path(tempfile.mkdtemp(prefix="jobline-stores-"))
    try:
        asyncio.run(make(folder, work))
    finally:
        shutil.rmtree(work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
