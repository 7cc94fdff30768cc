"""Runs the demo: starts the processes, kills one half-way, shows and checks the results."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobline_server.cli.demo import verdict
from jobline_server.cli.demo.files import Listed, checksum, find, listed
from jobline_server.cli.demo.gate import Gate
from jobline_server.cli.demo.journal import Journal, Reader, What, read
from jobline_server.cli.demo.processes import Crew, DemoFailed, ServerProcess
from jobline_server.cli.demo.producer import Producer
from jobline_server.cli.demo.screen import ResultRow, Screen, WorkerRow

# Without --pace, the work is stretched to about this length, within the bounds per file.
_SHOW_SECONDS = 6.0
_PACE_SECONDS_MAX = 0.4
_PACE_SECONDS_MIN = 0.002
_POLL_SECONDS = 0.05
# After this time without a line in the journal, something is broken.
_SILENCE_SECONDS_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Cast:
    """The workers of the demo, and what happens to them."""

    workers: int
    concurrency: int
    pace: float | None
    kills_server: bool

    def pace_for(self, files: int) -> float:
        """Returns the minimum seconds per file."""
        if self.pace is not None:
            return self.pace
        slots = self.workers * self.concurrency
        return min(max(_SHOW_SECONDS * slots / files, _PACE_SECONDS_MIN), _PACE_SECONDS_MAX)


class Stage:
    """The running demo: its processes, the journal so far, and what was killed."""

    def __init__(self, files: list[Listed], folder: Path, cast: Cast, screen: Screen) -> None:
        self.files = files
        self.cast = cast
        self.screen = screen
        self.journal = Journal(folder / "journal.jsonl")
        self.gate = Gate(folder / "gate")
        self.server = ServerProcess(folder, self.journal)
        self.crew = Crew(
            folder,
            self.journal,
            self.gate,
            concurrency=cast.concurrency,
            pace=cast.pace_for(len(files)),
        )
        self.rows = {f"worker-{n}": WorkerRow(f"worker-{n}") for n in range(1, cast.workers + 1)}
        self.begun = 0
        self._hands = verdict.Hands()
        self._reader = Reader(self.journal.path)
        self._last_line_at = time.monotonic()
        self._worker_killed = self._server_killed = False

    def run(self) -> Producer:
        """Runs until every job has ended, and stops the processes in any case."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._reader.close)
            stack.callback(self.server.stop)
            self.server.start()
            self.screen.say(f"server at {self.server.address}, data in a fresh directory", "dim")
            stack.callback(self.crew.stop)
            stack.callback(self.gate.open)
            for name in self.rows:
                self.crew.start(name, self.server.address)
            producer = Producer(self.server.address, self.files, self.journal)
            stack.callback(producer.stop)
            producer.start()
            with self.screen.running():
                self._watch(producer)
            return producer

    def _watch(self, producer: Producer) -> None:
        while not producer.is_done:
            if producer.failure is not None:
                raise DemoFailed(f"the producer failed: {producer.failure}")
            self.crew.check()
            self._read_journal()
            self._kill_if_due(producer)
            self.screen.update(
                self.rows.values(), pushed=len(producer.pushed), ended=len(producer.ends)
            )
            if time.monotonic() - self._last_line_at > _SILENCE_SECONDS_MAX:
                raise DemoFailed(f"nothing happened for {_SILENCE_SECONDS_MAX:.0f} s")
            time.sleep(_POLL_SECONDS)

    def _read_journal(self) -> None:
        for line in self._reader.new():
            self._last_line_at = time.monotonic()
            self._hands.take(line)
            self._show(line)

    def _show(self, line: dict[str, Any]) -> None:
        row = self.rows.get(line.get("worker", ""))
        if row is None:
            return
        if line["what"] == What.WORKER_STARTED:
            row.doing = "waiting"
        elif line["what"] == What.HANDED:
            self.begun += 1
            row.begun += 1
            row.doing = line["path"]
        elif line["what"] == What.FINISHED:
            row.finished += 1
            row.payload_bytes += line["size"]

    def _kill_if_due(self, producer: Producer) -> None:
        """Kills the server at a quarter of the work, so that the clients reconnect before a worker
        is killed half-way.
        """
        if self.cast.kills_server and not self._server_killed:
            if self._have_begun(1 / 4, producer):
                self._kill_server()
        elif not self._worker_killed and self._have_begun(1 / 2, producer):
            self._kill_worker(producer)

    def _have_begun(self, share: float, producer: Producer) -> bool:
        """Returns whether this share of the files was begun, or all before the last push."""
        return self.begun >= min(len(self.files) * share, producer.count_before_last)

    def _kill_server(self) -> None:
        self._server_killed = True
        self.server.kill()
        self.screen.say("kill -9 of the server", "bold red")
        self.server.start()
        self.screen.say(f"server again at {self.server.address}, on the same data", "dim")

    def _kill_worker(self, producer: Producer) -> None:
        """Kills a worker that holds a job. If none does, one soon will: the last push is still to
        come, and no worker finishes a job while the gate is shut.
        """
        self.gate.shut()
        producer.push_last()
        self._read_journal()  # of jobs finished before the gate was shut
        name = self._hands.holder()
        if name is None:
            return
        self._worker_killed = self.rows[name].killed = True
        self.crew.kill(name)
        self.gate.open()
        self.screen.say(f"kill -9 of {name}, with files in its hands", "bold red")


