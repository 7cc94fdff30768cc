"""Calls of producers: finds known ones, refuses those that are over or have no room."""

from __future__ import annotations

from jobline_server.engine import limits
from jobline_server.engine.commands import RefusalKind, Refused
from jobline_server.engine.producers import Call, CallRecord, Producer
from jobline_server.engine.view import ShardView


def find_call(shard: ShardView, aged_ms: int, call: Call) -> tuple[CallRecord, bool] | None:
    """Returns the record of a call that came before, and whether its jobs are volatile; None if the
    call is new.

    Raises `Refused` with CALL_OVER for a copy of a call that its producer has declared over.
    """
    for table in (shard.producers, shard.volatile_producers):
        producer = table.find(call.producer, aged_ms)
        if producer is None:
            continue
        if call.sequence < producer.answered_below:
            raise Refused(
                RefusalKind.CALL_OVER,
                f"call {call.sequence} of this producer is over: it said itself that those below "
                f"{producer.answered_below} are",
                field="producer.sequence",
            )
        record = producer.calls.get(call.sequence)
        if record is not None:
            return record, table is shard.volatile_producers
    return None


def check_new_calls(shard: ShardView, aged_ms: int, calls: tuple[Call, ...]) -> None:
    """Refuses several calls at once if one of them is not new: the caller decides each alone."""
    distinct = {(call.producer, call.sequence) for call in calls}
    if len(distinct) < len(calls) or any(find_call(shard, aged_ms, call) for call in calls):
        raise Refused(RefusalKind.IDEMPOTENCY_MISMATCH, "one of these calls came before")


def check_room_for_calls(shard: ShardView, aged_ms: int, calls: tuple[Call, ...]) -> None:
    """Refuses calls if there is no room for their records. At the limit, a producer that declares a
    call over with each new one is still accepted.
    """
    load = shard.load
    for call in calls:
        producer = shard.producers.find(call.producer, aged_ms)
        if producer is not None and producer.drops_below(call.answered_below):
            continue
        if producer is not None and len(producer.calls) >= limits.PRODUCER_CALLS_MAX:
            raise Refused(
                RefusalKind.PRODUCERS_FULL, _too_many_of_one(producer), retry_after_ms=1_000
            )
        if load.calls + 2 * len(calls) > load.calls_max:
            raise Refused(
                RefusalKind.PRODUCERS_FULL,
                f"the server keeps {load.calls} of {load.calls_max} producers and their calls",
                retry_after_ms=60_000,
            )


def _too_many_of_one(producer: Producer) -> str:
    return (
        f"{len(producer.calls)} calls of this producer are kept, as it has not said that they are "
        f"over: the first is {next(iter(producer.calls))}"
    )
