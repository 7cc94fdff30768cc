"""Wire: the one translation between protocol messages and the engine's values.

Job options, queue settings, errors, attempts and events are written both by `rpc`, to clients, and
by `storage`, to disk. Both use the functions here, so the two forms cannot differ. Nothing here
checks a value (`rpc.validate` does), and nothing here knows a call, a clock or a file.
"""