def play(tree: Path, folder: Path, cast: Cast) -> bool:
    """Runs the whole demo; returns whether all results are right and no guarantee was broken."""
    files = find(tree) if tree.is_dir() else []
    if not files:
        raise DemoFailed(f"{tree} has no files")
    screen = Screen(len(files), tree)
    size = sum(file.size for file in files)
    screen.say(f"{len(files):,} files below {tree}, {size / (1 << 20):,.1f} MiB", "bold")
    began = time.monotonic()
    stage = Stage(files, folder, cast, screen)
    producer = stage.run()
    took = time.monotonic() - began
    journal = verdict.sorted_journal(read(stage.journal.path))
    rows = results(files, producer)
    screen.results(rows)
    problems = [*verdict.broken_guarantees(journal), *wrong_rows(rows)]
    problems += _missing_kills(journal, cast)
    screen.totals(rows, took=took, killed=journal.killed, taken_over=verdict.taken_over(journal))
    screen.verdict(problems, calls=len(journal.calls), hand_outs=sum(journal.handed.values()))
    return not problems


def results(files: list[Listed], producer: Producer) -> list[ResultRow]:
    """Returns the result of each file, compared with a checksum computed here."""
    ids = {path: job_id for job_id, path in producer.pushed.items()}
    return [_result(file, producer, ids.get(file.path)) for file in files]


def _result(file: Listed, producer: Producer, job_id: int | None) -> ResultRow:
    end = producer.ends.get(job_id) if job_id is not None else None
    result: dict[str, Any] = end.value() if end is not None and end.ok else {}
    return ResultRow(
        path=file.path,
        size=result.get("size", file.size),
        sha256=result.get("sha256", ""),
        worker=result.get("worker", ""),
        reason=result.get("reason", ""),
        verdict=_verdict(file, result),
    )


def _verdict(file: Listed, result: dict[str, Any]) -> str:
    if not result:
        return "no result"
    try:
        digest, size = checksum(Path(file.path))
        if (digest, size) == (result["sha256"], result["size"]):
            return "right"
        has_changed = listed(Path(file.path)) != file
    except OSError:
        has_changed = True
    return "changed meanwhile" if has_changed else "WRONG"


def wrong_rows(rows: list[ResultRow]) -> list[str]:
    """Returns a sentence for each wrong result."""
    return [f"{row.path}: {row.verdict}" for row in rows if row.verdict in {"WRONG", "no result"}]


def _missing_kills(journal: verdict.SortedJournal, cast: Cast) -> list[str]:
    """Returns a sentence for each kill that did not happen: without kills a demo shows nothing."""
    problems = []
    if not verdict.taken_over(journal):
        problems.append("no worker was killed with a job in its hands that another then did")
    if cast.kills_server and not journal.server_kills:
        problems.append("the server was not killed")
    return problems
