"""Serialises runs of jobs for operators.

As those of a hand-out, payloads go out as the block of bytes that they came in as: a run is the
message of what its jobs share, and the blocks behind it. `JobRun` and `LeasedRun` number the fields
of these blocks alike.
"""

from __future__ import annotations

import asyncio

from jobline.v1 import job_admin_service_pb2 as pb
from jobline_server.rpc.convert.jobs import fill_job, fill_page
from jobline_server.rpc.convert.own_fields import column_fields
from jobline_server.runtime.queries.job_runs import JobRun
from jobline_server.runtime.queries.run_pages import RunPage
from jobline_server.wire.raw_fields import tag_of, varint

# Runs that are written in one step of the loop, each in some 30 µs, and a column in up to 1 ms.
STEP_RUNS = 50
STEP_VALUES = 50_000

_RUNS_TAG = tag_of(pb.ListJobsResponse.DESCRIPTOR, "runs")


async def runs_response(page: RunPage, token: str, *, with_payloads: bool) -> bytes:
    """Returns the serialised response with a page, some of it written in one step of the loop."""
    response = pb.ListJobsResponse(next_page_token=token)
    await fill_page(response, page.jobs, with_payload=with_payloads)
    parts = [response.SerializeToString()]
    runs = values = 0
    for run in page.runs:
        body = _body_of(run, with_payloads=with_payloads)
        parts += (_RUNS_TAG, varint(len(body)), body)
        runs, values = runs + 1, values + run.count
        if runs >= STEP_RUNS or values >= STEP_VALUES:
            runs = values = 0
            await asyncio.sleep(0)  # noqa: TID251  # it does not wait
    return b"".join(parts)


def _body_of(run: JobRun, *, with_payloads: bool) -> bytes:
    """Returns the serialised run: a message without blocks, then the blocks."""
    message = pb.JobRun(
        first_id=run.first_id,
        count=run.count,
        ended_ms=run.ended_ms,
        lease_until_ms=run.lease_until_ms,
    )
    fill_job(message.shared, run.shared, with_payload=False)
    message.shared.ClearField("id")
    if run.ended_ms:
        message.shared.ClearField("ended_at")
    if run.lease_until_ms:
        message.shared.ClearField("lease_until")
    payloads = run.payloads
    if not payloads.is_even and not with_payloads:
        message.payload_bytes.extend(payloads.sizes_of(run.start, run.count))
    parts = [message.SerializeToString()]
    if with_payloads:
        parts.append(payloads.block_of(run.start, run.count))
    if payloads.columns is not None:
        parts.append(column_fields(payloads.columns.part(run.start, run.count)))
    return b"".join(parts)
