"""Jobs and effects in the user's own database, each exactly once: SQLite and PostgreSQL.

Two tables, for the two ends of a job:

- `Outbox`: a job is written in the transaction of the program, and pushed if that commits. A
  `Relay` pushes the rows under their ids as job keys, so a relay that is killed pushes none twice.
- `Fence`: a handler writes in a transaction that passes only for the newest delivery of its job,
  and once: what a killed worker had committed is not done again.

They take connections of sqlite3, psycopg and other drivers by DB-API, of SQLAlchemy and of Django,
which are not imported here.
"""

from jobline.outbox._fence import Fence, Fenced, fence
from jobline.outbox._outbox import Outbox, OutboxRow, OutboxStats
from jobline.outbox._relay import Relay
from jobline.outbox._relayed import Relayed

__all__ = ["Fence", "Fenced", "Outbox", "OutboxRow", "OutboxStats", "Relay", "Relayed", "fence"]
