"""Real servers for tests, ours and those of users: in this process or in one of their own.

    async with running_server() as server:
        channel = grpc.aio.insecure_channel(server.address)

Nothing is faked: socket, store and loop are those of production, on a free port and a new
directory.
"""

from jobline_server.runtime.clock import ManualClock
from jobline_server.testing.embedded import RunningServer, running_server
from jobline_server.testing.kit import AsyncJobline, Jobline
from jobline_server.testing.processes import ServerProcess
from jobline_server.testing.threaded import running_server_in_thread

__all__ = [
    "AsyncJobline",
    "Jobline",
    "ManualClock",
    "RunningServer",
    "ServerProcess",
    "running_server",
    "running_server_in_thread",
]
