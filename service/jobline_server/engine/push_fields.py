"""Names of fields in refusals of pushes: the field in which the caller sent what is refused.

What a job has comes from its own entry in `jobs`, from a column beside `payloads`, or from what the
push shares. Commands do not keep which of these it was; it is found again where it is needed.
"""

from __future__ import annotations

from collections.abc import Callable

from jobline_server.engine.commands import Push
from jobline_server.engine.ties import NO_TIES, Ties
from jobline_server.engine.values import JobOptions


def option_field(
    command: Push, index: int, name: str, value_of: Callable[[JobOptions], object]
) -> str:
    """Returns the field of an option of the row with this index."""
    own, shared = command.rows.options[index], command.shared_options or command.options
    return _options_place(command, index, value_of(own) != value_of(shared)) + name


def unique_key_field(command: Push, index: int) -> str:
    """Returns the field of the unique key of the row with this index."""
    key, listed = _ties_of(command, index).unique_key, listed_of(command)
    is_own = key != command.shared_ties.unique_key
    if is_own and index >= listed:
        return f"unique_keys[{index - listed}]"
    return _options_place(command, index, is_own) + "unique_key"


def job_key_field(command: Push, index: int) -> str:
    """Returns the field of the job key of the job with this index, rows first."""
    listed = listed_of(command)
    return f"jobs[{index}].job_key" if index < listed else f"job_keys[{index - listed}]"


def depends_on_field(command: Push, index: int) -> str:
    """Returns the field of the ids on which the row with this index depends."""
    is_own = _ties_of(command, index).parents != command.shared_ties.parents
    return _options_place(command, index, is_own) + "depends_on"


def payload_field(command: Push, index: int) -> str:
    """Returns the field of the payload of the job with this index, rows first."""
    listed = listed_of(command)
    return f"jobs[{index}].payload" if index < listed else f"payloads[{index - listed}]"


def listed_of(command: Push) -> int:
    """Returns how many jobs, the first ones, were sent in `jobs`; the others were payloads."""
    return len(command.rows) if command.listed is None else command.listed


def _options_place(command: Push, index: int, is_own: bool) -> str:
    return f"jobs[{index}].options." if is_own and index < listed_of(command) else "options."


def _ties_of(command: Push, index: int) -> Ties:
    return command.rows.ties[index] if command.rows.ties else NO_TIES
