"""Requests in JSON, beside what protobuf's own library makes of them. What is refused, and how, is
in tests/server/test_http_bad_input.py.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from jobline.v1 import job_service_pb2
from jobline_server.engine.commands import Refused
from jobline_server.rpc.connect import json_requests, json_values
from jobline_server.rpc.connect.json_requests import OWN_FORMS, read_json
from jobline_server.rpc.errors import StatusError
from tests.server.calling import all_rpcs, method_of
from tests.server.fuzzing import Maker

MESSAGES = 60


def read(text: str, message: Message | None = None) -> Any:
    return read_json(text.encode(), message or job_service_pb2.PushRequest())


@pytest.mark.parametrize("rpc", all_rpcs())
@pytest.mark.parametrize("with_proto_names", [False, True])
def test_messages_are_what_the_library_wrote(
    rpc: str, with_proto_names: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random messages of every method, written by the library, are the same when read."""
    monkeypatch.setattr(json_requests, "LIST_LIMITS", {})
    message_class = GetMessageClass(method_of(rpc).input_type)
    maker = Maker(Random(rpc))
    for _ in range(MESSAGES):
        try:
            message = message_class.FromString(maker.fuzzed(message_class()))
            text = json_format.MessageToJson(message, preserving_proto_field_name=with_proto_names)
        except (DecodeError, json_format.SerializeToJsonError, ValueError):
            continue  # JSON has no form for it
        expected = json_format.Parse(text, message_class())

        found = read(text, message_class())

        # NaN is not equal to itself.
        assert found.SerializeToString(deterministic=True) == expected.SerializeToString(
            deterministic=True
        )


@pytest.mark.parametrize(
    "text",
    [
        '{"options": {"priority": 5}}',
        '{"options": {"priority": "5"}}',
        '{"options": {"priority": 5.0}}',
        '{"options": {"priority": "5.0"}}',
        '{"options": {"priority": 5e0, "name": null}, "jobs": null}',
    ],
)
def test_a_number_has_several_forms(text: str) -> None:
    expected = json_format.Parse(text, job_service_pb2.PushRequest())
    assert read(text) == expected
    assert expected.options.priority == 5


@pytest.mark.parametrize("text", ["-_-_", "+/+/", "-_8=", "-_8", "", "AA=="])
def test_bytes_have_either_alphabet_and_need_no_padding(text: str) -> None:
    request = json.dumps({"payloads": [text]})
    assert read(request) == json_format.Parse(request, job_service_pb2.PushRequest())


def test_64_bits_are_exact() -> None:
    request = job_service_pb2.AckRequest
    for number in (2**63 - 1, 2**53 + 1):
        for form in (number, str(number)):
            assert read(json.dumps({"ids": [form]}), request()).ids[0] == number
    with pytest.raises(Refused, match=r"must be 0 to"):
        read('{"ids": [-1]}', request())


def test_every_message_of_a_request_can_be_read() -> None:
    """Messages with a JSON of their own are those that the reader knows."""
    seen: set[str] = set()

    def walk(message: Descriptor) -> None:
        if message.full_name in seen:
            return
        seen.add(message.full_name)
        for field in message.fields:
            if field.message_type is not None:
                walk(field.message_type)

    for rpc in all_rpcs():
        walk(method_of(rpc).input_type)
    assert {name for name in seen if name.startswith("google.")} == set(OWN_FORMS)


def test_an_enum_is_a_name_or_a_number() -> None:
    for form in ('"ACK_LEVEL_MEMORY"', "1", '"1"'):
        if form == '"1"':
            with pytest.raises(Refused, match="ACK_LEVEL_MEMORY"):
                read(f'{{"ackLevel": {form}}}')
        else:
            assert read(f'{{"ackLevel": {form}}}').ack_level == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"queue": "' + '\\"' * 300_000,
        '{"queue": "' + "\\" * 300_001,
        '"' * 700_001,
        "{" + '"a" ' * 500_000 + ",,," * 100_000,
        '{"a": "' + " " * 500_000 + '"' + " " * 500_000 + ",[{" * 100_000,
    ],
    ids=["quotes", "backslashes", "strings", "no commas", "spaces"],
)
def test_counting_takes_no_longer_than_the_text(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts at which expressions for strings take the square of their length."""
    monkeypatch.setattr(json_values, "VALUES_MAX", -1)  # counts each of them
    with pytest.raises((Refused, StatusError)):
        read(text)


def test_a_long_name_is_cut() -> None:
    with pytest.raises(Refused) as refused:
        read(json.dumps({"x" * 10_000: 1}))
    assert len(refused.value.field) == 100
