"""Server reflection, v1 and v1alpha, with comments.

The descriptors that generated Python code holds have lost their comments, so `grpcurl describe`
would show none. `descriptors.binpb` (written by `make gen`) is the protocol with its comments, and
is served as it is. Health and reflection are not in it; they come from the pool of descriptors.

Both versions of the protocol are the same messages under two names.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2 as pb

from jobline_server.rpc.guard import Frames

File = descriptor_pb2.FileDescriptorProto

# The journal and the tables.
NOT_SERVED = ("jobline/v1/entry.proto", "jobline/v1/store.proto")
V1 = "grpc.reflection.v1.ServerReflection"
V1ALPHA = "grpc.reflection.v1alpha.ServerReflection"


class ReflectionService:
    """Serves files and symbols; there are no extensions."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = sorted(services)
        self._files = known_files()
        self._symbols = {
            symbol: name for name, file in self._files.items() for symbol in symbols_of(file)
        }

    async def ServerReflectionInfo(self, frames: Frames) -> None:
        """Answers each request with one response."""
        while (request := await frames.read()) is not None:
            await frames.write(self.answer(request).SerializeToString())

    def answer(self, request: pb.ServerReflectionRequest) -> pb.ServerReflectionResponse:
        """Returns the response to a request."""
        response = pb.ServerReflectionResponse(original_request=request)
        response.valid_host = request.host
        kind = request.WhichOneof("message_request")
        if kind == "list_services":
            response.list_services_response.SetInParent()
            for service in self._services:
                response.list_services_response.service.add(name=service)
        elif kind == "file_by_filename":
            self._fill_files(response, request.file_by_filename)
        elif kind == "file_containing_symbol":
            self._fill_files(response, self._symbols.get(request.file_containing_symbol, ""))
        elif kind == "all_extension_numbers_of_type":
            name = request.all_extension_numbers_of_type
            if name in self._symbols:
                response.all_extension_numbers_response.base_type_name = name
            else:
                _fill_error(response, grpc.StatusCode.NOT_FOUND)
        elif kind == "file_containing_extension":
            _fill_error(response, grpc.StatusCode.NOT_FOUND)
        else:
            _fill_error(response, grpc.StatusCode.INVALID_ARGUMENT)
        return response

    def _fill_files(self, response: pb.ServerReflectionResponse, name: str) -> None:
        """Fills in a file and all files that it imports."""
        if name not in self._files:
            _fill_error(response, grpc.StatusCode.NOT_FOUND)
            return
        names = [name]
        for wanted in names:
            imported = self._files[wanted].dependency
            names.extend(other for other in imported if other not in names)
        response.file_descriptor_response.file_descriptor_proto.extend(
            self._files[wanted].SerializeToString() for wanted in names
        )


def _fill_error(response: pb.ServerReflectionResponse, code: grpc.StatusCode) -> None:
    response.error_response.error_code = code.value[0]
    response.error_response.error_message = code.value[1]


def known_files() -> dict[str, File]:
    """Returns all files that are served, by name; those of the disk format are not."""
    packaged = files("jobline_server.rpc").joinpath("descriptors.binpb").read_bytes()
    found = {
        file.name: file
        for file in descriptor_pb2.FileDescriptorSet.FromString(packaged).file
        if file.name not in NOT_SERVED
    }
    alpha = _from_pool(pb.DESCRIPTOR.name)
    # Clients look up the details of errors by name to show them.
    others = (health_pb2, error_details_pb2, status_pb2)
    for file in (*(_from_pool(other.DESCRIPTOR.name) for other in others), alpha, as_v1(alpha)):
        found.setdefault(file.name, file)
    missing = [name for file in found.values() for name in file.dependency if name not in found]
    for name in missing:
        found[name] = _from_pool(name)
    return found


def _from_pool(name: str) -> File:
    file = File()
    descriptor_pool.Default().FindFileByName(name).CopyToProto(file)
    return file


def as_v1(alpha: File) -> File:
    """Returns the reflection protocol under its final name, v1."""
    file = File()
    text = alpha.SerializeToString()
    file.ParseFromString(text)
    file.name = "grpc/reflection/v1/reflection.proto"
    file.package = "grpc.reflection.v1"
    old, new = f".{alpha.package}.", f".{file.package}."
    for message in file.message_type:
        for field in message.field:
            field.type_name = field.type_name.replace(old, new)
    for service in file.service:
        for method in service.method:
            method.input_type = method.input_type.replace(old, new)
            method.output_type = method.output_type.replace(old, new)
    return file


def symbols_of(file: File) -> list[str]:
    """Returns the full names of a file's messages, enums, services, methods and fields."""
    prefix = f"{file.package}." if file.package else ""
    found = [f"{prefix}{enum.name}" for enum in file.enum_type]
    for service in file.service:
        found.append(f"{prefix}{service.name}")
        found.extend(f"{prefix}{service.name}.{method.name}" for method in service.method)
    for message in file.message_type:
        found.extend(_symbols_of_message(message, prefix))
    return found


def _symbols_of_message(message: descriptor_pb2.DescriptorProto, prefix: str) -> list[str]:
    name = f"{prefix}{message.name}"
    found = [name, *(f"{name}.{field.name}" for field in message.field)]
    found.extend(f"{name}.{enum.name}" for enum in message.enum_type)
    for nested in message.nested_type:
        found.extend(_symbols_of_message(nested, f"{name}."))
    return found
