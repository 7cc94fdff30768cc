"""A guarded server with callers of one queue, and calls on it by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass
from grpc import aio

from jobline_server.testing import RunningServer
from tests.server.calling import PACKAGE, Refusal, method_of, refusal_of

SECRET = {"text": "secret", "options": {"name": "n", "headers": {"trace": "secret"}}}
FAILED = {"type": "Wrong", "message": "secret", "stack": "secret", "details": "c2VjcmV0"}


@dataclass
class World:
    server: RunningServer
    root: aio.Channel
    ours: aio.Channel
    looks: aio.Channel
    looks_all: aio.Channel

    async def ask(self, channel: aio.Channel, rpc: str, **request: Any) -> Any:
        """The reply to a call."""
        method = method_of(rpc)
        message = ParseDict(request, GetMessageClass(method.input_type)())
        reply = GetMessageClass(method.output_type).FromString
        path, write = f"/{PACKAGE}.{rpc}", type(message).SerializeToString
        if method.server_streaming:
            return [one async for one in channel.unary_stream(path, write, reply)(message)]
        return await channel.unary_unary(path, write, reply)(message)

    async def refused(self, channel: aio.Channel, rpc: str, **request: Any) -> Refusal:
        with pytest.raises(aio.AioRpcError) as caught:
            await self.ask(channel, rpc, **request)
        return refusal_of(caught.value)

    async def push(self, queue: str, **options: Any) -> int:
        reply = await self.ask(
            self.root, "JobService/Push", queue=queue, jobs=[SECRET], options=options
        )
        return int(reply.ids[0])

    async def lease(self, queue: str) -> tuple[int, int]:
        reply = await self.ask(self.root, "JobService/Pull", queues=[{"queue": queue}])
        return reply.jobs[0].id, reply.jobs[0].delivery

    async def dead(self, queue: str) -> int:
        """A job that has ended, with an error."""
        await self.push(queue)
        job_id, delivery = await self.lease(queue)
        item = {"id": job_id, "delivery": delivery, "error": FAILED, "then": 2}
        await self.ask(self.root, "JobService/Fail", items=[item])
        return job_id
