"""BatchService: any number of jobs that end together."""

from __future__ import annotations

from typing import Any

from jobline.v1 import batch_service_pb2 as pb
from jobline_server.rpc.convert import batches, operations, selection
from jobline_server.rpc.convert.page_tokens import cursor_of, token_of
from jobline_server.rpc.convert.push import PushReader
from jobline_server.rpc.guard import Context
from jobline_server.runtime.runtime import Runtime
from jobline_server.runtime.views import Audit


class BatchService:
    """Serves batches from the runtime, and changes them through it. `reader` checks callbacks as
    it does pushes.
    """

    def __init__(self, runtime: Runtime, reader: PushReader) -> None:
        self._runtime = runtime
        self._reader = reader

    def _audit(self, request: Any, context: Context) -> Audit:
        return operations.audit(request, context, self._runtime.operations.new_id())

    async def CreateBatch(
        self, request: pb.CreateBatchRequest, _context: Context
    ) -> pb.CreateBatchResponse:
        """Creates a batch."""
        spec = batches.batch_spec(request, self._reader)
        response = pb.CreateBatchResponse()
        batches.fill_batch(response.batch, await self._runtime.batches.create_batch(spec))
        return response

    async def CloseBatch(
        self, request: pb.CloseBatchRequest, _context: Context
    ) -> pb.CloseBatchResponse:
        """Closes a batch."""
        closed = await self._runtime.batches.close_batch(batches.batch_id_of(request))
        response = pb.CloseBatchResponse()
        batches.fill_batch(response.batch, closed)
        return response

    async def GetBatch(self, request: pb.GetBatchRequest, _context: Context) -> pb.GetBatchResponse:
        """Returns one batch."""
        response = pb.GetBatchResponse()
        batch = self._runtime.batches.get_batch(batches.batch_id_of(request))
        batches.fill_batch(response.batch, batch)
        return response

    async def ListBatches(
        self, request: pb.ListBatchesRequest, _context: Context
    ) -> pb.ListBatchesResponse:
        """Lists batches by id."""
        found, last_id = await self._runtime.batches.list_batches(
            batches.batch_filter(request),
            page_size=selection.page_size(request.page_size),
            after=batches.after_id(cursor_of(request)),
        )
        token = token_of(request, str(last_id) if last_id else "")
        response = pb.ListBatchesResponse(next_page_token=token)
        for batch in found:
            batches.fill_batch(response.batches.add(), batch)
        return response

    async def CancelBatch(
        self, request: pb.CancelBatchRequest, context: Context
    ) -> pb.CancelBatchResponse:
        """Cancels a batch and its members."""
        done, batch = await self._runtime.batches.cancel_batch(
            batches.batch_id_of(request),
            dry_run=request.dry_run,
            audit=self._audit(request, context),
        )
        response = pb.CancelBatchResponse(
            cancelled=done.count, requested=done.requested, operation_id=done.operation_id
        )
        batches.fill_batch(response.batch, batch)
        return response
