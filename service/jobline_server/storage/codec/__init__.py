"""The codec: the engine's facts and state as bytes, and back, exactly.

This is the only place that knows protobuf and the engine both. A file per room of `engine/apply`
holds each fact's two directions side by side; the `stored_…` files hold those of what a checkpoint
keeps, `ended` and `records` those of the finished file. It knows no file, no checksum and no store:
it is handed blobs and hands out blobs.

To change what is written: change `entry.proto` or `store.proto` (they say how), then the two
functions here. Fields below a line of dashes in `engine/entries.py` are not written.
"""

from jobline_server.storage.codec.batch import UnknownFact, decode_batch, encode_batch
from jobline_server.storage.codec.ended import record_of, records_of

__all__ = ["UnknownFact", "decode_batch", "encode_batch", "record_of", "records_of"]
