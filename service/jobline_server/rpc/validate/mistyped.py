"""Refuses fields sent with the wrong wire type.

protobuf treats a field with a known number and a wrong type as an unknown field, so its value would
be lost in silence. Unknown numbers are fine (a newer client); known numbers among the unknown
fields are refused.
"""

from __future__ import annotations

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from jobline_server.engine.commands import RefusalKind, Refused

# Unknown fields in one message, as a newer client may send; each entry of a list counts. Checking
# one costs about as much as serving a field, and a message of 16 MiB has room for eight million.
UNKNOWN_FIELDS_MAX = 100


def check_own_fields(message: Message) -> None:
    """Refuses a message with a field of a wrong wire type; does not check messages in it."""
    unknown = UnknownFieldSet(message)
    count = len(unknown)
    if not count:
        return
    if count > UNKNOWN_FIELDS_MAX:
        text = (
            f"a message may hold at most {UNKNOWN_FIELDS_MAX} fields that the server does not know"
        )
        raise Refused(RefusalKind.TOO_LARGE, text)
    known = message.DESCRIPTOR.fields_by_number
    for index in range(count):
        number = unknown[index].field_number
        if number in known:
            name = known[number].name
            raise Refused(RefusalKind.INVALID_FIELD, "has the wrong wire type", field=name)
