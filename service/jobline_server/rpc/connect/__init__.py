"""Connect: the unary calls of all services over plain HTTP, beside gRPC.

One handler serves every method, by its descriptor, in the unary shape of the Connect protocol
(https://connectrpc.com/docs/protocol): the path is the method's, the body one message, binary or as
protobuf's JSON. It makes bytes of the message and calls the same guarded handler as gRPC does, so
checks, refusals, bounds, rates, counts and the audit log are the same.

Nothing here knows a socket, and no method is named: `web` reads bodies and writes replies.
"""
