"""A server whose log nobody reads: it serves, it is healthy, and it stops."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx

PIPE_BYTES = 4_096
QUEUES = 60
SERVER = [sys.executable, "-m", "jobline_server", "--listen", "127.0.0.1:0"]


def test_a_log_that_nobody_reads_stops_nobody(tmp_path: Path) -> None:
    """Each pause is a line of the log; the pipe holds a third of them."""
    end, into = os.pipe()
    fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    arguments = ["--http", "127.0.0.1:0", "--data", str(tmp_path / "data")]
    with subprocess.Popen([*SERVER, *arguments], stdout=subprocess.PIPE, stderr=into) as server:
        os.close(into)
        try:
            assert server.stdout is not None
            http = json.loads(server.stdout.readline())["http"]
            with httpx.Client(base_url=f"http://{http}", timeout=20) as client:
                for number in range(QUEUES):
                    push = {"queue": f"q{number}", "jobs": [{"text": "x"}]}
                    pause = {"queue": f"q{number}", "reason": "x" * 100}
                    for method, body in (("Job/Push", push), ("Queue/PauseQueue", pause)):
                        service, name = method.split("/")
                        path = f"/jobline.v1.{service}Service/{name}"
                        assert client.post(path, json=body).status_code == 200
                assert client.get("/healthz").status_code == 200
            server.send_signal(signal.SIGTERM)
            assert server.wait(30) == 0
        finally:
            server.kill()
    os.close(end)
