"""A worker's stream, opened and read as a stranger's client would."""

from __future__ import annotations

from typing import Any

from grpc import aio

from jobline.v1 import job_service_pb2
from tests.server.world import make

OPEN = {"open": {"queues": [{"queue": "q"}]}, "window": {"max_in_flight": 10}}


async def opened(stub: Any, **frame: Any) -> Any:
    """An open stream; its first frame has been read."""
    stream = stub.Stream()
    await stream.write(make(job_service_pb2.StreamRequest, **(OPEN | frame)))
    assert (await stream.read()).opened.session
    return stream


async def next_with(stream: Any, field: str) -> Any:
    """The next frame that has this field set."""
    while True:
        frame = await stream.read()
        assert frame is not aio.EOF
        if field in {descriptor.name for descriptor, _ in frame.ListFields()}:
            return frame
