"""FlowService: jobs that wait for each other, pushed together."""

from __future__ import annotations

from jobline.v1 import flow_service_pb2 as pb
from jobline_server.rpc.client_rates import ClientRates
from jobline_server.rpc.convert import flows
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.guard import Context
from jobline_server.runtime.runtime import Runtime


class FlowService:
    """Serves flows through the runtime. `reader` checks their jobs as it does pushes."""

    def __init__(
        self, runtime: Runtime, reader: PushReader, client_rates: ClientRates | None = None
    ) -> None:
        self._runtime = runtime
        self._reader = reader
        self._client_rates = client_rates

    async def PushFlow(self, request: pb.PushFlowRequest, context: Context) -> pb.PushFlowResponse:
        """Stores all jobs of a flow, or none."""
        parent = flows.parent_of(request)
        parts, count = flows.flow_parts(request, self._reader), len(request.jobs)
        if self._client_rates is not None:
            self._client_rates.take(context.peer(), count)
        return pb.PushFlowResponse(ids=await self._runtime.flows.push_flow(count, parts, parent))

    async def GetFlow(self, request: pb.GetFlowRequest, _context: Context) -> pb.GetFlowResponse:
        """Returns a job and those that it waits for, level by level."""
        jobs_max, depth_max = flows.look_limits(request)
        found = await self._runtime.flow_queries.get_flow(
            request.id,
            jobs_max=jobs_max,
            depth_max=depth_max,
            with_results=request.include_results,
        )
        response = pb.GetFlowResponse(is_cut=found.is_cut)
        async for nodes in found.in_slices():
            for node in nodes:
                flows.fill_node(response.jobs.add(), node)
        return response
