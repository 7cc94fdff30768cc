"""No call, field, option or refusal of the protocol is forgotten: each has a vector, or a reason
to have none in exempt.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message_factory import GetMessageClass

from jobline.v1 import errors_pb2
from tests.conformance.runner import PACKAGE, method_of
from tests.conformance.vectors import HERE, filled, load

FILES = [
    "job_service", "job_admin_service", "queue_service", "limiter_service", "schedule_service",
    "batch_service", "webhook_service", "flow_service", "dead_letter_service", "admin_service",
]  # fmt: skip
EXEMPT: dict[str, dict[str, str]] = yaml.safe_load((HERE / "exempt.yaml").read_text("utf-8"))
VECTORS = load()
# Filters and answers choose among these, and the server treats their values alike.
FILTERS = {"EventKind", "EndReason", "JobState", "BatchState"}
CALLS = [step for vector in VECTORS for step in vector["steps"] if "call" in step]


class AnyValue(dict[str, str]):
    """A value for every variable, which numbers and moments take too."""

    def __missing__(self, name: str) -> str:
        return {"past": "2026-01-01T00:00:00Z", "soon": "2026-01-01T00:00:00Z"}.get(name, "16")


def all_rpcs() -> set[str]:
    """Every RPC as `Service/Method`."""
    pool = descriptor_pool.Default()
    files = [pool.FindFileByName(f"{PACKAGE.replace('.', '/')}/{name}.proto") for name in FILES]
    return {
        f"{service.name}/{method.name}"
        for file in files
        for service in file.services_by_name.values()
        for method in service.methods
    }


def inner_of(field: FieldDescriptor) -> Descriptor | None:
    """The message of the protocol that a field holds, if it does; not the entries of a map."""
    inner = field.message_type
    if inner is None or inner.file.package != PACKAGE or inner.GetOptions().map_entry:
        return None
    return inner


def fields_below(message: Descriptor, seen: set[str]) -> Iterator[str]:
    """All fields that a request of this kind can have, as `Message.field`, and values of enums."""
    if message.name in seen:
        return
    seen.add(message.name)
    for field in message.fields:
        yield f"{message.name}.{field.name}"
        if field.enum_type is not None and field.enum_type.name not in FILTERS:
            yield from (value.name for value in field.enum_type.values if value.number)
        inner = inner_of(field)
        if inner is not None:
            yield from fields_below(inner, seen)


def fields_of(message: Any) -> Iterator[str]:
    """The fields and enum values that a request does have."""
    for field, value in message.ListFields():
        yield f"{message.DESCRIPTOR.name}.{field.name}"
        values = value if field.is_repeated and not hasattr(value, "items") else [value]
        if field.enum_type is not None:
            yield from (field.enum_type.values_by_number[one].name for one in values)
        if inner_of(field) is not None:
            for one in values:
                yield from fields_of(one)


def used_fields() -> set[str]:
    found: set[str] = set()
    for step in CALLS:
        method = method_of(step["call"])
        given = filled(step.get("with", {}), AnyValue())
        for one in given if method.client_streaming else [given]:
            found.update(fields_of(ParseDict(one, GetMessageClass(method.input_type)())))
    return found


def test_every_call_has_a_vector() -> None:
    assert {step["call"] for step in CALLS} == all_rpcs()


def test_every_field_of_a_request_has_a_vector() -> None:
    """Options of jobs, settings, filters and all the rest, and each value of an enum."""
    seen: set[str] = set()
    there = {name for rpc in all_rpcs() for name in fields_below(method_of(rpc).input_type, seen)}
    missing = there - used_fields() - set(EXEMPT["fields"])
    assert not missing, f"no vector has {sorted(missing)}"
    assert not set(EXEMPT["fields"]) & used_fields(), "one has a vector: delete its exemption"
    assert set(EXEMPT["fields"]) <= there


def test_every_refusal_has_a_vector() -> None:
    reasons = {name.removeprefix("ERROR_REASON_") for name in errors_pb2.ErrorReason.keys()[1:]}
    refused = [step for vector in VECTORS for step in vector["steps"] if "error" in step]
    shown = {step["error"].get("reason", "") for step in refused if "client" not in step}
    missing = reasons - shown - set(EXEMPT["reasons"])
    assert not missing, f"no vector is refused with {sorted(missing)}"
    assert not set(EXEMPT["reasons"]) & shown, "one has a vector: delete its exemption"
    assert set(EXEMPT["reasons"]) <= reasons


def test_exemptions_have_reasons() -> None:
    for kind in EXEMPT.values():
        for name, why in kind.items():
            assert len(why) > 20, f"{name}: a reason is a sentence"


def test_promises_exist() -> None:
    """The numbers that vectors name are those of docs/guarantees.md."""
    page = (HERE.parents[1] / "docs" / "guarantees.md").read_text(encoding="utf-8")
    promised = set(re.findall(r"^### (G\d+):", page, re.MULTILINE))
    shown = {name for vector in VECTORS for name in re.findall(r"\bG\d+\b", vector["shows"])}
    assert shown <= promised
