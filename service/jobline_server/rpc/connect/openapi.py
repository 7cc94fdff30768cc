"""Describes the calls of the HTTP port as an OpenAPI 3.1 document, made of the descriptors.

Everything comes from the protocol: paths, schemas of messages in protobuf's JSON, and the comments
of the `.proto` files as descriptions. Nothing is written by hand but the error and the headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, MethodDescriptor

from jobline_server.rpc.connect.comments import comments_of
from jobline_server.rpc.connect.failures import CODES, JSON
from jobline_server.rpc.connect.heads import PROTO
from jobline_server.rpc.connect.schemas import enum_schema, inner_types, message_schema, reference

ABOUT = """\
The unary calls of Jobline over HTTP, in the unary shape of the \
[Connect protocol](https://connectrpc.com/docs/protocol). Requests are protobuf's JSON \
(`application/json`) or binary messages (`application/proto`), replies likewise; requests may be \
compressed with gzip. An error is JSON with its code, and with the reason in the detail \
`google.rpc.ErrorInfo`. Streams are served by gRPC alone."""

ERROR: dict[str, Any] = {
    "type": "object",
    "description": "An error.",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "string", "enum": [name for name, _ in CODES.values()]},
        "message": {"type": "string", "description": "What is wrong, for people."},
        "details": {
            "type": "array",
            "description": "`google.rpc.ErrorInfo` with the reason, and others by the case.",
            "items": {
                "type": "object",
                "required": ["type", "value"],
                "properties": {
                    "type": {"type": "string", "description": "The name of the message."},
                    "value": {
                        "type": "string",
                        "contentEncoding": "base64",
                        "description": "The message, in base64 without padding.",
                    },
                    "debug": {"type": "object", "description": "The message in JSON, for people."},
                },
            },
        },
    },
}

PARAMETERS: dict[str, Any] = {
    "version": {
        "name": "Connect-Protocol-Version",
        "in": "header",
        "description": "The version of the protocol.",
        "schema": {"type": "string", "const": "1"},
    },
    "timeout": {
        "name": "Connect-Timeout-Ms",
        "in": "header",
        "description": "How long the call may take, in milliseconds. Unset: as long as it does.",
        "schema": {"type": "integer", "minimum": 0, "maximum": 9_999_999_999},
    },
}


def openapi(methods: Mapping[str, MethodDescriptor], version: str) -> dict[str, Any]:
    """Returns the document of these methods, by path."""
    comments = comments_of()
    services = {method.containing_service.full_name for method in methods.values()}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Jobline",
            "version": version,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": name, "description": comments.get(name, "")} for name in sorted(services)
        ],
        "paths": {path: {"post": _operation(method, comments)} for path, method in methods.items()},
        "components": {
            "schemas": _schemas(methods, comments),
            "parameters": PARAMETERS,
            "responses": {
                "Error": {
                    "description": "The call failed; the status is the one of the error's code.",
                    "content": {JSON: {"schema": reference("Error")}},
                }
            },
        },
    }


def _operation(method: MethodDescriptor, comments: Mapping[str, str]) -> dict[str, Any]:
    description = comments.get(method.full_name, "")
    return {
        "operationId": f"{method.containing_service.name}_{method.name}",
        "tags": [method.containing_service.full_name],
        "summary": description.partition(".")[0],
        "description": description,
        "parameters": [{"$ref": f"#/components/parameters/{name}"} for name in PARAMETERS],
        "requestBody": {"required": True, "content": _content(method.input_type)},
        "responses": {
            "200": {"description": "The reply.", "content": _content(method.output_type)},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }


def _content(message: Descriptor) -> dict[str, Any]:
    return {JSON: {"schema": reference(message.full_name)}, PROTO: {}}


def _schemas(
    methods: Mapping[str, MethodDescriptor], comments: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the schemas of all messages and enums that the methods use, by name."""
    schemas: dict[str, Any] = {}
    left: list[Descriptor | EnumDescriptor] = []
    for method in methods.values():
        left += (method.input_type, method.output_type)
    while left:
        kind = left.pop()
        if kind.full_name in schemas:
            continue
        if isinstance(kind, EnumDescriptor):
            schemas[kind.full_name] = enum_schema(kind, comments)
        else:
            schemas[kind.full_name] = message_schema(kind, comments)
            left += inner_types(kind)
    return {"Error": ERROR, **dict(sorted(schemas.items()))}
