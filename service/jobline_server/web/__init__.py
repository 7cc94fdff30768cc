"""The web room: the HTTP port beside gRPC, for those who watch the server rather than use it.

Metrics for a scraper, two health pages for a load balancer, a page for a person who found the port.
It reads what the runtime counts anyway, and knows no way to change anything.
"""
