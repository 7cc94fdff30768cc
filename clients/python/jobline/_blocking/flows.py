# Generated from jobline/_asynchronous/flows.py by `make gen`: change that file instead.
"""Flows, blocking: jobs of any queues that wait for each other, pushed together."""

from __future__ import annotations

from dataclasses import replace

from jobline import _admin_requests as admin_requests
from jobline._arguments import message_of
from jobline._blocking.connection import Connection
from jobline._flow_values import Flow, FlowJob, FlowNode, FlowPushed, jobs_of, push_request
from jobline._ids import RequestIds
from jobline._leased import LeasedJob
from jobline.errors import InvalidArgument
from jobline.v1 import flow_service_pb2, flow_service_pb2_grpc, job_admin_service_pb2_grpc

JOBS, JOBS_MAX = 1_000, 10_000


class FlowApi:
    """`client.flows`: jobs of any queues that wait for each other."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._new_id = RequestIds()

    @property
    def _stub(self) -> flow_service_pb2_grpc.FlowServiceStub:
        return self._connection.stub(flow_service_pb2_grpc.FlowServiceStub)

    def push(self, root: FlowJob, *, request_id: str | None = None) -> FlowPushed:
        """Pushes a job with its children, and theirs, and returns their ids when they are on disk:
        all are stored, or none.

        A flow has ≤ 10,000 jobs, ≤ 100 of them in a row, and ≤ 16 MiB. The same `request_id` (1 …
        64 bytes) within 10 minutes returns the same ids. Jobs have no `job_key`, `unique_key`,
        `batch_id` or `depends_on`: InvalidArgument.
        """
        places = jobs_of(root)
        request = push_request(places, request_id or self._new_id())
        response = self._connection.write(self._stub.PushFlow, request)
        ids = tuple(response.ids)
        return FlowPushed(ids, dict(zip(places, ids, strict=True)))

    def add_children(
        self, job: LeasedJob, *children: FlowJob, request_id: str | None = None
    ) -> FlowPushed:
        """Pushes jobs, with their children, that a leased job waits for, and ends its lease in the
        same transaction: do not settle it. It is BLOCKED, and is leased again when they have ended,
        with its checkpoint, the same `attempt` and `reason` CHILDREN_ENDED; what becomes of it if
        one does not complete is its `on_dependency_failure`. `children` returns the results.

        For jobs that were pulled; handlers of a `Worker` return `WaitFor`. A job has ≤ 1,000
        children in all (TooLarge). All are stored, or none: LeaseLost if another worker has the
        job, WrongState if it was cancelled or is in memory alone. `request_id` is as for `push`.
        """
        if not children:
            raise InvalidArgument("a job needs at least one child to wait for")
        places = jobs_of(*children, field="children")
        request = push_request(places, request_id or self._new_id(), job)
        response = self._connection.write(self._stub.PushFlow, request)
        ids = tuple(response.ids)
        return FlowPushed(ids, dict(zip(places, ids, strict=True)))

    def get(
        self, id_: int, *, max_jobs: int = JOBS, max_depth: int | None = None, results: bool = False
    ) -> Flow:
        """Returns a job with its children, and theirs, as they are now.

        - `max_jobs` (≤ 10,000) and `max_depth` (≤ 100): how far to look; `Flow.is_cut` says
          whether there is more.
        - `results`: with results, ≤ 1 MiB together.

        Raises JobNotFound if the first job is not kept.
        """
        request = message_of(
            flow_service_pb2.GetFlowRequest,
            id=id_,
            max_jobs=max_jobs,
            max_depth=max_depth,
            include_results=results,
        )
        return Flow.from_message(self._connection.read(self._stub.GetFlow, request))

    def children(self, id_: int) -> list[FlowNode]:
        """Returns the children of a job, with all their results, in the order in which they were
        given. A handler calls it with the id of its job. Raises JobNotFound.
        """
        flow = self.get(id_, max_jobs=JOBS_MAX, max_depth=1, results=True)
        by_id = {node.id: node for node in flow.jobs}
        found: list[FlowNode] = []
        for child in flow.root.children:
            # The server cuts where the children have very many children of their own.
            node = by_id.get(child) or self._alone(child)
            if node.result_bytes > len(node.result):
                # Beyond what one answer holds.
                node = replace(node, result=self._result_of(child))
            found.append(node)
        return found

    def _alone(self, id_: int) -> FlowNode:
        return (self.get(id_, max_jobs=1, max_depth=0, results=True)).root

    def _result_of(self, id_: int) -> bytes:
        stub: job_admin_service_pb2_grpc.JobAdminServiceStub = self._connection.stub(
            job_admin_service_pb2_grpc.JobAdminServiceStub
        )
        response = self._connection.read(stub.GetJob, admin_requests.get_job(id_))
        return response.job.result
