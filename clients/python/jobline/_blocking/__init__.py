"""The blocking client. It uses gRPC's blocking channel and no event loop, so it works in every
thread, in notebooks and inside other frameworks; threads that push at the same time share
calls.

All but `connection` and `pusher` is generated from `jobline._asynchronous` (`make gen`).
"""
