"""The protocol's enums of job options as Python's, with the numbers of the wire."""

from __future__ import annotations

from enum import IntEnum
from typing import Literal


class DeliveryMode(IntEnum):
    """How often a job may be handed out."""

    AT_LEAST_ONCE = 1
    ONCE = 2


DeliveryModeName = DeliveryMode | Literal["at_least_once", "once"]
"""How often a job may be handed out, or its name."""


class BackoffKind(IntEnum):
    """How the pause before the next attempt grows."""

    FIXED = 1
    EXPONENTIAL = 2


BackoffKindName = BackoffKind | Literal["fixed", "exponential"]
"""A kind of backoff, or its name."""
