"""What each push has of its own beside its payload, as columns of a request. Pure.

Headers differ from push to push where a program traces, and so do job keys; all else that pushes
have is mostly the same. So headers are taken out of the options, and pushes that have nothing else
of their own share one call, and one lot at the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from jobline._arguments import (
    headers_given,
    list_given,
    ordered_given,
    refuse,
    refuse_field,
    text_given,
)
from jobline._new_job import NewJob, key_of, unique_key_of
from jobline._options import (
    NO_OPTIONS,
    JobOptions,
    OptionsHow,
    has_headers_alone,
    with_keywords,
    without_headers,
)
from jobline._push.batch import Headers
from jobline._push.batching import HEADER_KEYS_MAX
from jobline.v1 import job_pb2
from jobline.v1 import job_service_pb2 as pb


def options_and_own(
    options: JobOptions | None, keywords: OptionsHow, function: str
) -> tuple[JobOptions | None, Headers | None, str]:
    """Returns options and keywords merged, and the headers of both and the group apart, "" without
    one. Raises TypeError for an unknown keyword.
    """
    given, group = keywords.pop("headers", None), keywords.pop("group", None)
    if keywords or options is not None:
        options = with_keywords(options, keywords, function)
    elif group is None and given is not None:
        # A trace in every push: nothing else needs a look.
        headers = headers_given(given)
        return (None, headers, "") if fit_columns(headers) else (*headers_apart(None, headers), "")
    own = None if group is None else text_given("options.group", group)
    options, apart = group_apart(options)
    return *headers_apart(options, None if given is None else headers_given(given)), own or apart


def group_apart(options: JobOptions | None) -> tuple[JobOptions | None, str]:
    """Returns options without their group, and the group."""
    if options is None or not options.group:
        return options, ""
    bare = options.replaced(group=None)
    return None if bare == NO_OPTIONS else bare, options.group


def headers_apart(
    options: JobOptions | None, headers: Headers | None = None
) -> tuple[JobOptions | None, Headers | None]:
    """Returns options without headers, and the headers of a push: those of its options and, over
    them, those that it was given. Headers that no column can hold stay in the options.
    """
    if options is not None and options.headers is not None:
        if headers is None:
            headers = options.headers
        elif headers:
            headers = {**options.headers, **headers}
        options = without_headers(options)
    if headers is None or fit_columns(headers):
        return None if options is NO_OPTIONS else options, headers
    return (options or NO_OPTIONS).replaced(headers=headers), None


def fit_columns(headers: Headers) -> bool:
    """Returns whether columns can hold these headers: in a column, "" is no value."""
    return len(headers) <= HEADER_KEYS_MAX and "" not in headers and "" not in headers.values()


def columns_of_jobs(
    jobs: Iterable[NewJob],
) -> tuple[list[Headers | None], list[str], list[str]] | None:
    """Returns headers, job keys and unique keys of the jobs of one call, each in the order of the
    jobs; None if some have more than that of their own.
    """
    headers: list[Headers | None] = []
    keys: set[str] = set()
    job_keys, unique_keys = [], []
    for job in jobs:
        options = job.options
        if job.delay is not None or job.run_at is not None or job.depends_on_indexes:
            return None
        own = None
        if options is not None:
            own = options.headers
            if not has_headers_alone(options) or (own is not None and not fit_columns(own)):
                return None
        if own is not None:
            keys.update(own)
        headers.append(own)
        job_keys.append(key_of(job.job_key))
        unique_keys.append(unique_key_of(job.unique_key))
    return (headers, job_keys, unique_keys) if len(keys) <= HEADER_KEYS_MAX else None


def put_payloads(request: pb.PushRequest, payloads: Iterable[bytes]) -> None:
    """Puts plain payloads into a request. Raises InvalidArgument if they are no list of bytes."""
    entries = list_given("payloads", payloads)
    try:
        request.payloads.extend(entries)
    except TypeError:
        refuse("payloads", "must be a list of bytes; push_many() takes what has JSON, too")


def put_headers(request: pb.PushRequest, headers: Sequence[Headers | None]) -> None:
    """Puts the headers of all jobs into a request: those that all have with the same value into the
    shared options, any other into a column.
    """
    first = headers[0]
    if headers.count(first) == len(headers):
        if first is not None:
            _share(request, first)
        return
    shared: dict[str, str] = {}
    for key in dict.fromkeys(chain.from_iterable(own for own in headers if own)):
        values = [own.get(key, "") if own else "" for own in headers]
        if values.count(values[0]) == len(values):
            shared[key] = values[0]
        else:
            request.header_columns.add(key=key, values=values)
    if shared:
        _share(request, shared)


def _share(request: pb.PushRequest, headers: Headers) -> None:
    request.options.SetInParent()
    try:
        request.options.headers.update(headers)
    except (TypeError, ValueError):
        refuse_wrong_headers([headers])
        raise


def refuse_wrong_headers(headers: Iterable[Headers | None]) -> None:
    """Raises InvalidArgument for the first headers that are no text; a column would name none."""
    for own in headers:
        refuse_field(job_pb2.JobOptions, {"headers": own}, path="options.")


def put_keys(request: pb.PushRequest, job_keys: Sequence[str], unique_keys: Sequence[str]) -> None:
    """Puts the job keys and unique keys of all jobs into a request, if any has one."""
    if any(job_keys):
        request.job_keys.extend(job_keys)
    if any(unique_keys):
        request.unique_keys.extend(unique_keys)


def put_columns(
    request: pb.PushRequest,
    groups: Iterable[str | None] | None,
    unique_keys: Iterable[str | None] | None,
) -> None:
    """Puts what a caller gives for each payload into a request. Raises InvalidArgument."""
    put_groups(request, column_given("groups", groups))
    put_keys(request, (), column_given("unique_keys", unique_keys))


def column_given(field: str, values: Iterable[str | None] | None) -> list[str]:
    """Returns a column as it is sent, "" for None. Raises InvalidArgument for what is no text."""
    listed = () if values is None else ordered_given(field, values)
    return [
        "" if value is None else text_given(f"{field}[{index}]", value)
        for index, value in enumerate(listed)
    ]


def put_groups(request: pb.PushRequest, groups: Sequence[str]) -> None:
    """Puts the groups of all jobs into a request, if any has one."""
    if any(groups):
        request.groups.extend(groups)
