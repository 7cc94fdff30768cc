"""Converts what an operator changes of a job."""

from __future__ import annotations

from jobline.v1 import job_admin_service_pb2 as pb
from jobline_server.engine import limits
from jobline_server.engine.decide.update import JobChange
from jobline_server.rpc.validate import fields

CHANGEABLE = ("payload", "priority", "delay")


def job_change(request: pb.UpdateJobRequest, payload_bytes_max: int) -> JobChange:
    """Returns the change that a request asks for."""
    if not request.id:
        raise fields.invalid("id", "is required")
    if len(request.payload) > payload_bytes_max:
        raise fields.too_large("payload", f"must be at most {payload_bytes_max} bytes")
    delay_ms = fields.duration_ms(request.delay, "delay", 0, limits.DELAY_MS_MAX)
    named = _named(request)
    return JobChange(
        payload=request.payload if "payload" in named else None,
        priority=request.priority if "priority" in named else None,
        delay_ms=delay_ms if "delay" in named else None,
    )


def _named(request: pb.UpdateJobRequest) -> set[str]:
    """Returns the fields to change."""
    paths = request.update_mask.paths
    for index, path in enumerate(paths):
        if path not in CHANGEABLE:
            raise fields.invalid(
                f"update_mask.paths[{index}]", f"must be one of {', '.join(CHANGEABLE)}"
            )
    present = {descriptor.name for descriptor, _ in request.ListFields()}
    named = set(paths) or present.intersection(CHANGEABLE)
    if not named:
        raise fields.invalid("update_mask", "names nothing to change, and no field is set")
    return named
