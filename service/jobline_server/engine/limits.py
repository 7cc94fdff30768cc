"""Every limit and default of the engine: name, unit, default, reason.

Queues and jobs may override the defaults of leases, attempts, backoff and retention. Limits of the
transport (message sizes, numbers of calls) belong to the shells that enforce them.
"""

from __future__ import annotations

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

# Ids: `shard << SEQUENCE_BITS | sequence`, so many bits in all that JavaScript reads them exactly.
ID_BITS, SEQUENCE_BITS = 53, 43
SHARDS_DEFAULT = 8
SHARDS_MAX = 1_024
# Ids reserved ahead of use, so that no id is used twice even if its push never reached the disk.
ID_BLOCK = 1 << 24

# Deliveries: `epoch << HANDOUT_BITS | leases of the job in that epoch`.
HANDOUT_BITS = 20
# Epochs count seconds since 2025-01-01 at least, so that a restored backup repeats none.
EPOCH_ZERO_MS = 1_735_689_600_000

# Leases.
LEASE_MS_DEFAULT = 30 * SECOND_MS
LEASE_MS_MIN = 1 * SECOND_MS
LEASE_MS_MAX = 12 * HOUR_MS
# How long a broken stream's jobs wait for its worker to return, never longer than their lease.
DISCONNECT_GRACE_MS = 15 * SECOND_MS
DISCONNECT_GRACE_MS_MAX = HOUR_MS
# The lease wheel's buckets: expiry is noticed within this time.
WHEEL_MS = 1 * SECOND_MS

# Attempts, stalls and releases: three budgets.
MAX_ATTEMPTS_DEFAULT = 3
MAX_ATTEMPTS_MAX = 1_000
MAX_STALLS_DEFAULT = 3
MAX_STALLS_MAX = 1_000
RELEASES_MAX = 1_000
# Places of a worker's window that one job may take: as many as the largest machines have cores.
SLOTS_MAX = 1_000
HISTORY_MAX = 20

# Backoff.
BACKOFF_BASE_MS_DEFAULT = 1 * SECOND_MS
BACKOFF_MAX_DELAY_MS_DEFAULT = 1 * HOUR_MS
BACKOFF_MAX_DELAY_MS_MAX = 24 * HOUR_MS
BACKOFF_DOUBLINGS_MAX = 10
BACKOFF_JITTER_DEFAULT = 0.1
# Pauses in a list: more than anybody writes by hand; jobs of one kind share theirs.
BACKOFF_DELAYS_MAX = 100
DELAY_MS_MAX = 400 * DAY_MS

# Of one attempt; as exact as the lease wheel.
TIMEOUT_MS_MIN = 1 * SECOND_MS
TIMEOUT_MS_MAX = 400 * DAY_MS
# From push. Below a second a TTL is as good as its timers.
TTL_MS_MAX = 400 * DAY_MS

# Ageing. Of more priorities than that a hand-out compares the highest, as half of them, and as many
# others, which change with time.
AGEING_AFTER_MS_MIN = 10
AGEING_AFTER_MS_MAX = 400 * DAY_MS
AGEING_STEP_MAX = (1 << 31) - 1
AGED_PRIORITIES_MAX = 500

