"""Whole requests that are nearly right: the headers and frames of a call over HTTP/2, and the bytes
of one over HTTP.
"""

from __future__ import annotations

import gzip
from random import Random
from urllib.parse import quote

from benchmarks.http2 import DATA, END_STREAM, frame
from tests.server.fuzz_cases import Method, frames_of, json_of, message_of, one_of
from tests.server.fuzz_doors import Headers
from tests.server.fuzzing import Maker
from tests.server.half_client import reset

# Kinds of frames that are out of place after headers.
PRIORITY, CONTINUATION = 2, 9
FRAME_BYTES = 16_384

PATHS = [
    "/", "//", "/jobline.v1.JobService", "/jobline.v1.JobService/", "/jobline.v1.JobService/X",
    "/nobody.Service/Push", "*", "/jobline.v1.JobService/Push/", "/jobline.v1.JobService/push",
    "/%00", "/../../etc/passwd", "/" + "x" * 6_000,
]  # fmt: skip
GRPC_TYPES = [
    "application/grpc+proto", "application/grpc+json", "application/grpc-web", "application/json",
    "text/plain", "", "application/grpc; charset=utf-16",
]  # fmt: skip
# Headers that change how a call is read.
GRPC_HEADERS = [
    ("grpc-timeout", "nonsense"), ("grpc-timeout", "99999999999H"), ("grpc-timeout", "-1S"),
    ("grpc-timeout", "0n"), ("grpc-timeout", "1S"), ("grpc-encoding", "nonsense"),
    ("grpc-encoding", "gzip"), ("grpc-accept-encoding", "nonsense,,"), ("some-bin", "!!!"),
    ("x", "y" * 5_000), ("traceparent", "00-x"), ("grpc-previous-rpc-attempts", "-1"),
    ("authorization", "Bearer "), ("authorization", "x"), ("authorization-bin", "AA=="),
    ("content-length", "-1"), ("user-agent", ""), ("connection", "close"),
]  # fmt: skip
MEDIA_TYPES = [
    "application/grpc", "application/connect+json", "application/connect+proto", "text/plain", "",
    "application/json; charset=utf-16", "application/json; charset", "application/xml", "é",
]  # fmt: skip
HTTP_HEADERS = [
    ("connect-timeout-ms", "nonsense"), ("connect-timeout-ms", "-1"), ("connect-timeout-ms", "0"),
    ("connect-timeout-ms", "9" * 30), ("connect-protocol-version", "7"), ("origin", "http://x"),
    ("content-encoding", "gzip"), ("content-encoding", "br"), ("accept-encoding", "nonsense"),
    ("authorization", "Bearer"), ("authorization", "Basic eA=="), ("host", "evil.example"),
    ("transfer-encoding", "nonsense"), ("content-length", "nonsense"), ("expect", "100-continue"),
    ("upgrade", "h2c"), ("x-forwarded-for", "1.2.3.4"), ("last-event-id", "nonsense"),
    ("webhook-id", "m"), ("webhook-signature", "v1,nonsense"), ("webhook-timestamp", "1e9"),
]  # fmt: skip
QUERIES = [
    "", "queue=fuzz", "queue=hidden&snapshot=1", "job=0", "job=99999999999999999999", "events=x",
    "resume_token=nonsense", "queue=%ff", "snapshot=maybe", "a=b&" * 1_200, "job=-1", "queue=,,,",
    "events=completed&queue=fuzz", "resume_token=0.0.0.0.0.0.0.0",
]  # fmt: skip
HOOKED = ["fuzz", "hidden", "é", "a/b", ""]
PAGES = ["/", "/metrics", "/healthz", "/readyz", "/openapi.json", "/nothing", "/..", "/%2e%2e/x"]


def grpc_request(
    random: Random, maker: Maker, method: Method
) -> tuple[Headers, tuple[bytes, bool]]:
    """Headers and frames of a call, and whether it is made to its end."""
    headers = [
        (":method", one_of(random, "POST", ["GET", "PUT", "CONNECT", "X"], 0.05)),
        (":scheme", "http"),
        (":path", one_of(random, method.path, PATHS)),
        (":authority", "localhost"),
        ("te", one_of(random, "trailers", ["", "x"], 0.05)),
        ("content-type", one_of(random, "application/grpc", GRPC_TYPES)),
    ]
    if random.random() < 0.3:
        headers.append(random.choice(GRPC_HEADERS))
    messages = b"".join(lengthened(random, one) for one in frames_of(random, maker, method))
    return headers, data_frames(random, messages)


