"""Limits that are reached; public as `jobline.errors`."""

from __future__ import annotations

from jobline._base_errors import _Refused


class ResourceExhausted(_Refused):
    """A limit is reached; nothing was stored. Try again after `retry_after`."""

    retryable = True


class QueueFull(ResourceExhausted):
    """The queue has reached its limit of waiting jobs."""


class ClientRateExceeded(ResourceExhausted):
    """This client pushes more jobs in a time than the server lets one push."""


class GroupFull(ResourceExhausted):
    """The group has reached its limit of waiting jobs."""


class GroupsFull(ResourceExhausted):
    """The server has reached its limit of groups."""


class SchedulesFull(ResourceExhausted):
    """There are as many schedules, or payload bytes of them, as there may be."""


class WebhooksFull(ResourceExhausted):
    """There are as many webhooks as there may be."""


class LimitersFull(ResourceExhausted):
    """There are as many limiters as there may be."""


class BatchesFull(ResourceExhausted):
    """There are as many batches as there may be."""


class ServerFull(ResourceExhausted):
    """The server has reached its limit of waiting jobs or bytes."""


class KeysFull(ResourceExhausted):
    """The server has reached its limit of job keys, request ids or calls of producers."""


class DiskFull(ResourceExhausted):
    """The server's disk is full; acks go on."""


class TooManyCalls(ResourceExhausted):
    """As many watchers, streams or waiters as the server serves."""


class BufferFull(ResourceExhausted):
    """This client's own buffer of pushes is full: the server is slower than the callers."""


class TooLarge(ResourceExhausted):
    """The message or the batch is larger than the limit; the same call never succeeds."""

    retryable = False


# Where they are public: so tracebacks, pickles and `help` name them.
for _public in (ResourceExhausted, *ResourceExhausted.__subclasses__()):
    _public.__module__ = "jobline.errors"