# Sizes.
NAME_CHARACTERS_MAX = 256
RESULT_BYTES_MAX = 1 << 20
CHECKPOINT_BYTES_MAX = 64 << 10
# Phases of a job: names, and what all of them may return together. A job with phases has a payload
# that small that both fit into the smallest message of a worker.
PHASES_MAX = 100
PHASE_NAME_CHARACTERS_MAX = 128
PHASE_RESULTS_BYTES_MAX = 1 << 20
# The log of a job: a line counts as its text and about what it takes in memory besides.
LOG_LINES_MAX = 1_000
LOG_BYTES_MAX = 1 << 20
LOG_LINE_BYTES_MAX = 16 << 10
LOG_LINE_EXTRA_BYTES = 100
# Pieces of results, in memory alone: one, those of a job, and those of all jobs; a piece counts as
# its bytes and about what it takes in memory besides. And the jobs whose pieces one caller reads.
PARTIAL_BYTES_MAX = 64 << 10
PARTIALS_JOB_BYTES_MAX = 1 << 20
PARTIALS_BYTES_MAX = 64 << 20
PARTIAL_EXTRA_BYTES = 100
PARTIAL_WAIT_IDS_MAX = 100
# Memory of the schemas that connected workers announce, equal ones counted once: 30,000 of 2 KB.
SCHEMAS_BYTES_MAX = 64 << 20
ERROR_MESSAGE_BYTES_MAX = 4 << 10
ERROR_STACK_BYTES_MAX = 16 << 10
HEADERS_MAX = 64
# Words to filter by: each filter compares those of every job that it reads.
TAGS_MAX = 16
TAG_CHARACTERS_MAX = 128
HEADERS_BYTES_MAX = 8 << 10
JOB_KEY_BYTES_MAX = 256
REQUEST_ID_BYTES_MAX = 64
REASON_CHARACTERS_MAX = 1_024

# Messages. The size that a caller accepts unless it declares more, as gRPC's default; and the room
# that a job may need beside its payload: a checkpoint, headers, names, a key.
MESSAGE_BYTES_DEFAULT = 4 << 20
MESSAGE_BYTES_MAX = 1 << 30
JOB_EXTRA_BYTES = 128 << 10
PHASED_PAYLOAD_BYTES_MAX = MESSAGE_BYTES_DEFAULT - JOB_EXTRA_BYTES - PHASE_RESULTS_BYTES_MAX

# Numbers in one call.
PUSH_JOBS_MAX = 1_000
PUSH_PAYLOADS_MAX = 10_000
PULL_JOBS_MAX = 1_000
SETTLE_ITEMS_MAX = 10_000
SELECTION_IDS_MAX = 10_000
WAIT_IDS_MAX = 10_000
QUEUES_PER_CONSUMER_MAX = 1_000
WINDOW_MAX = 100_000
WINDOW_BYTES_DEFAULT = 64 << 20

# Idempotency.
KEY_WINDOW_MS = 24 * HOUR_MS
REQUEST_WINDOW_MS = 10 * MINUTE_MS
# Keys on disk are grouped by the hour in which they expire.
KEY_BUCKET_MS = 1 * HOUR_MS
# Job keys of all shards together; about 300 bytes of memory each, with the text that its job keeps
# (`benchmarks/keys.py`). At the cap, pushes with job keys are refused. As many unique keys may be
# throttled, which outlive their jobs; about 200 bytes each. Other unique keys live and end with
# their jobs, which have limits of their own.
KEYS_MAX = 5_000_000
# Request ids of all shards together, as large and as long-lived as 1,600 calls a second make them.
REQUEST_IDS_MAX = 1_000_000
# A producer that was not seen for this long is forgotten; its clients repeat for up to 9 minutes.
PRODUCER_WINDOW_MS = 10 * MINUTE_MS
PRODUCER_ID_BYTES = 16
# Calls of one producer on one shard that it has not declared over; clients keep below it.
PRODUCER_CALLS_MAX = 1_024
# How long a unique key may be held, and how long pushes of a series may delay it.
UNIQUE_MS_MIN = 1
UNIQUE_MS_MAX = DELAY_MS_MAX
UNIQUE_KEY_BYTES_MAX = 256
# Producers and their calls, of all shards together; about 300 bytes of memory each.
CALLS_MAX = 1_000_000

# Groups. Jobs of one group that may run at a time: to pause it takes 10 µs for each.
GROUP_CONCURRENCY_DEFAULT = 1
GROUP_CONCURRENCY_MAX = 1_000
# Jobs that wait in one group; sweeping them takes about 5 ms.
GROUP_WAITING_MAX = 100_000
# Groups of all shards together that have live jobs, settings, a pause or a dead head; about 250
# bytes of memory each with its name, and 800 more while several jobs wait in it.
GROUPS_MAX = 1_000_000
# Dependencies. The jobs that one job may depend on, and all that the jobs of one push name.
PARENTS_MAX = 1_000
PUSH_PARENTS_MAX = 10_000
# Jobs that wait for the same one: they are listed in one step, some milliseconds.
DEPENDENTS_MAX = 200_000
# Jobs that wait for others, of all shards together, each as often as it waits for one; up to 900
# bytes of memory each. At the cap, pushes of jobs that depend on others are refused.
DEPENDENCIES_MAX = 1_000_000
BLOCK_TIMEOUT_MS_MAX = DELAY_MS_MAX

