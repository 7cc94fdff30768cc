"""The two servers that vectors run against, for runners in any language:

    python -m tests.conformance.servers -- go test ./...

starts both in processes of their own and runs the command with CONFORMANCE_SERVERS=MAIN,SMALL in
its environment, and CONFORMANCE_VECTORS, all vectors in one JSON file. It ends with its code.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from jobline_server.testing import ServerProcess
from tests.conformance.vectors import load

MAIN: dict[str, Any] = {}
# Each limit is for one vector: none may fill what another one needs.
SMALL: dict[str, Any] = {
    "max_waiting_jobs": 20,
    "max_keys": 1,
    "max_request_ids": 1,
    "max_producer_calls": 1,
}


async def run(command: list[str]) -> int:
    """Runs a command beside both servers."""
    with tempfile.TemporaryDirectory(prefix="jobline-conformance-") as folder:
        vectors = Path(folder) / "vectors.json"
        vectors.write_text(
            json.dumps({"vectors": load(), "must_fail": load("must_fail.yaml")}), encoding="utf-8"
        )
        async with (
            ServerProcess(Path(folder) / "main", **MAIN) as main,
            ServerProcess(Path(folder) / "small", **SMALL) as small,
        ):
            process = await asyncio.create_subprocess_exec(
                *command,
                env={
                    **os.environ,
                    "CONFORMANCE_SERVERS": f"{main.address},{small.address}",
                    "CONFORMANCE_VECTORS": str(vectors),
                },
            )
            return await process.wait()


if __name__ == "__main__":
    sys.exit(asyncio.run(run(sys.argv[2:] if sys.argv[1:2] == ["--"] else sys.argv[1:])))
