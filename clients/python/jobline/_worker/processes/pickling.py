"""What crosses between a worker and its children: handlers, jobs and outcomes as bytes.

A declared job stands in its module under the name of its function, so that neither of them could be
pickled by name. Here both are.
"""

from __future__ import annotations

import io
import pickle
import sys
from importlib import import_module
from types import FunctionType
from typing import Any

from jobline._job_type import JobType
from jobline.errors import InvalidArgument

# What a spawned process calls the module that the program was started with.
_MAIN_OF_CHILDREN = "__mp_main__"


def dumps(value: Any) -> bytes:
    """Returns a value as bytes. Raises what pickle raises."""
    buffer = io.BytesIO()
    _Pickler(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def loads(data: bytes) -> Any:
    """Returns the value of `dumps`, which the worker or its own child has made."""
    return pickle.loads(data)  # noqa: S301


def refuse_unpicklable(what: Any, described: str) -> None:
    """Raises InvalidArgument for a value that no other process can have."""
    try:
        dumps(what)
    except Exception as error:
        raise InvalidArgument(
            f"{described} cannot go to another process, as processes= needs: {error}. What "
            "runs there stands at the top of a module, by the name that it was defined with"
        ) from error


def as_sent(error: Exception) -> Exception:
    """Returns an exception that can be pickled: itself, or one that says the same."""
    try:
        loads(dumps(error))
    except Exception:  # noqa: BLE001  # whatever its class does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Returns how to find declared jobs, and their functions, by name."""
        if isinstance(obj, JobType):
            if obj.function is not None and (where := _place_of(obj.function)):
                found = _found(*where)
                if isinstance(found, JobType) and found.function is obj.function:
                    return _job_with, (*where, obj._how)  # noqa: SLF001
            return NotImplemented
        if isinstance(obj, FunctionType) and (where := _place_of(obj)):
            found = _found(*where)
            if isinstance(found, JobType) and found.function is obj:
                return _function_of, where
        return NotImplemented


def _place_of(function: Any) -> tuple[str, str] | None:
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    if module is None or name is None:
        return None
    return "__main__" if module == _MAIN_OF_CHILDREN else module, name


def _found(module: str, qualified_name: str) -> Any:
    """Returns what a module has under a name; None without."""
    found = sys.modules.get(module)
    for name in qualified_name.split("."):
        found = getattr(found, name, None)
    return found


def _declared(module: str, qualified_name: str) -> JobType[Any, Any]:
    import_module(module)
    found = _found(module, qualified_name)
    if not isinstance(found, JobType):
        raise InvalidArgument(f"{module}.{qualified_name} is no declared job in this process")
    return found


def _job_with(module: str, qualified_name: str, how: Any) -> JobType[Any, Any]:
    declared = _declared(module, qualified_name)
    return declared.with_options(**how) if how else declared


def _function_of(module: str, qualified_name: str) -> Any:
    return _declared(module, qualified_name).function
