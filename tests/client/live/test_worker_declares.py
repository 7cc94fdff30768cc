"""What a worker declares when its stream opens, and a server refuses for good."""

from __future__ import annotations

import pytest

from jobline import TooLarge, Worker
from jobline_server.testing import running_server


async def test_more_handlers_than_a_stream_may_have_end_the_worker() -> None:
    """No second try would change the answer."""
    async with running_server() as server:
        worker = Worker(server.address)
        for number in range(1_001):
            worker.handler("q", f"n{number}")(lambda _: None)
        with pytest.raises(TooLarge, match="handlers: must be at most 1000"):
            await worker.serve()
