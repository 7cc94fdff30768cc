"""Limiters, as the client returns them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from jobline._rate_limit import RateLimit
from jobline._reading import read
from jobline.v1 import limiter_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Limiter:
    """A limit that jobs of any queues share: they name it in their option `limiters`.

    - `rate`, `concurrency`: how many jobs may start in a time, and be active at once; None: no
      limit.
    - `active`: jobs that are active; `tokens`: those of its rate that are in store.
    - `limited_until`: until when it lets nothing out, as `empty` or a worker said; `limited_by` and
      `limited_reason`: by whom and why.
    """

    name: str
    rate: RateLimit | None
    concurrency: int | None
    active: int
    tokens: int | None
    limited_until: datetime | None
    limited_by: str
    limited_reason: str
    created_at: datetime | None

    @classmethod
    def from_message(cls, message: limiter_service_pb2.Limiter) -> Self:
        """Returns the value of the protocol's message."""
        return read(cls, message)
