"""`Partial`: a piece of a job's result, as a caller that waits gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from jobline import _codec as codec
from jobline import _typed_json as typed_json
from jobline._sealed_frames import is_frame, refuse_sealed
from jobline.errors import CodecError
from jobline.v1 import job_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class Partial:
    """A piece of the result of a job that runs.

    - `data`: what the handler passed to `context.partial`: bytes as they are, else as JSON.
    - `number`: grows by 1 with each piece of an attempt; a gap means that pieces were dropped
      before they could be read.
    - `delivery`: of the attempt; a new one means that the job began again.
    """

    id: int
    delivery: int
    number: int
    data: bytes

    @classmethod
    def from_message(cls, message: pb.WaitResponse) -> Self:
        """Returns the value of the protocol's message."""
        return cls(message.id, message.partial_delivery, message.partial_number, message.partial)

    def value(self, kind: Any = Any) -> Any:
        """Returns the piece as the given type, or as JSON if it is JSON, else bytes. Raises
        CodecError if it is not of that type.
        """
        if kind is not Any:
            return typed_json.decode_as(kind, self.data, codec.JSON)
        if is_frame(self.data):
            refuse_sealed(self.data)
        try:
            return codec.decode_json(self.data)
        except CodecError:
            return self.data
