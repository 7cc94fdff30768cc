"""Incoming webhooks: `POST /hooks/{queue}`, signed with the secret of the queue's webhook, pushes
a job. Its payload is the body, its job key the `webhook-id`: one that comes again is no second job.

It goes to the guarded handler of `Push`, as calls over HTTP do, so all bounds and refusals are the
same. Nothing is said of the secret or of what was signed. Where callers are authenticated, the
signature is what a sender shows: these requests need no token, and push to their queue alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

from jobline.v1 import job_service_pb2 as pb
from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.webhook import Secrets
from jobline_server.rpc.admission import Admission, ending
from jobline_server.rpc.connect.calls import HttpCall
from jobline_server.rpc.connect.failures import CODES, JSON, Reply, error_reply
from jobline_server.rpc.delivery import expect_reply
from jobline_server.rpc.errors import DETAILS_KEY, Status, make_status, status_of
from jobline_server.rpc.gates import too_many
from jobline_server.rpc.guard import UnaryAnswer
from jobline_server.rpc.validate.fields import QUEUE_NAME
from jobline_server.wire.signatures import ID, BadSignature, verify

PREFIX = "/hooks/"
PUSH = "/jobline.v1.JobService/Push"


class IncomingHooks:
    """Serves incoming webhooks. `secrets_of` returns the secrets of a queue's webhook; `push` is
    the guarded handler of `Push`.
    """

    def __init__(
        self,
        secrets_of: Callable[[str], Secrets | None],
        push: UnaryAnswer,
        wall_ms: Callable[[], int],
        admission: Admission,
        *,
        body_bytes_max: int,
    ) -> None:
        self.body_bytes_max = body_bytes_max
        self._admission = admission
        self._secrets_of = secrets_of
        self._push = push
        self._wall_ms = wall_ms

    def refusal(self, verb: str, path: str, headers: Mapping[str, str]) -> Reply | None:
        """Returns the refusal of a request that can be told by its head, or None."""
        try:
            found = self._find(path)
        except Refused as refused:
            return _unavailable(refused)
        if found is None:
            message = "there is no incoming webhook of this queue, or it is disabled"
            return error_reply(_refused(RefusalKind.WEBHOOK_NOT_FOUND, message))
        if verb != "POST":
            status = make_status(grpc.StatusCode.UNIMPLEMENTED, "", "a webhook is sent by POST")
            return error_reply(status, HTTPStatus.METHOD_NOT_ALLOWED, [("allow", "POST")])
        if headers.get("content-encoding", "identity") != "identity":
            status = make_status(grpc.StatusCode.INVALID_ARGUMENT, "", "compression is not read")
            return error_reply(status, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > self.body_bytes_max:
            return self.too_large()
        try:
            if self._admission.ending:
                raise ending()
            self._admission.check_room()
        except Refused as refused:
            return error_reply(status_of(refused))
        return None

    def too_large(self) -> Reply:
        """Returns the refusal of a body over `body_bytes_max`."""
        message = f"a payload has at most {self.body_bytes_max} bytes"
        status = _refused(RefusalKind.TOO_LARGE, message)
        return error_reply(status, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)

    def too_many(self) -> Reply:
        """Returns the refusal of a large body while as many are read as there is room for."""
        return error_reply(status_of(too_many("large requests")))

    async def answer(self, path: str, headers: Mapping[str, str], body: bytes, peer: str) -> Reply:
        """Returns the reply to a request that `refusal` let pass."""
        wall_ms = self._wall_ms()
        try:
            found = self._find(path)
        except Refused as refused:
            return _unavailable(refused)
        if found is None:
            return error_reply(_refused(RefusalKind.WEBHOOK_NOT_FOUND, "the webhook was deleted"))
        try:
            key = verify(found.valid(wall_ms), headers, body, wall_ms // limits.SECOND_MS)
        except BadSignature as bad:
            return error_reply(_refused(RefusalKind.BAD_SIGNATURE, str(bad)))
        if len(key.encode()) > limits.JOB_KEY_BYTES_MAX:
            message = f"must be at most {limits.JOB_KEY_BYTES_MAX} bytes"
            return error_reply(_refused(RefusalKind.INVALID_FIELD, message, ID))
        request = pb.PushRequest(queue=_queue_of(path))
        job = request.jobs.add(data=body, job_key=key)
        job.options.content_type = headers.get("content-type", "")
        expect_reply()
        call = HttpCall(peer, {})
        raw = await self._push(request.SerializeToString(), call)
        if call.status is not None:
            return error_reply(call.status, headers=_retry_after(call.status))
        return _accepted(pb.PushResponse.FromString(raw))

    def _find(self, path: str) -> Secrets | None:
        queue = _queue_of(path)
        return self._secrets_of(queue) if QUEUE_NAME.fullmatch(queue) else None


def _queue_of(path: str) -> str:
    return path.removeprefix(PREFIX)


def _unavailable(refused: Refused) -> Reply:
    """Returns the reply while the webhooks are not served here."""
    status = status_of(refused)
    return error_reply(status, headers=_retry_after(status))


def _refused(kind: RefusalKind, message: str, field: str = "") -> Status:
    return status_of(Refused(kind, message, field=field))


def _accepted(response: pb.PushResponse) -> Reply:
    document = {"job_id": response.ids[0], "duplicate": not response.count}
    return Reply(HTTPStatus.OK, [("content-type", JSON)], json.dumps(document).encode())


def _retry_after(status: Status) -> list[tuple[str, str]]:
    """Returns the header that says when to come again, if the status does."""
    packed = dict(status.metadata).get(DETAILS_KEY)
    if packed is None or CODES[status.code][1] < HTTPStatus.TOO_MANY_REQUESTS:
        return []
    info = error_details_pb2.RetryInfo()
    for detail in status_pb2.Status.FromString(packed).details:
        if detail.Is(info.DESCRIPTOR):
            detail.Unpack(info)
    delay: Duration = info.retry_delay
    seconds = delay.seconds + bool(delay.nanos)
    return [("retry-after", str(seconds))] if seconds else []
