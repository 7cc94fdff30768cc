"""What a person can put right: one sentence that says what is wrong and what to do about it."""

from __future__ import annotations


class PipelineError(Exception):
    """The pipeline cannot go on; the message says why and what helps, and commands show it."""