def lengthened(random: Random, message: bytes) -> bytes:
    """A message with its flag and its length before it, mostly the right ones."""
    flag = one_of(random, "0", ["1", "2", "255"], 0.05)
    length = len(message)
    if random.random() < 0.1:
        length = random.choice([0, 1, length + 1, length + 1_000, 2**31, 2**32 - 1])
    return bytes([int(flag)]) + length.to_bytes(4) + message


def data_frames(random: Random, body: bytes) -> tuple[bytes, bool]:
    """The frames of a body, and whether they are those of a call that is made to its end: mostly
    one, sometimes cut, in pieces, with others between, or given up.
    """
    kind = random.randrange(12)
    if kind == 0:
        body = body[: random.randrange(len(body) + 1)]
    elif kind == 1:
        return b"", True
    elif kind == 2:
        pieces = [frame(DATA, 0, 1, body[at : at + 1]) for at in range(min(len(body), 50))]
        return b"".join(pieces) + in_frames(body[50:]), True
    elif kind == 3:
        return frame(DATA, 0, 1, body[: min(len(body) // 2, FRAME_BYTES)]) + reset(1), False
    elif kind == 4:
        flags, strange = random.randrange(256), random.choice([0x42, PRIORITY, CONTINUATION])
        return frame(strange, flags, 1, b"1234") + in_frames(body), False
    return in_frames(body), True


def in_frames(body: bytes) -> bytes:
    """The frames of a body that is sent to its end."""
    cuts = range(0, max(len(body), 1), FRAME_BYTES)
    return b"".join(
        frame(DATA, END_STREAM * (at + FRAME_BYTES >= len(body)), 1, body[at : at + FRAME_BYTES])
        for at in cuts
    )


def http_request(
    random: Random, maker: Maker, method: Method, credentials: Headers
) -> tuple[bytes, bool]:
    """The bytes of a request over HTTP, and whether it must be answered soon: not one that is not
    whole, or that follows a stream of events.
    """
    kind = random.random()
    if kind < 0.04:
        verb, path, body, media = one_of(random, "GET", ["HEAD", "POST"]), page(random), b"", ""
    elif kind < 0.08:
        verb, path, media = (
            "POST",
            f"/hooks/{quote(random.choice(['fuzz', 'hidden', 'é', 'a/b']))}",
            "x",
        )
        body = message_of(random, maker, method)
    else:
        verb = one_of(random, "POST", ["GET", "PUT", "DELETE", "OPTIONS", "post"], 0.05)
        path = quote(one_of(random, method.path, PATHS, 0.05), safe="/*%")
        is_json = random.random() < 0.7
        media = one_of(random, "application/json" if is_json else "application/proto", MEDIA_TYPES)
        body = json_of(random, method.good_json) if is_json else message_of(random, maker, method)
    headers = [("host", "localhost"), ("content-type", media), ("connection", "close")]
    headers += credentials
    if random.random() < 0.3:
        headers.append(random.choice(HTTP_HEADERS))
    if random.random() < 0.05:
        body = gzip.compress(body)
        headers.append(("content-encoding", "gzip"))
    lines = [f"{verb} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    rest, is_whole = sized(random, body)
    head = "\r\n".join(lines).encode()
    return head + b"\r\n" + rest, is_whole and not path.startswith("/events")


def page(random: Random) -> str:
    """A page, or a stream of events."""
    if random.random() < 0.5:
        return f"/events?{random.choice(QUERIES)}"
    return random.choice(PAGES)


def sized(random: Random, body: bytes) -> tuple[bytes, bool]:
    """What says how long a body is, and the body, mostly all of it; whether it is all of it."""
    kind = random.randrange(20)
    if kind == 0:
        return b"content-length: %d\r\n\r\n" % (len(body) + 1) + body, False
    if kind == 1:
        chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        return b"transfer-encoding: chunked\r\n\r\n" + chunk + b"0\r\n\r\n", True
    if kind == 2:
        return b"transfer-encoding: chunked\r\n\r\nzz\r\n" + body, False
    if kind == 3:
        length = random.choice([10**12, 2**70])
        return b"content-length: %d\r\n\r\n" % length + body, False
    return b"content-length: %d\r\n\r\n" % len(body) + body, True
