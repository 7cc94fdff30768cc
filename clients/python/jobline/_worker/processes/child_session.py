"""What stands behind the contexts of a child: the pipe to its worker."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from jobline._context import Context
from jobline._flow_values import FlowNode
from jobline._job_log import LogLevel
from jobline._leased import LeasedJob
from jobline._outcomes import WaitFor
from jobline._requests import fail_item
from jobline._values import Pushed
from jobline._worker.log import attempt_failed
from jobline._worker.processes.messages import Answer, Call, Pipe, Said, Settled, Waits
from jobline.errors import ClientClosed
from jobline.v1 import job_service_pb2 as pb


def lease_in(job: LeasedJob) -> tuple[int, int]:
    """Returns the lease of a job."""
    return job.id, job.delivery


class ChildSession:
    """Stands in for the worker's session: says everything to the worker, which alone knows which
    leases are held.
    """

    begun: frozenset[tuple[int, int]] = frozenset()

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def begin(self, job: LeasedJob) -> bool:
        """Returns True: the worker has begun the job before it sent it."""
        return True

    def ack(self, job: LeasedJob, result: bytes | None = None, content_type: str = "") -> None:
        """Settles a job as done."""
        self._say(job, "ack", result, content_type)

    def settle(self, item: pb.FailItem | pb.ReleaseItem) -> None:
        """Settles a job as failed or released."""
        is_release = isinstance(item, pb.ReleaseItem)
        lease = item.id, item.delivery
        self._pipe.send(Settled(lease, is_release, item.SerializeToString()))

    def report(self, job: LeasedJob, **report: Any) -> bool:
        """Reports progress of a job."""
        return self._say(job, "report", **report)

    def log(self, job: LeasedJob, level: LogLevel, text: str) -> bool:
        """Adds a line to the log of a job."""
        return self._say(job, "log", level, text)

    def finish_phase(self, job: LeasedJob, name: str, result: bytes) -> bool:
        """Finishes a phase of a job."""
        return self._say(job, "finish_phase", name, result)

    def _say(self, job: LeasedJob, method: str, *arguments: Any, **keywords: Any) -> bool:
        self._pipe.send(Said(lease_in(job), method, arguments, keywords))
        return True


class ChildCalls:
    """Stands in for the calls of the worker, which makes them and sends the answers."""

    pending: frozenset[tuple[int, int]] = frozenset()

    def __init__(self, pipe: Pipe, session: ChildSession) -> None:
        self._pipe = pipe
        self._session = session
        self._numbers = itertools.count()
        self._waiting: dict[int, SimpleQueue[Answer]] = {}
        self.done: Callable[[Context], None] | None = None

    def children(self, job_id: int) -> list[FlowNode]:
        """Returns the children of a job."""
        found: list[FlowNode] = self._call("children", job_id)
        return found

    def spawn(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Pushes a job for a handler."""
        pushed: Pushed = self._call("spawn", job, values, own, how)
        return pushed

    async def spawn_async(
        self, job: Any, values: tuple[Any, ...], own: dict[str, Any], how: dict[str, Any]
    ) -> Pushed:
        """Refuses: no async handler runs in a child."""
        raise ClientClosed("spawn_async is for async handlers; in a process, use spawn")

    def push(self, context: Context, outcome: WaitFor) -> None:
        """Has the worker push the children that a job waits for; the job fails if they cannot be
        pickled.
        """
        try:
            self._pipe.send(Waits(lease_in(context.job), outcome))
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever pickle or a payload raises
            attempt_failed(context.job, error)
            self._session.settle(fail_item(context.job, error))

    def take(self, answer: Answer) -> None:
        """Hands an answer to the thread that waits for it."""
        waiting = self._waiting.get(answer.number)
        if waiting is not None:
            waiting.put(answer)

    def _call(self, method: str, *arguments: Any) -> Any:
        number, waiting = next(self._numbers), SimpleQueue[Answer]()
        self._waiting[number] = waiting
        try:
            self._pipe.send(Call(number, method, arguments))
            answer = waiting.get()
        finally:
            del self._waiting[number]
        if answer.is_error:
            raise answer.value
        return answer.value
