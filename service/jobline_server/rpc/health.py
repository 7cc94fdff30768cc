"""grpc.health.v1. The library's asyncio servicer has no `List`, so this is our own.

All services of a server have the same status.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

import grpc
from grpc_health.v1 import health_pb2

from jobline_server.rpc.admission import Admission
from jobline_server.rpc.errors import StatusError, make_status
from jobline_server.rpc.guard import Context


class HealthService:
    """Reports whether the server takes work; NOT_SERVING before `set_serving`."""

    def __init__(self, services: Iterable[str], admission: Admission) -> None:
        self._names = frozenset({"", *services})
        self._admission = admission
        self._status = health_pb2.HealthCheckResponse.NOT_SERVING
        self._changed = asyncio.Event()

    @property
    def serving(self) -> bool:
        """Returns whether the status is SERVING."""
        return bool(self._status == health_pb2.HealthCheckResponse.SERVING)

    def set_serving(self, serving: bool) -> None:
        """Sets the status, and notifies all watchers."""
        known = health_pb2.HealthCheckResponse
        self._status = known.SERVING if serving else known.NOT_SERVING
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def Check(
        self, request: health_pb2.HealthCheckRequest, _context: Context
    ) -> health_pb2.HealthCheckResponse:
        """Returns the status of a service."""
        if request.service not in self._names:
            raise StatusError(make_status(grpc.StatusCode.NOT_FOUND, "", "no such service"))
        return health_pb2.HealthCheckResponse(status=self._status)

    async def List(
        self, request: health_pb2.HealthListRequest, _context: Context
    ) -> health_pb2.HealthListResponse:
        """Returns the status of all services."""
        response = health_pb2.HealthListResponse()
        for name in sorted(self._names):
            response.statuses[name].status = self._status
        return response

    async def Watch(
        self, request: health_pb2.HealthCheckRequest, _context: Context
    ) -> AsyncGenerator[health_pb2.HealthCheckResponse, None]:
        """Yields the status of a service, now and at each change."""
        with self._admission.health_watchers.admitted():
            sent = None
            while True:
                changed = self._changed
                status = (
                    self._status
                    if request.service in self._names
                    else health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
                )
                if status != sent:
                    sent = status
                    yield health_pb2.HealthCheckResponse(status=status)
                await changed.wait()
