"""What children need to have the handlers of their worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jobline._worker.processes.pickling import dumps, refuse_unpicklable
from jobline._worker.routes import Route


def program_of(
    routes: Sequence[Route], middleware: Sequence[Any]
) -> tuple[bytes, dict[Route, int]]:
    """Returns what children need to have these handlers, and the numbers by which they are named.
    Raises InvalidArgument for what cannot be pickled.
    """
    made = [route for route in routes if route.make is not None]
    program = [route.make for route in made], list(middleware)
    refuse_unpicklable(program, "a handler or middleware")
    return dumps(program), {route: number for number, route in enumerate(made)}
