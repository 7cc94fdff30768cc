"""Web: the HTTP port beside gRPC, for monitoring and for callers without gRPC.

It serves metrics for a scraper, two health pages for a load balancer, and a landing page, all from
counts that the runtime keeps anyway. Calls go to a handler that `app` passes in: this room reads
their bodies and writes their replies, within bounds on connections, bytes and time, and knows no
method and no message.
"""
