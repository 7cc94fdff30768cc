"""Server reflection: everything is described, comments included, in both of its versions."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from grpc import aio
from grpc_reflection.v1alpha import reflection_pb2 as pb

from jobline_server.rpc.reflection import V1, V1ALPHA, known_files, symbols_of

SERVICES = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "externalscaler.ExternalScaler",
    "jobline.v1.AdminService",
    "jobline.v1.BatchService",
    "jobline.v1.FlowService",
    "jobline.v1.LimiterService",
    "jobline.v1.ScheduleService",
    "jobline.v1.WebhookService",
    "jobline.v1.DeadLetterService",
    "jobline.v1.JobAdminService",
    "jobline.v1.JobService",
    "jobline.v1.QueueService",
}


@pytest.fixture(params=[V1, V1ALPHA])
def path(request: pytest.FixtureRequest) -> str:
    """The method of each version."""
    return f"/{request.param}/ServerReflectionInfo"


async def ask(channel: aio.Channel, path: str, **question: Any) -> Any:
    """One question and its answer."""
    stream = channel.stream_stream(
        path,
        request_serializer=pb.ServerReflectionRequest.SerializeToString,
        response_deserializer=pb.ServerReflectionResponse.FromString,
    )()
    await stream.write(pb.ServerReflectionRequest(**question))
    await stream.done_writing()
    reply = await stream.read()
    assert await stream.read() is aio.EOF
    return reply


def files_of(reply: Any) -> list[descriptor_pb2.FileDescriptorProto]:
    """The files of an answer."""
    files = reply.file_descriptor_response.file_descriptor_proto
    return [descriptor_pb2.FileDescriptorProto.FromString(file) for file in files]


async def test_services_are_listed(filled: aio.Channel, path: str) -> None:
    """`grpcurl list`."""
    reply = await ask(filled, path, list_services="")

    assert {service.name for service in reply.list_services_response.service} == SERVICES


@pytest.mark.parametrize("symbol", sorted(SERVICES))
async def test_every_service_is_described_with_all_that_it_needs(
    filled: aio.Channel, path: str, symbol: str
) -> None:
    """`grpcurl describe`: the file and every file that it imports."""
    files = files_of(await ask(filled, path, file_containing_symbol=symbol))

    names = {file.name for file in files}
    assert symbol in symbols_of(files[0])
    assert {name for file in files for name in file.dependency} <= names


@pytest.mark.parametrize(
    ("symbol", "comment"),
    [
        ("jobline.v1.JobService", "What producers and workers use."),
        ("jobline.v1.JobService.Push", "Stores jobs in a queue"),
        ("jobline.v1.PushRequest.queue", "Required."),
        ("jobline.v1.JobState", "Where a job stands."),
    ],
)
async def test_comments_are_there(
    filled: aio.Channel, path: str, symbol: str, comment: str
) -> None:
    """What stands in the proto files is what `describe` shows."""
    file = files_of(await ask(filled, path, file_containing_symbol=symbol))[0]

    comments = [location.leading_comments.strip() for location in file.source_code_info.location]
    assert any(said.startswith(comment) for said in comments)


@pytest.mark.parametrize(
    ("question", "code"),
    [
        ({"file_containing_symbol": "jobline.v1.Nothing"}, 5),
        # Trial D9: what the server writes to its disk is not part of the API.
        ({"file_containing_symbol": "jobline.v1.StoredJob"}, 5),
        ({"file_by_filename": "jobline/v1/entry.proto"}, 5),
        ({"file_by_filename": "nothing.proto"}, 5),
        ({"all_extension_numbers_of_type": "jobline.v1.Nothing"}, 5),
        ({"file_containing_extension": {"containing_type": "x", "extension_number": 1}}, 5),
        ({}, 3),
    ],
)
async def test_what_is_not_there_is_said_so(
    filled: aio.Channel, path: str, question: dict[str, Any], code: int
) -> None:
    """In the answer; the call goes on."""
    reply = await ask(filled, path, **question)

    assert reply.error_response.error_code == code


async def test_messages_without_extensions_have_none(filled: aio.Channel, path: str) -> None:
    """proto3 has no extensions."""
    reply = await ask(filled, path, all_extension_numbers_of_type="jobline.v1.Job")

    assert reply.all_extension_numbers_response.base_type_name == "jobline.v1.Job"
    assert not reply.all_extension_numbers_response.extension_number


def test_files_are_complete() -> None:
    """Every file that is imported anywhere is there."""
    files = known_files()

    assert {name for file in files.values() for name in file.dependency} <= set(files)
