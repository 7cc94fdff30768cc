"""Reads the head of a call: media type, version, encoding, timeout. Each of them can refuse it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import grpc

from jobline_server.rpc.connect.failures import JSON, Failed
from jobline_server.rpc.errors import make_status
from jobline_server.rpc.validate import fields

PROTO = "application/proto"
STREAM = "application/connect+"
VERSION = "1"
ENCODINGS = ("identity", "gzip")
# No header that a caller could send: their names have no colon.
CERTIFICATE = ":certificate"
TIMEOUT = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class Head:
    """What the head of a call says. `timeout_ms` is None for a call without one."""

    media_type: str
    encoding: str
    timeout_ms: int | None

    @property
    def seconds(self) -> float | None:
        """Returns the timeout in seconds."""
        return None if self.timeout_ms is None else self.timeout_ms / 1_000


def read_head(headers: Mapping[str, str]) -> Head:
    """Returns the head of a call, of headers by their lower-case names. Raises `Failed` or
    `Refused`."""
    media_type, charset = _media_type(headers.get("content-type", ""))
    if media_type not in {JSON, PROTO} or charset not in {"", "utf-8"}:
        message = f"the content type must be {JSON} or {PROTO}"
        raise Failed(
            make_status(grpc.StatusCode.UNIMPLEMENTED, "", message),
            http=415,
            headers=[("accept-post", f"{JSON}, {PROTO}")],
        )
    version = headers.get("connect-protocol-version", VERSION)
    if version != VERSION:
        raise fields.invalid("connect-protocol-version", f"must be {VERSION}")
    encoding = headers.get("content-encoding", "identity").lower()
    if encoding not in ENCODINGS:
        message = f"the content encoding must be one of {', '.join(ENCODINGS)}"
        raise Failed(
            make_status(grpc.StatusCode.UNIMPLEMENTED, "", message),
            headers=[("accept-encoding", ", ".join(ENCODINGS))],
        )
    timeout = headers.get("connect-timeout-ms")
    if timeout is not None and not TIMEOUT.fullmatch(timeout):
        raise fields.invalid("connect-timeout-ms", "must be a number of up to 10 digits")
    return Head(media_type, encoding, None if timeout is None else int(timeout))


def certificate_of(headers: Mapping[str, str]) -> bytes:
    """Returns the caller's certificate (PEM), as the connection checked it; empty without."""
    return headers.get(CERTIFICATE, "").encode("ascii")


def stream_type(headers: Mapping[str, str]) -> str:
    """Returns the media type of a call of a stream in Connect's own framing; empty for another."""
    media_type, _ = _media_type(headers.get("content-type", ""))
    return media_type if media_type in {f"{STREAM}json", f"{STREAM}proto"} else ""


def _media_type(value: str) -> tuple[str, str]:
    """Returns a media type and its charset, in lower case."""
    media_type, _, parameters = value.lower().partition(";")
    charset = ""
    for parameter in parameters.split(";"):
        name, _, given = parameter.strip().partition("=")
        if name == "charset":
            charset = given.strip('"')
    return media_type.strip(), charset
