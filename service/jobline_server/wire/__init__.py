"""The wire room: one translation between protocol messages and the engine's values.

Jobs' options, queue settings, errors and attempts are written down twice: on the wire by `rpc`, on
disk by `storage`. Both use what stands here, so the two can never differ. Nothing here checks a
value (that is `rpc.validate`'s work), and nothing here knows a call, a clock or a file.
"""
