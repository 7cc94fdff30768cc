"""Push calls as text, by which a call may be repeated. Pure.

The text is `call:PRODUCER:NUMBER:OVER BELOW`: the producer, the number of its call, and the number
below which all its calls are over. It is used in place of a request id.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from jobline.errors import ClientClosed, JoblineError, PermissionDenied, Unauthenticated
from jobline.v1 import job_service_pb2 as pb

# How long a push is repeated, in seconds: the server knows a call for ten minutes.
REPEAT_SECONDS_MAX = 540.0

_TEXT = re.compile(r"call:([0-9a-f]{32}):([1-9][0-9]{0,17}):([0-9]{1,18})")


class Call(NamedTuple):
    """A push call: its producer's id in hexadecimal digits, its number, and the number below which
    all calls of the producer are over.
    """

    producer: str
    sequence: int
    answered_below: int

    def text(self) -> str:
        """Returns the call as text."""
        return f"call:{self.producer}:{self.sequence}:{self.answered_below}"


def call_of(text: str) -> Call | None:
    """Returns the call with this text; None for a request id."""
    match = _TEXT.fullmatch(text)
    return None if match is None else Call(match[1], int(match[2]), int(match[3]))


def identify(request: pb.PushRequest, text: str) -> None:
    """Sets the call, or the request id, of a request."""
    call = call_of(text)
    if call is None:
        request.request_id = text
        return
    producer = request.producer
    producer.id = bytes.fromhex(call.producer)
    producer.sequence, producer.answered_below = call.sequence, call.answered_below


def id_of(request: pb.PushRequest) -> str:
    """Returns the text of the call that a request is, or its request id; "" without both."""
    if not request.HasField("producer"):
        return request.request_id
    producer = request.producer
    return Call(producer.id.hex(), producer.sequence, producer.answered_below).text()


# They refuse this try; an earlier try may have succeeded.
_OF_THIS_TRY = (ClientClosed, PermissionDenied, Unauthenticated)


def is_definite(error: JoblineError, tries: int) -> bool:
    """Returns whether nothing was stored. After several tries, the first of which may have been
    stored, only a reply of the server to this very request proves it.
    """
    return error.definite and (tries == 1 or not isinstance(error, _OF_THIS_TRY))
