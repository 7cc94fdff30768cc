"""The codec: the engine's facts and state as bytes, and back, exactly.

This is the only place that knows protobuf and the engine both. A file per room of `engine/apply`
holds each fact's two directions side by side; `records` and `ended` hold those of what a checkpoint
and the finished file keep. It knows no file, no row and no checksum: it is handed blobs and hands
out blobs.

To change what is written: change `entry.proto` or `store.proto` (they say how), then the two
functions here. Fields below a line of dashes in `engine/entries.py` are not written.
"""

from jobline_server.storage.codec.batch import (
    UnknownFact,
    decode_batch,
    encode_batch,
    facts_of,
    message_of,
)
from jobline_server.storage.codec.ended import record_of, records_of

__all__ = [
    "UnknownFact",
    "decode_batch",
    "encode_batch",
    "facts_of",
    "message_of",
    "record_of",
    "records_of",
]
