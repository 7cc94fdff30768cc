"""A thread for work that may hang."""

from __future__ import annotations

import threading

import pytest

from jobline_server.runtime.daemon_thread import DaemonThread


async def test_work_returns_or_raises_where_it_is_awaited() -> None:
    thread = DaemonThread("work")
    names = [await thread.run(lambda: threading.current_thread().name) for _ in range(2)]
    assert names == ["work", "work"]
    with pytest.raises(ZeroDivisionError):
        await thread.run(lambda: 1 // 0)
    assert await thread.run(lambda: 7) == 7
    thread.stop()
