"""Numbers of the protocol that the engine does not heed: what one message may hold.

Limits of meaning (attempts, leases, sizes of payloads) stand in `engine.limits`.
"""

from __future__ import annotations

from jobline_server.engine.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS

# A batch of payloads together; one payload may be larger where the server's setting says so.
PUSH_BYTES_MAX = 16 << 20
# What a message holds beside its payloads: ids, keys, options, framing.
MESSAGE_SLACK_BYTES = 1 << 20
# Many clients take messages of at most 4 MiB: deliveries are cut well below that.
DELIVERY_BYTES_TARGET = 2 << 20
# Single jobs and runs of one message, which take a microsecond and more each to write.
DELIVERY_FIELDS_MAX = 5_000

# Calls of one connection to grpcio, streams too, about 20 KB of memory each: its client begins more
# when some have ended. Without a bound a connection that begins calls or resets them as fast as it
# can fills the memory and keeps all others waiting. Those that gRPC has not cleared away yet count
# as well, and what is over the bound is UNAVAILABLE: so it is above what one client has open.
CONNECTION_CALLS_MAX = 10_000
# Calls that have arrived and that the loop has not taken yet, about 10 KB of memory each, and how
# long one may wait for it. Far above what is served at once, so that what is too much is refused by
# us, with a definite code.
UNTAKEN_CALLS_MAX = 100_000
UNTAKEN_SECONDS_MAX = 600

# Words.
TOKEN_CHARACTERS_MAX = 1_024
SESSION_CHARACTERS_MAX = 256
HOST_CHARACTERS_MAX = 256
LABELS_MAX = 16
SCHEMA_BYTES_MAX = 64 << 10
PROGRESS_MESSAGE_BYTES_MAX = 4 << 10
ERROR_DETAILS_BYTES_MAX = 16 << 10

# Numbers of things in one message.
WEIGHT_MAX = 1_000
NAMES_MAX = 1_000
HANDLERS_MAX = 1_000
# A worker sends one settle a frame, or all it has not heard of after its connection broke.
FRAME_SETTLES_MAX = 1_000
MASK_PATHS_MAX = 100
FILTER_HEADERS_MAX = 8
FILTER_QUEUES_MAX = 1_000
ERROR_TYPES_MAX = 100
PAGE_SIZE_MAX = 1_000
PAGE_SIZE_DEFAULT = 100
WINDOW_BYTES_MAX = 1 << 40

# Settings.
MAX_WAITING_MAX = 1_000_000_000
RETENTION_COUNT_MAX = 10_000_000
RETENTION_AGE_MS_MAX = 400 * DAY_MS

# Waiting.
PULL_WAIT_MS_MAX = 60 * SECOND_MS
WAIT_TIMEOUT_MS_MAX = 1 * HOUR_MS
WAIT_TIMEOUT_MS_DEFAULT = 1 * MINUTE_MS
