"""The worker's stream as a protocol: which frame to send next, and what a received frame means.

`session` is the state machine. It keeps what must survive a broken connection: `settles` that the
server has not confirmed, and `reports` that it has not seen. `heartbeat` decides when a frame is
due and when the server has been silent for too long; `frames` are the values that frames become.

Everything here is pure: no socket, no thread, no clock. `jobline._worker` owns the connection.
"""
