"""Web: the HTTP port beside gRPC, for monitoring.

It serves metrics for a scraper, two health pages for a load balancer, and a landing page. It reads
counts that the runtime keeps anyway, and has no way to change anything.
"""
