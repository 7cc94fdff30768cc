"""Ranges of settings."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

# The smallest ballast. Its last quarter must have room for a slice of retention in the write-ahead
# logs of both files, the rest for commits of pushes under way when the disk was full.
BALLAST_BYTES_MIN = 8 << 20
BALLAST_PAYLOADS = 2
Jobs = Annotated[int, Field(ge=0, le=1_000_000)]
# Up to 400 days.
KeptSeconds = Annotated[float, Field(ge=0, le=34_560_000)]
