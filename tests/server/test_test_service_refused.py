"""No server but one for tests serves TestService."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc import aio

from jobline.v1 import test_service_pb2 as pb
from jobline.v1 import test_service_pb2_grpc as stubs
from tests.server.calling import refusal_of

REQUESTS = {
    "Advance": pb.AdvanceRequest(),
    "Drain": pb.DrainRequest(),
    "WaitFor": pb.WaitForRequest(),
    "Reset": pb.ResetRequest(),
}


@pytest.mark.parametrize("method", REQUESTS)
async def test_other_servers_refuse_it(channel: aio.Channel, method: str) -> None:
    """And say which server does not."""
    stub: Any = stubs.TestServiceStub(channel)
    with pytest.raises(aio.AioRpcError) as caught:
        await getattr(stub, method)(REQUESTS[method])
    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert refusal_of(caught.value).reason == "NOT_SERVED"
    assert "jobline dev --clock=manual" in (caught.value.details() or "")
