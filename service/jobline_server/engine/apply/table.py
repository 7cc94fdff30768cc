"""The shape of a table of facts: the function that gives each its effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jobline_server.engine.state import ShardState

# Each function takes the very fact that it is registered for, which no type of a table can say.
ApplyTable = dict[type, Callable[[ShardState, Any, int], None]]
