"""KEDA's external scaler: how much work a queue has for its workers.

A queue that does not exist has no work, and is no error: it comes into being with its first job and
goes when it was empty for an hour, while its workers are to be scaled all the time.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from math import ceil

from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.queue import Queue
from jobline_server.rpc import externalscaler_pb2 as pb
from jobline_server.rpc.admission import Admission
from jobline_server.rpc.convert import scaler
from jobline_server.rpc.convert.scaler import ScalerMetric, Trigger
from jobline_server.rpc.guard import Context
from jobline_server.runtime.calls.demands import OBJECTIVES_MAX
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.workload import longest_wait_ms, workload


class ExternalScaler:
    """Serves KEDA from the runtime. Names are those of its protocol."""

    def __init__(self, runtime: Runtime, admission: Admission) -> None:
        self._runtime = runtime
        self._admission = admission

    async def IsActive(self, request: pb.ScaledObjectRef, _context: Context) -> pb.IsActiveResponse:
        """Returns whether a queue has work."""
        trigger = scaler.trigger_of(request)
        active = self._runtime.activity.is_active(trigger.queue, trigger.activation)
        return pb.IsActiveResponse(result=active)

    async def StreamIsActive(
        self, request: pb.ScaledObjectRef, _context: Context
    ) -> AsyncGenerator[pb.IsActiveResponse, None]:
        """Yields whether a queue has work, now and when that changes."""
        trigger = scaler.trigger_of(request)
        watched = self._runtime.activity.watch(trigger.queue, trigger.activation)
        with self._admission.scalers.admitted():
            async with aclosing(watched) as answers:
                async for active in answers:
                    yield pb.IsActiveResponse(result=active)

    async def GetMetricSpec(
        self, request: pb.ScaledObjectRef, _context: Context
    ) -> pb.GetMetricSpecResponse:
        """Returns what a trigger scales by."""
        trigger = scaler.trigger_of(request)
        spec = pb.MetricSpec(
            metricName=scaler.metric_name(trigger.metric),
            targetSize=ceil(trigger.target),
            targetSizeFloat=trigger.target,
        )
        return pb.GetMetricSpecResponse(metricSpecs=[spec])

    async def GetMetrics(
        self, request: pb.GetMetricsRequest, _context: Context
    ) -> pb.GetMetricsResponse:
        """Returns the value of a trigger's metric."""
        trigger = scaler.trigger_of(request.scaledObjectRef)
        name = scaler.check_metric_name(request, trigger)
        value = self._value(trigger)
        metric = pb.MetricValue(metricName=name, metricValue=ceil(value), metricValueFloat=value)
        return pb.GetMetricsResponse(metricValues=[metric])

    def _needed(self, queue: Queue) -> int:
        needed = self._runtime.demands.of(queue)
        if needed is None:
            raise Refused(
                RefusalKind.WRONG_STATE,
                f"queue {queue.name} needs an objective for it, and to be one of the first "
                f"{OBJECTIVES_MAX} queues that have one",
                field=scaler.path_of(scaler.METRIC),
            )
        return needed.workers

    def _value(self, trigger: Trigger) -> float:
        core = self._runtime.core
        queue = core.slots.of_queue(trigger.queue).shard.queues.get(trigger.queue)
        if trigger.metric is ScalerMetric.BACKLOG:
            return workload(queue)
        if trigger.metric is ScalerMetric.WORKERS_NEEDED:
            return 0 if queue is None else self._needed(queue)
        return longest_wait_ms(queue, core.wall_ms()) / 1_000
