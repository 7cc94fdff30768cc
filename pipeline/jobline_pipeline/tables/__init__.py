"""The tables, one module each: `TABLE` says what it has, `make` makes its rows.

`make` is a pure function DataFrame → DataFrame: no clock, no path, no state; batches and streams
call the same ones. It begins and ends with `select`, and names its columns as `TABLE` does. Which
rows it is given, and where its rows go, is the business of `ingest`.
"""