# How long a sticky job waits for the session that had its group's last job: 5 s in all, as timers
# look at new ones within 250 ms.
STICKY_MS = 4_750
# Groups of a shard whose last session is known, those that are idle among them; about 200 bytes of
# memory each. Beyond it half of them are forgotten, the oldest ones.
STICKY_GROUPS_MAX = 100_000
# Reserved jobs that are given away in one slice: about 4 µs each.
STICKY_SLICE_JOBS = 1_000
# Fair queues. The share of a tenant, if neither it nor its queue has a weight.
WEIGHT_DEFAULT = 1
WEIGHT_MAX = 1_000
# Tenants of one queue that are idle and used more than others, of which that is remembered; about
# 600 bytes of memory each. Above it, those that are ahead least are forgotten.
TENANTS_AHEAD_MAX = 10_000
# Tenants whose turns one hand-out looks at: about 20 µs each, with a job that is leased.
TENANTS_EXAMINED_MAX = 500
# Live jobs of groups that a queue may have while `fair` is switched, which is one step: 20 ms. Each
# group counts as some jobs more, for the lanes of its tenant.
FAIR_SWITCH_JOBS_MAX = 20_000
FAIR_SWITCH_GROUP_JOBS = 20

# Batches of one shard that are not complete, and complete ones that are kept; about 1.5 KB of
# memory each, and the payloads of their callbacks. Over the second the oldest are forgotten early.
SHARD_BATCHES_MAX = 100_000
SHARD_BATCHES_KEPT_MAX = 100_000
# How long a complete batch is kept.
BATCH_KEPT_MS_DEFAULT = 1 * DAY_MS
# How deep batches nest: an end may be counted in each of them, in one step.
BATCH_DEPTH_MAX = 20
CALLBACK_PAYLOAD_BYTES_MAX = 64 << 10

# Backpressure: the server as a whole.
# Queues of one shard, 200,000 in the 8 of a new store; about 4 KB of memory each, and a list or a
# count of all queues takes 0.3 µs to 1 µs for each.
SHARD_QUEUES_MAX = 25_000
SERVER_WAITING_MAX = 5_000_000
SERVER_WAITING_BYTES_MAX = 4 << 30

# Rates: tokens per period, and the most in store, of a queue or a named limiter.
RATE_MAX = 1_000_000
RATE_PERIOD_MS_DEFAULT = 1 * SECOND_MS
# Below this a bucket would be asked more often than the loop has iterations.
RATE_PERIOD_MS_MIN = 10
RATE_PERIOD_MS_MAX = 31 * DAY_MS
CONCURRENCY_MAX = 1_000_000
# Limiters of one shard, 80,000 in the 8 of a new store; about 1 KB of memory each.
SHARD_LIMITERS_MAX = 10_000
LIMITERS_PER_JOB_MAX = 4
# For how long a worker may limit its queue, group or limiter: others share it, and the quotas
# behind a 429 are renewed within a day. The next worker to meet the limit may say so again.
WORKER_LIMIT_MS_DEFAULT = 1 * DAY_MS
# Schedules of one shard; about 1.5 KB of memory each, and their payloads, which together have at
# most these bytes.
SHARD_SCHEDULES_MAX = 100_000
SCHEDULE_PAYLOAD_BYTES_MAX = 256 << 10
SCHEDULE_BYTES_MAX = 256 << 20
# A run that could not start this long after its time is missed; and how many are made up for.
MISSED_AFTER_MS = 60_000
MISSED_RUNS_MAX = 100
# Webhooks of a server, and the deliveries that wait for one, about 1 KB of memory each; those of
# all have at most these bytes.
WEBHOOKS_MAX = 100
WEBHOOK_PENDING_MAX = 10_000
WEBHOOK_PENDING_BYTES_MAX = 64 << 20
WEBHOOK_TRIES_KEPT = 20
WEBHOOK_SECRET_OVERLAP_MS = 1 * DAY_MS
WEBHOOK_URL_CHARACTERS_MAX = 2_048
# Names, tags and the like that a webhook filters by.
WEBHOOK_FILTERS_MAX = 16
WEBHOOK_SECRET_BYTES_MIN = 24
WEBHOOK_SECRET_BYTES_MAX = 64
# Tokens that one job takes.
COST_MAX = 1_000_000

