"""Operations: their fact between value and message, and their bytes in the operation store."""

from __future__ import annotations

from jobline.v1 import entry_pb2, store_pb2
from jobline_server.engine.operation_entries import OperationRecorded
from jobline_server.engine.operations import Operation
from jobline_server.storage.codec.table import FactRow, FactTable, whole
from jobline_server.wire.operations import fill_operation, operation_from_message


def fill_operation_recorded(entry: entry_pb2.Entry, fact: OperationRecorded) -> None:
    """Writes it into an entry."""
    fill_operation(entry.operation_recorded.operation, fact.operation)


def operation_recorded(at_ms: int, message: entry_pb2.OperationRecorded) -> OperationRecorded:
    """Reads it."""
    return OperationRecorded(at_ms, operation_from_message(message.operation))


def encode_operation(operation: Operation) -> bytes:
    """Returns an operation as it is stored."""
    message = store_pb2.StoredOperation()
    fill_operation(message, operation)
    return message.SerializeToString()


def decode_operation(blob: bytes) -> Operation:
    """Returns a stored operation."""
    return operation_from_message(store_pb2.StoredOperation.FromString(blob))


FACTS: FactTable = {
    OperationRecorded: FactRow(
        "operation_recorded", fill_operation_recorded, operation_recorded, whole
    ),
}
