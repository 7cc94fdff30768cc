"""The codec: the engine's facts and ended jobs as bytes, and back, exactly.

A file per module of `engine/apply` has both directions of each fact side by side, and its row;
`ended` and `records` have those of ended jobs. What a checkpoint keeps is in `kinds`, the only
other room that knows both protobuf and the engine. The codec knows no file, no checksum and no
store, only blobs.

To change what is written: change `entry.proto` or `store.proto` (they say how), then the two
functions here. Fields below a line of dashes in `engine/entries.py` are not written.
"""

from jobline_server.storage.codec.batch import UnknownFact, batch_parts, decode_batch, encode_batch
from jobline_server.storage.codec.ended import pushed_ms_of, record_of, records_of, run_of
from jobline_server.storage.codec.ended_search import blob_parts
from jobline_server.storage.codec.operations import decode_operation

__all__ = [
    "UnknownFact",
    "batch_parts",
    "blob_parts",
    "decode_batch",
    "decode_operation",
    "encode_batch",
    "pushed_ms_of",
    "record_of",
    "records_of",
    "run_of",
]
