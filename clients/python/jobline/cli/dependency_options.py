"""The options of commands about jobs that wait for others."""

from __future__ import annotations

from typing import Annotated

import typer

from jobline._dependencies import DependencyPolicy
from jobline.cli.exit_codes import UsageError
from jobline.cli.options import span

After = Annotated[
    list[int] | None,
    typer.Option(
        "--depends-on",
        "--after",
        metavar="ID",
        help="A job that must complete first; repeatable.",
    ),
]
OnFailure = Annotated[
    str,
    typer.Option(
        "--on-dependency-failure",
        "--on-failure",
        metavar="POLICY",
        help="If such a job does not complete: fail (default), cancel, ignore, wait or continue.",
    ),
]
BlockTimeout = Annotated[
    float | None,
    typer.Option(
        "--block-timeout", parser=span, metavar="TIME", help="How long it may wait for such jobs."
    ),
]


def policy_of(text: str) -> DependencyPolicy | None:
    """Returns the policy of this name; raises UsageError for another word."""
    if not text:
        return None
    try:
        return DependencyPolicy[text.upper()]
    except KeyError:
        raise UsageError(
            f"--on-dependency-failure: {text!r} is not fail, cancel, ignore, wait or continue"
        ) from None
