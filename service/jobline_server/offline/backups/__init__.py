"""Backups as files: what one is made of, where it is kept, and how it becomes a data directory.

- `manifest` says what belongs to a backup, with checksums; it is written last, so what has none is
  no backup;
- `places` are directories and URLs that backups are kept in;
- `finishing` makes a backup of a copy: checks it and sends it;
- `choosing` finds those at a place, in their true order, and deletes old ones. `program` is the
  process in which a server has both done: the interpreter that serves calls has no time for it;
- `restoring` makes a data directory of a backup.
"""
