# Generated from jobline/_asynchronous/groups.py by `make gen`: change that file instead.
"""Groups of a queue, blocking: what operators do with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Unpack, overload

from jobline import _admin_requests as admin_requests
from jobline._admin_requests import PAGE_SIZE
from jobline._arguments import message_of, moment_given
from jobline._blocking.connection import Connection
from jobline._blocking.pages import pages_of
from jobline._group_values import Group, GroupSettings, GroupSettingsHow
from jobline._keywords import spelled_out
from jobline._times import Moment
from jobline.v1 import queue_service_pb2, queue_service_pb2_grpc


class GroupApi:
    """`client.queues.groups`: settings and counts of groups, and what operators do with them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @property
    def _stub(self) -> queue_service_pb2_grpc.QueueServiceStub:
        return self._connection.stub(queue_service_pb2_grpc.QueueServiceStub)

    def list(self, queue: str, prefix: str = "", *, page_size: int = PAGE_SIZE) -> Iterator[Group]:
        """Yields the groups of a queue by name, or those whose name starts with `prefix`. Raises
        QueueNotFound.
        """
        for page in pages_of(
            lambda token: self._connection.read(
                self._stub.ListGroups,
                message_of(
                    queue_service_pb2.ListGroupsRequest,
                    queue=queue,
                    page_size=page_size,
                    page_token=token,
                    name_prefix=prefix,
                ),
            )
        ):
            for group in page.groups:
                yield Group.from_message(group)

    @overload
    def update(
        self, queue: str, group: str, settings: GroupSettings, *, reason: str = ""
    ) -> Group: ...
    @overload
    def update(
        self, queue: str, group: str, *, reason: str = "", **changes: Unpack[GroupSettingsHow]
    ) -> Group: ...
    @spelled_out(GroupSettingsHow)
    def update(
        self,
        queue: str,
        group: str,
        settings: GroupSettings | None = None,
        *,
        reason: str = "",
        **changes: Unpack[GroupSettingsHow],
    ) -> Group:
        """Changes the settings of a group given as keywords, None taking one back to that of its
        queue: `update("mail", "tenant-7", concurrency=2)`; or all of them, to those of a
        `GroupSettings`. Creates the group and its queue if need be.
        """
        request = admin_requests.update_group(queue, group, settings, changes, reason=reason)
        response = self._connection.write(self._stub.UpdateGroup, request)
        return Group.from_message(response.group)

    def pause(self, queue: str, group: str, *, reason: str = "") -> Group:
        """Stops handing out the jobs of a group; pushes go on. Raises QueueNotFound."""
        request = message_of(
            queue_service_pb2.PauseGroupRequest, queue=queue, group=group, reason=reason
        )
        response = self._connection.write(self._stub.PauseGroup, request)
        return Group.from_message(response.group)

    def limit(self, queue: str, group: str, until: Moment | None, *, reason: str = "") -> Group:
        """Hands out no job of a group until a time, such as the end of a 429, and then goes on;
        None lifts the limit. A new time replaces the one before. Raises QueueNotFound.
        """
        request = message_of(
            queue_service_pb2.LimitGroupRequest,
            queue=queue,
            group=group,
            until=moment_given("until", until),
            reason=reason,
        )
        response = self._connection.write(self._stub.LimitGroup, request)
        return Group.from_message(response.group)

    def resume(self, queue: str, group: str, *, reason: str = "") -> Group:
        """Hands out the jobs of a group again. Raises QueueNotFound."""
        request = message_of(
            queue_service_pb2.ResumeGroupRequest, queue=queue, group=group, reason=reason
        )
        response = self._connection.write(self._stub.ResumeGroup, request)
        return Group.from_message(response.group)
