"""protoc-gen-grpc-python: the gRPC half of the stubs, as a plugin that buf can call.

grpcio-tools ships its generator inside protoc and not as a program, and buf knows `protoc_builtin`
only for plain messages. So this reads buf's request, hands its descriptors to that protoc, and
passes the files back. It knows nothing of Jobline, and runs in .gen-venv only.
"""

import sys
import tempfile
from pathlib import Path

from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc


def files_with_services(request: CodeGeneratorRequest) -> list[str]:
    """Name the asked files that need gRPC stubs; for the others protoc would write empty ones."""
    asked = set(request.file_to_generate)
    return [file.name for file in request.proto_file if file.name in asked and file.service]


def generate(request: CodeGeneratorRequest) -> CodeGeneratorResponse:
    """Run the protoc of grpcio-tools over the request's descriptors."""
    response = CodeGeneratorResponse(
        supported_features=CodeGeneratorResponse.FEATURE_PROTO3_OPTIONAL
    )
    names = files_with_services(request)
    if not names:
        return response
    with tempfile.TemporaryDirectory() as folder:
        descriptors = Path(folder, "descriptors.binpb")
        descriptors.write_bytes(FileDescriptorSet(file=request.proto_file).SerializeToString())
        out = Path(folder, "out")
        out.mkdir()
        arguments = [f"--descriptor_set_in={descriptors}", f"--grpc_python_out={out}", *names]
        if protoc.main(["protoc", *arguments]) != 0:
            response.error = "grpc_tools.protoc failed; its message stands above"
            return response
        for path in sorted(out.rglob("*.py")):
            name = path.relative_to(out).as_posix()
            response.file.add(name=name, content=path.read_text(encoding="utf-8"))
    return response


if __name__ == "__main__":
    asked = CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
    sys.stdout.buffer.write(generate(asked).SerializeToString())
