"""Who may make which call: authenticates callers, and asks their roles, before a handler runs.

`rules` is the table: for each method the verb that it needs, and how the queues are found that it
touches. `guarding` wraps handlers, once, when the table of handlers is made; without the setting
`auth` nothing of this room is loaded, and no handler is wrapped.

A job of a queue that a caller may not see is for this caller a job that does not exist: both get
the same reply, which is made here, so it cannot differ.
"""
