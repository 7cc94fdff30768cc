"""Makes a history up: files by the contract of `schemas`, as a server would have exported them.

The load looks like that of a company: arrivals follow the hours of the day, service times have a
heavy tail, one deploy makes a job slower, some queues have bursts of failures, some jobs form flows
and batches. The same seed gives the same rows.

| module | |
|---|---|
| `load` | which queues there are, and how much of each when |
| `columns` | the columns of events and jobs |
| `lives`, `handouts` | lives of jobs in columns: pushes, hand-outs, endings |
| `files` | rows of events as Parquet |
| `run` | shards in parallel |

Everything is a column of numpy; no loop goes over jobs.
"""
