"""A shop: its queues, how long its jobs run, and which of them fail.

What happens to an attempt is drawn from the id of its job, so that the workers need not agree on
anything, and a job that fails at first completes when it is tried again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from hashlib import blake2b
from statistics import NormalDist

# The workers begin with the first; half-way one is put in place that brings the second.
VERSIONS = ("1.4.0", "1.5.0")
CUSTOMERS = tuple(f"customer-{number}" for number in range(1, 9))
# How far run times spread: one in a hundred takes five times the median.
_SIGMA = 0.7


class ShopError(Exception):
    """Why a job of the shop fails."""


class DeclinedError(ShopError):
    """The bank said no."""


class UpstreamError(ShopError):
    """Another service did not answer as it should."""


class TemplateError(ShopError):
    """A mail could not be written."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job. `error` may hold `{n}`, a number of the job."""

    queue: str
    name: str
    run_ms: float
    failing: float
    error: type[ShopError]
    message: str


KINDS = (
    Kind("search", "search.index", 2, 0.001, UpstreamError, "shard {n} of the index is read-only"),
    Kind("mail", "mail.newsletter", 4, 0.003, UpstreamError, "550 no such user u{n}@example.com"),
    Kind("mail", "mail.receipt", 8, 0.004, UpstreamError, "550 no such user u{n}@example.com"),
    Kind("images", "image.resize", 40, 0.006, ShopError, "/srv/images/{n}/a.png is truncated"),
    Kind("webhooks", "webhook.send", 20, 0.02, UpstreamError, "POST https://b.example/{n}: 503"),
    Kind("payments", "payment.charge", 25, 0.03, DeclinedError, "card of order {n} was declined"),
    Kind("stock", "stock.reserve", 6, 0.004, ShopError, "no stock of article {n}"),
    Kind("orders", "order.ship", 15, 0.002, UpstreamError, "carrier timed out after {n} ms"),
    Kind("exports", "export.rows", 12, 0.01, UpstreamError, "connection to db-{n} was refused"),
)
QUEUES = tuple(dict.fromkeys(kind.queue for kind in KINDS))
# What the second version breaks: receipts fail now and then, and images take longer.
_BROKEN = Kind("mail", "mail.receipt", 8, 0.15, TemplateError, "receipt.html has no field 'vat'")
_SLOWER = {"image.resize": 2.5}
# While a customer's own server is down, most calls to it fail.
_DOWN = 0.6


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of an attempt: it runs for `seconds`, and fails if there is an `error`."""

    seconds: float
    error: ShopError | None


def fate_of(kind: Kind, version: str, *, job_id: int, attempt: int, is_down: bool) -> Fate:
    """Returns what becomes of an attempt by a worker of a version."""
    is_new = version != VERSIONS[0]
    if is_new and kind.name == _BROKEN.name:
        kind = _BROKEN
    spread = math.exp(_SIGMA * NormalDist().inv_cdf(_drawn(job_id, attempt, "run")))
    slower = _SLOWER.get(kind.name, 1.0) if is_new else 1.0
    failing = _DOWN if is_down else kind.failing
    fails = _drawn(job_id, attempt, "fails") < failing
    error = kind.error(kind.message.format(n=job_id % 99_991)) if fails else None
    return Fate(kind.run_ms * slower * spread / 1_000, error)


def _drawn(job_id: int, attempt: int, what: str) -> float:
    """Returns a number between 0 and 1, both excluded."""
    digest = blake2b(f"{job_id} {attempt} {what}".encode(), digest_size=6).digest()
    return (int.from_bytes(digest) + 0.5) / 2**48
