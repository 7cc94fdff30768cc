"""The type of the tables that map each fact to the function that applies it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline_server.engine.state import ShardState

# Each function takes the fact type that it is registered for, which the type of a table cannot
# express.
ApplyTable = dict[type, Callable[[ShardState, Any, int], None]]
