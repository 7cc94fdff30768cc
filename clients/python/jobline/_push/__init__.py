"""Pushing, as both clients do it: what is sent, when, and under which number.

Concurrent single pushes share calls (`batching`). `messages` turns arguments into requests and
replies into values, `push_middleware` passes jobs through what a program wraps around its pushes,
`calls` and `producers` number calls so that the server recognises a repeated one.

Nothing here sends anything: the `pusher` of each client does. Only `producers` knows a lock.
"""
