"""Errors of the HTTP port, apart from it: who reports them need not load what it is made of."""


class CannotListen(Exception):
    """The HTTP port is not free."""
