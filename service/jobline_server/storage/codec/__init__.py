"""The codec: the engine's facts and ended jobs as bytes, and back, exactly.

A file per room of `engine/apply` holds each fact's two directions side by side, and its row;
`ended` and `records` hold those of the finished file. What a checkpoint keeps is in `kinds`, the
only other room that knows protobuf and the engine both. The codec knows no file, no checksum and no
store: it is handed blobs and hands out blobs.

To change what is written: change `entry.proto` or `store.proto` (they say how), then the two
functions here. Fields below a line of dashes in `engine/entries.py` are not written.
"""

from jobline_server.storage.codec.batch import UnknownFact, batch_parts, decode_batch, encode_batch
from jobline_server.storage.codec.ended import record_of, records_of

__all__ = ["UnknownFact", "batch_parts", "decode_batch", "encode_batch", "record_of", "records_of"]
