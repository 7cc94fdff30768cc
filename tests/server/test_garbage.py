"""Garbage sent to the port: the server goes on, and its stderr has only lines of its log."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from benchmarks.http2 import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PREFACE,
    SETTINGS,
    frame,
    headers,
)
from jobline.v1 import job_service_pb2
from jobline.v1.job_service_pb2_grpc import JobServiceStub
from jobline_server.serving import EXIT_STOPPED
from tests.server.half_client import request, reset

PUSH, STREAM = "/jobline.v1.JobService/Push", "/jobline.v1.JobService/Stream"
BEGIN = PREFACE + frame(SETTINGS, 0, 0, b"")


def with_header(path: str, name: str, value: str) -> bytes:
    """A call with a header of its own."""
    pairs = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "host")]
    pairs += [("content-type", "application/grpc"), ("te", "trailers"), (name, value)]
    compressed = b"\1" + (5).to_bytes(4) + b"xxxxx"
    return frame(HEADERS, END_HEADERS, 1, headers(pairs)) + frame(DATA, END_STREAM, 1, compressed)


GARBAGE = {
    "HTTP/1.1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "TLS": bytes.fromhex("16030100c8010000c40303") + bytes(range(200)),
    "zeros": bytes(2_000),
    "a preface and noise": BEGIN + bytes(range(256)) * 20,
    "a frame that is too long": BEGIN + b"\xff" * 3 + bytes(200),
    "headers that are none": BEGIN + frame(HEADERS, END_HEADERS, 1, b"\xff" * 50),
    "settings out of range": BEGIN + frame(SETTINGS, 0, 0, b"\0\4" + b"\xff" * 4),
    "an encoding that is none": BEGIN + with_header(PUSH, "grpc-encoding", "nonsense"),
    "gzip that is none": BEGIN + with_header(PUSH, "grpc-encoding", "gzip"),
    "a time-out that is none": BEGIN + with_header(STREAM, "grpc-timeout", "nonsense"),
    "no base64": BEGIN + with_header(STREAM, "some-bin", "!!!"),
    "a message that is none": BEGIN + request(1, PUSH, b"\xff" * 20),
    "a call that is reset": BEGIN + request(1, STREAM, b"") + reset(1),
    "half a call": (BEGIN + request(1, PUSH, bytes(100)))[:-50],
}


@pytest.fixture
def process(transport: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A server of its own: what C writes to stderr is seen there only."""
    command = [sys.executable, "-m", "jobline_server", f"--data={tmp_path / 'data'}"]
    command += ["--listen=127.0.0.1:0", "--http=", "--ballast-bytes=0", "--low-space-bytes=0"]
    made = subprocess.Popen(
        [*command, f"--transport={transport}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={name: value for name, value in os.environ.items() if not name.startswith("GRPC_")},
    )
    with made:
        yield made
        made.kill()


def send(address: str, what: bytes) -> None:
    """Sends it, and waits until the server has nothing more to say or has closed."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=0.2) as connection:
        connection.sendall(what)
        try:
            while connection.recv(65_536):
                pass
        except (TimeoutError, ConnectionResetError):
            pass


def test_garbage_leaves_no_line_that_is_not_the_logs(process: subprocess.Popen[str]) -> None:
    """Trial D9: gRPC's core would write lines that begin with E1122, past the log."""
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["grpc"]

    for what in GARBAGE.values():
        send(address, what)

    with grpc.insecure_channel(address) as channel:
        JobServiceStub(channel).Push(job_service_pb2.PushRequest(queue="q", payloads=[b"x"]))
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert process.returncode == EXIT_STOPPED
    assert not [line for line in said.splitlines() if not line.startswith("{")]
    events = [json.loads(line)["event"] for line in said.splitlines()]
    assert events == ["ready", "stopping", "stopped"]
