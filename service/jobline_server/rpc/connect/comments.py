"""The comments of the protocol, by the full names of what they describe.

Generated code has lost them; the files that reflection serves have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobline_server.rpc.reflection import File, known_files

Path = tuple[int, ...]
# The numbers of fields in descriptor.proto that lead to what has comments.
FILE_MESSAGES, FILE_ENUMS, FILE_SERVICES = 4, 5, 6
FIELDS, NESTED, ENUMS = 2, 3, 4
VALUES = METHODS = 2


def comments_of() -> dict[str, str]:
    """Returns all comments of the served files, as one line each."""
    found: dict[str, str] = {}
    for file in known_files().values():
        said = {
            tuple(location.path): " ".join(location.leading_comments.split())
            for location in file.source_code_info.location
            if location.leading_comments
        }
        found.update((name, said[path]) for path, name in _named(file) if path in said)
    return found


def _named(file: File) -> Iterator[tuple[Path, str]]:
    prefix = f"{file.package}." if file.package else ""
    for index, message in enumerate(file.message_type):
        yield from _in_message((FILE_MESSAGES, index), message, prefix)
    for index, enum in enumerate(file.enum_type):
        yield from _in_enum((FILE_ENUMS, index), enum, prefix)
    for index, service in enumerate(file.service):
        yield (FILE_SERVICES, index), f"{prefix}{service.name}"
        for place, method in enumerate(service.method):
            yield (FILE_SERVICES, index, METHODS, place), f"{prefix}{service.name}.{method.name}"


def _in_message(path: Path, message: Any, prefix: str) -> Iterator[tuple[Path, str]]:
    name = f"{prefix}{message.name}"
    yield path, name
    for index, field in enumerate(message.field):
        yield (*path, FIELDS, index), f"{name}.{field.name}"
    for index, nested in enumerate(message.nested_type):
        yield from _in_message((*path, NESTED, index), nested, f"{name}.")
    for index, enum in enumerate(message.enum_type):
        yield from _in_enum((*path, ENUMS, index), enum, f"{name}.")


def _in_enum(path: Path, enum: Any, prefix: str) -> Iterator[tuple[Path, str]]:
    yield path, f"{prefix}{enum.name}"
    for index, value in enumerate(enum.value):
        # The members of an enum are in the scope of its parent.
        yield (*path, VALUES, index), f"{prefix}{value.name}"
