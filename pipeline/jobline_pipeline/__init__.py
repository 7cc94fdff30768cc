"""The history of a Jobline server as tables, on Spark and Delta Lake.

The server exports each change of state as a row of Parquet. This package makes tables of them, in
three layers, and answers from the tables: what is late, what fails and why, how many workers are
needed.

    events (Parquet) ──▶ bronze: events ──▶ silver: attempts, jobs, open_jobs ──▶ gold: one table
                         as they came,      filters of events, no join            per question
                         without repeats

| module | |
|---|---|
| `schemas` | the contract of the exported files |
| `tables/` | one module per table: a function DataFrame → DataFrame, and its schema |
| `history` | lists exported files, drops repeated ones, sets bad ones apart |
| `ingest`, `stream` | what one batch of files does to the tables, and the loop around it |
| `session`, `java`, `jars` | where Spark, Java and Delta come from |
| `commands/` | the command line, one file per command |

It reads files and writes tables. It never calls a server, but in `source/` and `replay`.
"""
