"""What the shell completes: commands, and names that the server knows."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

JOBLINE = shutil.which("jobline", path=Path(sys.executable).parent) or "jobline"


def completed(line: str, server: str) -> list[str]:
    """What bash would offer at the end of a line."""
    words = line.split()
    place = len(words) if line.endswith(" ") else len(words) - 1
    asked = {
        "_JOBLINE_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(place),
        "JOBLINE_SERVER": server,
    }
    ended = subprocess.run(
        [JOBLINE], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert not ended.stderr
    return ended.stdout.split()


def test_names_come_from_the_server(jobline, served, queue):
    jobline("push", queue, "x", "--group", "acme")
    jobline("limiter", "set", f"api-{queue}", "--concurrency", 2)
    server = served["grpc"]
    assert completed(f"jobline queue get {queue[:5]}", server) == [queue]
    assert completed(f"jobline push {queue[:5]}", server) == [queue]
    assert completed(f"jobline group get {queue} a", server) == ["acme"]
    assert completed(f"jobline limiter get api-{queue[:5]}", server) == [f"api-{queue}"]
    assert completed(f"jobline queue get --server {server} {queue[:5]}", "127.0.0.1:1") == [queue]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("jobline queu", ["queue"]),
        ("jobline queue pa", ["pause"]),
        ("jobline queue get --ser", ["--server"]),
        ("jobline tail --kind dead_ev", ["dead_evicted"]),
        ("jobline queue get q", []),
    ],
)
def test_without_a_server_there_are_only_words_of_ours(line, found):
    assert completed(line, "127.0.0.1:1") == found


def test_a_server_that_hangs_is_not_waited_for():
    with socket.create_server(("127.0.0.1", 0)) as mute:
        began = time.monotonic()
        assert completed("jobline queue get q", f"127.0.0.1:{mute.getsockname()[1]}") == []
    assert time.monotonic() - began < 15
