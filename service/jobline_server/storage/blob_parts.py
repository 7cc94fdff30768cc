"""What a blob must have to be of interest: byte strings, whatever they mean."""

from __future__ import annotations

BlobParts = tuple[tuple[bytes, ...], ...]
"""Of each tuple a blob must have one at least."""


def has_parts(blob: bytes, wanted: BlobParts) -> bool:
    """Returns whether a blob has what it must have."""
    return all(any(part in blob for part in parts) for parts in wanted)
