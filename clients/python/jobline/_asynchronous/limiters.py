"""The operators' calls on limiters, awaited: typed arguments in, dataclasses out."""

from __future__ import annotations

from collections.abc import AsyncIterator

from jobline._admin_requests import PAGE_SIZE
from jobline._arguments import message_given, message_of, moment_given
from jobline._asynchronous.connection import Connection
from jobline._asynchronous.pages import pages_of
from jobline._limiter_values import Limiter
from jobline._rate_limit import RateLimit
from jobline._times import Moment
from jobline.v1 import limiter_service_pb2, limiter_service_pb2_grpc


class LimiterApi:
    """`client.limiters`: limits that jobs of any queues share, by name."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> limiter_service_pb2_grpc.LimiterServiceAsyncStub:
        return self._connection.stub(limiter_service_pb2_grpc.LimiterServiceStub)

    async def upsert(
        self,
        limiter: str,
        *,
        rate: RateLimit | None = None,
        concurrency: int | None = None,
        reason: str = "",
    ) -> Limiter:
        """Creates a limiter, or changes its limits; its tokens and its active jobs stay. One of
        `rate` and `concurrency` is needed. Raises LimitersFull.
        """
        request = message_of(
            limiter_service_pb2.UpsertLimiterRequest,
            limiter=limiter,
            rate=message_given("rate", rate, RateLimit),
            concurrency=concurrency,
            reason=reason,
        )
        response = await self._connection.write(self._stub.UpsertLimiter, request)
        return Limiter.from_message(response.limiter)

    async def get(self, limiter: str) -> Limiter:
        """Returns one limiter. Raises LimiterNotFound."""
        request = message_of(limiter_service_pb2.GetLimiterRequest, limiter=limiter)
        response = await self._connection.read(self._stub.GetLimiter, request)
        return Limiter.from_message(response.limiter)

    async def list(self, prefix: str = "", *, page_size: int = PAGE_SIZE) -> AsyncIterator[Limiter]:
        """Yields all limiters by name, or those whose name starts with `prefix`."""
        async for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListLimiters,
                message_of(
                    limiter_service_pb2.ListLimitersRequest,
                    page_size=page_size,
                    page_token=token,
                    name_prefix=prefix,
                ),
            )
        ):
            for limiter in page.limiters:
                yield Limiter.from_message(limiter)

    async def delete(self, limiter: str, *, reason: str = "") -> None:
        """Deletes a limiter: jobs that name it go free. Raises LimiterNotFound."""
        request = message_of(
            limiter_service_pb2.DeleteLimiterRequest, limiter=limiter, reason=reason
        )
        await self._connection.write(self._stub.DeleteLimiter, request)

    async def empty(self, limiter: str, until: Moment | None, *, reason: str = "") -> Limiter:
        """Has a limiter let nothing out until a time, such as the end of a 429; None lifts that
        limit. Raises LimiterNotFound.
        """
        request = message_of(
            limiter_service_pb2.EmptyLimiterRequest,
            limiter=limiter,
            until=moment_given("until", until),
            reason=reason,
        )
        response = await self._connection.write(self._stub.EmptyLimiter, request)
        return Limiter.from_message(response.limiter)
