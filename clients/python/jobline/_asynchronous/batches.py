"""Batches, awaited: jobs of any queues that are counted together, and what follows their ends."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, Unpack

from jobline._admin_requests import PAGE_SIZE
from jobline._arguments import message_of, tags_given
from jobline._asynchronous.connection import Connection, now, sleep
from jobline._asynchronous.pages import pages_of
from jobline._asynchronous.producer import Producer
from jobline._batch_values import (
    Batch,
    BatchCallback,
    BatchCancelled,
    BatchState,
    BatchStateName,
    create_request,
)
from jobline._enums import all_named
from jobline._ids import RequestIds
from jobline._push.messages import LotHow, PushHow
from jobline._times import Seconds, seconds_of
from jobline._values import Pushed, PushedLot
from jobline.errors import WaitTimeout
from jobline.v1 import batch_service_pb2, batch_service_pb2_grpc

# How soon a batch is looked at again while it is waited for: first, and at most.
LOOK_SECONDS = 0.02
LOOK_SECONDS_MAX = 1.0


class BatchApi:
    """`client.batches`: jobs of any queues that are counted together."""

    def __init__(self, connection: Connection, producer: Producer) -> None:
        self._connection = connection
        self._producer = producer
        self._new_id = RequestIds()

    @property
    def _stub(self) -> batch_service_pb2_grpc.BatchServiceAsyncStub:
        return self._connection.stub(batch_service_pb2_grpc.BatchServiceStub)

    async def create(
        self,
        name: str = "",
        *,
        tags: Iterable[str] = (),
        parent: int = 0,
        on_success: BatchCallback | None = None,
        on_complete: BatchCallback | None = None,
        on_first_death: BatchCallback | None = None,
    ) -> BatchRef:
        """Creates a batch that is open, and returns a reference to it, to push its members with.

        - `name` (≤ 256 characters) and `tags` (at most 16): to find it by.
        - `parent`: id of the batch that this one is a member of (0: none); batches nest 20 deep.
        - `on_success`, `on_complete`, `on_first_death`: jobs that are pushed, once each, when all
          members have completed, when all have ended, and when the first one is dead.

        Raises BatchNotFound or BatchComplete for the parent, and BatchesFull.
        """
        request = create_request(
            name,
            tags,
            parent,
            self._new_id(),
            on_success=on_success,
            on_complete=on_complete,
            on_first_death=on_first_death,
        )
        response = await self._connection.write(self._stub.CreateBatch, request)
        return self.ref(response.batch.id)

    def ref(self, id_: int) -> BatchRef:
        """Returns a reference to a batch, to push its members with; nothing is sent. A job finds
        the id of its batch in its options: `batch_id`.
        """
        return BatchRef(self, self._producer, id_)

    async def get(self, id_: int) -> Batch:
        """Returns one batch. Raises BatchNotFound."""
        request = message_of(batch_service_pb2.GetBatchRequest, id=id_)
        response = await self._connection.read(self._stub.GetBatch, request)
        return Batch.from_message(response.batch)

    async def close(self, id_: int) -> Batch:
        """Closes a batch: it is complete as soon as all members have ended. Until then its jobs may
        push more into it. Closing it again changes nothing. Raises BatchNotFound.
        """
        request = message_of(batch_service_pb2.CloseBatchRequest, id=id_)
        response = await self._connection.write(self._stub.CloseBatch, request)
        return Batch.from_message(response.batch)

    async def list(
        self,
        *,
        state: BatchStateName | Iterable[BatchStateName] = (),
        name: str = "",
        tags: Iterable[str] = (),
        parent: int = 0,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[Batch]:
        """Yields batches by id: all, or those that meet all conditions."""
        states = [
            batch_service_pb2.BatchState.ValueType(one) for one in all_named(BatchState, state)
        ]
        async for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListBatches,
                message_of(
                    batch_service_pb2.ListBatchesRequest,
                    page_size=page_size,
                    page_token=token,
                    states=states,
                    name=name,
                    tags=tags_given("tags", tags),
                    parent_id=parent,
                ),
            )
        ):
            for batch in page.batches:
                yield Batch.from_message(batch)

    async def cancel(self, id_: int, *, dry_run: bool = False, reason: str = "") -> BatchCancelled:
        """Closes a batch for good, cancels its members that wait, and asks the workers of the
        others to stop; the same for batches in it. Its callbacks are pushed as ever when all have
        ended. Raises BatchNotFound.
        """
        request = message_of(
            batch_service_pb2.CancelBatchRequest, id=id_, dry_run=dry_run, reason=reason
        )
        response = await self._connection.write(self._stub.CancelBatch, request)
        return BatchCancelled.from_message(response)

    async def wait(self, id_: int, *, timeout: Seconds = 60) -> Batch:
        """Returns the batch once it is complete: closed, and all members have ended. Asks again and
        again, at most once a second. Raises WaitTimeout (the batch goes on) and BatchNotFound.
        """
        until = now() + seconds_of(timeout)
        pause = LOOK_SECONDS
        while True:
            batch = await self.get(id_)
            if batch.state is BatchState.COMPLETE:
                return batch
            left = until - now()
            if left <= 0:
                text = f"batch {id_} has {batch.pending} of {batch.total} members that go on"
                raise WaitTimeout(text, id_)
            await sleep(min(pause, left))
            pause = min(2 * pause, LOOK_SECONDS_MAX)


class BatchRef:
    """A reference to a batch, to push its members with. `async with` closes the batch at its end;
    if the block raises, the batch stays open, and is not complete before somebody closes it.
    """

    def __init__(self, api: BatchApi, producer: Producer, id_: int) -> None:
        self._api = api
        self._producer = producer
        self.id = id_

    async def push(self, queue: str, payload: Any = b"", **how: Unpack[PushHow]) -> Pushed:
        """Pushes one job as a member; all is as for `client.push`. Raises BatchNotFound and
        BatchComplete.
        """
        how["batch_id"] = self.id
        return await self._producer.push(queue, payload, **how)

    async def push_many(
        self, queue: str, jobs: Iterable[Any], **how: Unpack[LotHow]
    ) -> Sequence[Pushed]:
        """Pushes many jobs as members in one call; all is as for `client.push_many`."""
        how["batch_id"] = self.id
        return await self._producer.push_many(queue, jobs, **how)

    async def push_payloads(
        self, queue: str, payloads: Sequence[bytes], **how: Unpack[LotHow]
    ) -> PushedLot:
        """Pushes up to 10,000 plain jobs as members; all is as for `client.push_payloads`."""
        how["batch_id"] = self.id
        return await self._producer.push_payloads(queue, payloads, **how)

    async def get(self) -> Batch:
        """Returns the batch as it is now."""
        return await self._api.get(self.id)

    async def close(self) -> Batch:
        """Closes the batch; see `client.batches.close`."""
        return await self._api.close(self.id)

    async def cancel(self, *, reason: str = "") -> BatchCancelled:
        """Cancels the batch; see `client.batches.cancel`."""
        return await self._api.cancel(self.id, reason=reason)

    async def wait(self, *, timeout: Seconds = 60) -> Batch:
        """Waits until the batch is complete; see `client.batches.wait`."""
        return await self._api.wait(self.id, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            await self.close()
