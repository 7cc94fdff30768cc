"""The history: committed facts as rows, in Parquet files that a data pipeline reads.

`events` makes rows of facts and their effects, `tables` makes Arrow tables of rows, `files` encodes
these as Parquet, `spool` keeps finished files on the disk of the server until `destination` has
them. Nothing here knows the loop, a clock or the journal: `runtime.exporter` does. pyarrow is
imported by this room alone, and this room only by a server that exports.
"""