# Messages between shards. Numbers: `epoch << MESSAGE_NUMBER_BITS | count`, so that they rise from
# one epoch to the next.
MESSAGE_NUMBER_BITS = 32
# One delivery, which has at least one message: some milliseconds of the loop.
DELIVERY_MESSAGES_MAX = 256
DELIVERY_BYTES_MAX = 1 << 20

# Retention of ended jobs.
STALE_AFTER_MS_DEFAULT = 1 * HOUR_MS
STALE_AFTER_DEAD_MS_DEFAULT = 7 * DAY_MS
DELETE_AFTER_MS_DEFAULT = 1 * HOUR_MS
# The newest completed jobs of a queue are kept beyond `STALE_AFTER_MS_DEFAULT`, so that operators
# find recent ones in a quiet queue.
KEEP_NEWEST = 1_000
# Completed jobs of a queue beyond this number are deleted whatever their age: at a million per
# second, an hour of them would fill any disk.
COMPLETED_KEPT_MAX = 100_000
DEAD_KEPT_BYTES_MAX = 1 << 30
# Dead jobs that are put back by themselves: not before somebody had time to repair what they died
# of, and not without end.
AUTO_RETRY_FIRST_DELAY_MS_DEFAULT = 1 * HOUR_MS
AUTO_RETRY_FIRST_DELAY_MS_MAX = 30 * DAY_MS
AUTO_RETRIES_DEFAULT = 3
AUTO_RETRIES_MAX = 20

# How long operations of operators are kept, and how many: 500 bytes each, and up to 60 KiB where a
# cancel of scattered jobs can be undone.
OPERATIONS_KEPT_MS = 90 * DAY_MS
OPERATIONS_KEPT_MAX = 100_000
# Runs of neighbouring jobs that an operation keeps to undo a cancel: some 10 bytes each.
OPERATION_RUNS_MAX = 4_096

# A queue with default settings is deleted when it was empty for this long.
EMPTY_QUEUE_MS = 1 * HOUR_MS

# Work done in one slice, so that the loop is never blocked for more than 20 ms; due jobs cost most.
SLICE_ITEMS = 2_000
SLICE_DUE = 1_000
# BLOCKED jobs that are told of the end of a job: 10 µs each at most. The first few are told in the
# commit of that end.
SLICE_DEPENDENTS = 500
DEPENDENTS_AT_ONCE = 100
# Batches whose callbacks are pushed: 100 µs each at most. The first few go in the commit of the end
# that decides them.
SLICE_BATCHES = 100
BATCHES_AT_ONCE = 20
SLICE_BATCHES_FORGOTTEN = 1_000
# Jobs that were BLOCKED for too long.
SLICE_TIMEOUTS = 500
# Jobs whose outcomes are looked up together because others wait for them.
SLICE_LOOK_UPS = 1_000
# Keys that are forgotten in one slice: about 5 ms.
SLICE_KEYS = 5_000
# Single jobs and runs in one lease: about 5 µs each.
LEASE_SLICE_ITEMS = 1_000
# An expired lease costs about 10 µs; one that is only examined, 0.5 µs.
LOST_SLICE_JOBS = 1_000
EXAMINED_SLICE_LEASES = 10_000
# Jobs whose TTL ends, expired before a lease: 0.5 ms. Timers do the rest.
EXPIRED_LEASE_JOBS = 100
# An attempt that times out costs about 20 µs, as a failed one.
TIMEOUT_SLICE_JOBS = 500
# Leases listed in one step, when a worker returns or says goodbye.
HELD_SLICE_LEASES = 5_000
