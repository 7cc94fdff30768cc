"""One worker of the demo, in its own process: checksums files until SIGTERM.

It writes into the journal before it begins a job and when it finishes or drops it, so that a kill
in between is visible; and it finishes no job while the gate is shut.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from jobline import Context, Worker
from jobline_server.cli.demo.files import checksum
from jobline_server.cli.demo.gate import Gate
from jobline_server.cli.demo.journal import Journal, What

QUEUE = "checksums"
NAME = "sha256"
# Short, so that others soon get the jobs of a killed worker.
LEASE_SECONDS = 2.0


def main() -> None:
    """Works until SIGTERM."""
    arguments = _arguments()
    journal = Journal(arguments.journal)
    gate = Gate(arguments.gate)
    worker = Worker(
        arguments.server,
        id=arguments.id,
        concurrency=arguments.concurrency,
        window=arguments.concurrency * 2,
        lease=LEASE_SECONDS,
    )

    def sha256(payload: dict[str, Any], context: Context) -> dict[str, Any]:
        began = time.monotonic()
        lease = {"worker": arguments.id, "id": context.id, "delivery": context.delivery}
        journal.note(What.HANDED, **lease, attempt=context.attempt, path=payload["path"])
        try:
            digest, size = checksum(Path(payload["path"]))
            # A job of the demo takes a moment, so that a worker can be killed during it.
            context.wait_cancelled(max(0.0, arguments.pace - (time.monotonic() - began)))
            context.raise_if_cancelled()
        except BaseException:
            with gate.passing():
                journal.note(What.DROPPED, **lease)
            raise
        with gate.passing():
            journal.note(What.FINISHED, **lease, size=size)
        return {
            "worker": arguments.id,
            "delivery": context.delivery,
            "attempt": context.attempt,
            "reason": context.reason.name,
            "sha256": digest,
            "size": size,
        }

    worker.handler(QUEUE, NAME)(sha256)
    journal.note(What.WORKER_STARTED, worker=arguments.id)
    worker.run()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--id", required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--gate", type=Path, required=True)
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--pace", type=float, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
