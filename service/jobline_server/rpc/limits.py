"""Limits of the protocol: how much one message may hold.

Limits of jobs (attempts, leases, sizes of payloads) are in `engine.limits`.
"""

from __future__ import annotations

from jobline_server.engine.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

# All payloads of one push; a single payload may be larger if `max_payload_bytes` allows it.
PUSH_BYTES_MAX = 16 << 20
# Room in a message beside its payloads: ids, keys, options, framing.
MESSAGE_SLACK_BYTES = 1 << 20
# Messages that calls have waited for longer than a moment: what all of them may have together if
# each is as large as it can be, and how many there may be at least, however large that is.
MESSAGES_BYTES_MAX = 1 << 30
MESSAGES_MIN = 16
# The port that serves health alone: a request, which is the name of a service, and open calls of
# one connection.
HEALTH_BYTES_MAX = 4 << 10
HEALTH_CALLS_MAX = 100
# Values of all header columns of one push, empty ones too. To read one takes 0.3 µs, and the loop
# stands still meanwhile.
COLUMN_VALUES_MAX = 100_000
# Many clients take messages of at most 4 MiB: deliveries are cut well below that.
DELIVERY_BYTES_TARGET = 2 << 20
# Single jobs and runs of one message, which take a microsecond and more each to write.
DELIVERY_FIELDS_MAX = 5_000

# Open calls of one connection, streams included, about 20 KB of memory each; the client
# queues the rest. Without a bound, a connection that begins or resets calls as fast as it can would
# fill the memory and delay all others. Calls that gRPC has not cleaned up yet count too, and calls
# over the bound are UNAVAILABLE, so it is higher than what one client needs.
CONNECTION_CALLS_MAX = 10_000
# Those of the native transport, whose clients keep to the bound and wait: the fewer calls it has
# read, the sooner each is served or refused; but waits for jobs count, too, and must not hold up a
# push.
NATIVE_CALLS_MAX = 2_000
# Calls that have arrived and that the loop has not taken yet, about 10 KB of memory each, and how
# long one may wait. Far above `max_calls`, so that excess calls are refused by admission, with a
# definite code.
UNTAKEN_CALLS_MAX = 100_000
UNTAKEN_SECONDS_MAX = 600

# Texts.
TOKEN_CHARACTERS_MAX = 1_024
SESSION_CHARACTERS_MAX = 256
HOST_CHARACTERS_MAX = 256
LABELS_MAX = 16
SCHEMA_BYTES_MAX = 64 << 10
PROGRESS_MESSAGE_BYTES_MAX = 4 << 10
PRINCIPAL_CHARACTERS_MAX = 256
VERB_CHARACTERS_MAX = 64
OPERATION_ID_CHARACTERS_MAX = 64
# What was asked, as an operation keeps it.
OPERATION_REQUEST_CHARACTERS_MAX = 2_048
# A number in a page token.
CURSOR_DIGITS_MAX = 18
ERROR_DETAILS_BYTES_MAX = 16 << 10

# Entries in one message.
WEIGHT_MAX = 1_000
NAMES_MAX = 1_000
HANDLERS_MAX = 1_000
# A worker sends one settle per frame; after its connection broke, all that were not confirmed.
FRAME_SETTLES_MAX = 1_000
# Log lines of one frame or call: to read, record and keep one takes some 3 µs of the loop.
LOG_LINES_MAX = 5_000
MASK_PATHS_MAX = 100
FILTER_HEADERS_MAX = 8
FILTER_QUEUES_MAX = 1_000
ERROR_TYPES_MAX = 100
PAGE_SIZE_MAX = 1_000
# Jobs of a page of runs, as many as one push has.
RUNS_PAGE_SIZE_MAX = 10_000
PAGE_SIZE_DEFAULT = 100
WINDOW_BYTES_MAX = 1 << 40

# Clients whose push rates are known, if these are limited: about 150 bytes each. Those that pushed
# last stay.
CLIENTS_MAX = 100_000

# Keys of a trigger of KEDA: its own and ours are a dozen.
SCALER_KEYS_MAX = 64

# Settings.
MAX_WAITING_MAX = 1_000_000_000
MAX_WAITING_BYTES_MAX = 1 << 50
RETENTION_COUNT_MAX = 10_000_000
RETENTION_AGE_MS_MAX = 400 * DAY_MS
# Bytes of dead jobs that a queue keeps: room for one of the largest, and more than a disk has.
DEAD_BYTES_MIN = 1 << 20
DEAD_BYTES_MAX = 1 << 40

# Waiting.
PULL_WAIT_MS_MAX = 60 * SECOND_MS
WAIT_TIMEOUT_MS_MAX = 1 * HOUR_MS
WAIT_TIMEOUT_MS_DEFAULT = 1 * MINUTE_MS
# A flow: its jobs, how many of them wait for each other in a row, for how many each of them waits,
# and for how many all together.
FLOW_JOBS_MAX = 10_000
FLOW_DEPTH_MAX = 100
FLOW_JOB_CHILDREN_MAX = 10_000
FLOW_CHILDREN_MAX = 20_000
