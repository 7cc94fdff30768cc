"""Offline: looks at the files of a store that no server has open, and changes nothing in them.

- `opening` finds the files, takes the lock of the directory, and opens databases for reading; what
  cannot be read at all is refused, with a sentence and a kind;
- `checks`, `journal_checks` and `ended_checks` yield what they found, one thing after another, and
  go on after damage;
- `contents` says what is in the files.

Everything streams: memory does not grow with the number of jobs. It is a room of its own because it
knows the store's files, as `app` does, and wants neither loop nor runtime.
"""
