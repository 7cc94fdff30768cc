"""The protocol as Python: messages, enums and stubs, generated from `proto/jobline/v1`.

Nothing here is written by hand but this sentence: `make gen` makes the modules anew, with pinned
tools, and they know nothing of the client around them.
"""
