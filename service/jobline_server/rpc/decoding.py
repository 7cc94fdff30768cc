"""Decodes requests, and checks what can be told of any message: the lengths of its lists, and the
types of its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from jobline_server.rpc.validate.list_limits import check_all
from jobline_server.rpc.validate.mistyped import check_own_fields

Decode = Callable[[bytes], Any]

# The conversions of these methods check the lengths of lists and the types of fields themselves, in
# the loop that reads the items anyway.
HOT_METHODS = frozenset({"Push", "PushFlow", "Ack", "Fail", "Release", "Extend", "Stream"})


class Malformed(Exception):
    """The bytes of a request are not its message."""


def decoder(method: MethodDescriptor) -> Decode:
    """Returns the function that decodes and checks requests of a method."""
    parse = GetMessageClass(method.input_type).FromString
    check = check_own_fields if method.name in HOT_METHODS else check_all

    def decode(raw: bytes) -> Any:
        try:
            message = parse(raw)
        except DecodeError:
            raise Malformed from None
        check(message)
        return message

    return decode
