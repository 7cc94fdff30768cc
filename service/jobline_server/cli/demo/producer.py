"""The demo's producer: pushes one job per file, and waits for all of them to end.

It uses two threads. Both survive a killed server: a push is repeated under its request id until it
is answered, and a wait is repeated. The last push is held back until the demo has killed a worker,
because that needs jobs.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Sequence

from jobline import Client, JobEnd, JoblineError, JobOptions, QueueSettings, Retention
from jobline_server.cli.demo.files import Listed
from jobline_server.cli.demo.journal import Journal, What
from jobline_server.cli.demo.worker import NAME, QUEUE

_OPTIONS = JobOptions(name=NAME, content_type="application/json")
# Keeps all jobs until the demo has read every result.
_SETTINGS = QueueSettings(retention=Retention(age="1d", count=10_000_000))
_PUSH_JOBS = 500
# Small trees take several pushes too, so that something can be killed between them.
_PUSHES_MIN = 10
# Pushes run ahead of the work by at most this share, so that both go on after a kill.
_AHEAD_SHARE = 0.3
_WAIT_IDS_MAX = 10_000
_WAIT_SECONDS = 5.0
_CALL_SECONDS = 10.0
_PAUSE_SECONDS = 0.2
_POLL_SECONDS = 0.02


class Producer:
    """Pushes files and collects how their jobs end."""

    def __init__(self, address: str, files: Sequence[Listed], journal: Journal) -> None:
        self.pushed: dict[int, str] = {}
        self.ends: dict[int, JobEnd] = {}
        self.failure: Exception | None = None
        self._client = Client(address, timeout=_CALL_SECONDS)
        self._files = files
        self._journal = journal
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._may_push_last = threading.Event()
        self._push_jobs = max(1, min(_PUSH_JOBS, len(files) // _PUSHES_MIN))
        self._threads = [
            threading.Thread(target=self._guarded, args=(part,), daemon=True)
            for part in (self._push_all, self._wait_all)
        ]

    def start(self) -> None:
        """Starts to push and to wait."""
        self._client.queues.update(QUEUE, _SETTINGS)
        for thread in self._threads:
            thread.start()

    @property
    def is_done(self) -> bool:
        """Returns whether all jobs were pushed and have ended."""
        return len(self.ends) == len(self._files)

    @property
    def count_before_last(self) -> int:
        """Returns the number of files that are pushed before the last push."""
        return (len(self._files) - 1) // self._push_jobs * self._push_jobs

    def push_last(self) -> None:
        """Lets the last push go."""
        self._may_push_last.set()

    def stop(self) -> None:
        """Stops both threads, done or not."""
        self._stop.set()
        self._may_push_last.set()
        self._client.close()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(_CALL_SECONDS)

    def _guarded(self, part: Callable[[], None]) -> None:
        """Runs a thread's function, and keeps its error for the main thread."""
        try:
            part()
        except JoblineError as error:
            if not self._stop.is_set():
                self.failure = error

    def _push_all(self) -> None:
        size = self._push_jobs
        ahead = max(size, round(len(self._files) * _AHEAD_SHARE))
        for start in range(0, len(self._files), size):
            while len(self.pushed) - len(self.ends) > ahead and not self._stop.is_set():
                self._stop.wait(_POLL_SECONDS)
            if start == self.count_before_last:
                self._may_push_last.wait()
            self._push(f"demo-{start}", [file.path for file in self._files[start : start + size]])

    def _push(self, request_id: str, paths: list[str]) -> None:
        payloads = [json.dumps({"path": path}).encode() for path in paths]
        while not self._stop.is_set():
            self._journal.note(What.PUSH_CALLED, request_id=request_id, paths=paths)
            try:
                lot = self._client.push_payloads(
                    QUEUE, payloads, options=_OPTIONS, request_id=request_id
                )
            except JoblineError as error:
                if error.definite and not error.retryable:
                    raise
                self._stop.wait(_PAUSE_SECONDS)
                continue
            self._journal.note(
                What.PUSH_ANSWERED, request_id=request_id, first_id=lot.first_id, count=lot.count
            )
            with self._lock:
                self.pushed |= zip(lot.ids, paths, strict=True)
            return

    def _wait_all(self) -> None:
        while not self.is_done and not self._stop.is_set():
            with self._lock:
                open_ids = [job_id for job_id in self.pushed if job_id not in self.ends]
            if not open_ids:
                self._stop.wait(_PAUSE_SECONDS)
                continue
            self._wait(open_ids[:_WAIT_IDS_MAX])

    def _wait(self, ids: list[int]) -> None:
        # Waits are short while pushes go on, so that new ids are soon included.
        patience = _WAIT_SECONDS if len(self.pushed) == len(self._files) else _PAUSE_SECONDS
        try:
            for end in self._client.wait(*ids, timeout=patience):
                self._take(end)
        except JoblineError as error:
            if error.definite and not error.retryable:
                raise
            time.sleep(_PAUSE_SECONDS)

    def _take(self, end: JobEnd) -> None:
        self.ends[end.id] = end
        result = end.value() if end.ok else {}
        self._journal.note(
            What.ENDED,
            id=end.id,
            state="NOT_FOUND" if end.not_found else end.state.name,
            error="" if end.error is None else end.error.message,
            worker=result.get("worker"),
            delivery=result.get("delivery"),
        )
