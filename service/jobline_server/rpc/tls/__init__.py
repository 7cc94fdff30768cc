"""TLS in front of the native transport, which has none.

A door takes the connections of a port, and passes the decrypted bytes on to a socket of the native
transport, in a folder of the server's own (`door`). Of a crowd of connections it begins with a few
at a time (`handshakes`). On the way each call gets a header that says which connection it came by
(`marks`), so that handlers know the caller's address and certificate (`callers`).
"""
