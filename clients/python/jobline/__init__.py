"""Jobline's Python client: push jobs, work on them, wait for results, operate a server.

Everything public is imported from here; the modules behind it may move. `jobline.v1` has the
generated messages and stubs of the protocol.

    from jobline import Client, Worker, job

    @job(queue="mail", max_attempts=5)
    def welcome(to: str) -> None: ...

    with Client("localhost:7070") as client:
        welcome.push(client, "a@b.c")

    Worker("localhost:7070", [welcome]).run()

The package needs grpcio and protobuf and nothing else. Its rooms, from the bottom:

- values that people write and read: `_options`, `_filters`, `_queue_values`, `_job_values`,
  `_server_values`, `errors`;
- pure parts without threads, loops or sockets: `_push`, `_stream`, `_requests`, `_admin_requests`,
  `_handlers`, `_typed_json`;
- the two clients that send what those make: `_asynchronous`, and `_blocking`, generated from it;
- `_worker`, which runs jobs, and `cli`, the command line.
"""

# As in `typing`, whose import is half of the time until the command line takes Ctrl-C for itself.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from jobline._public import *  # noqa: F403  # they list what is public
    from jobline._public_errors import *  # noqa: F403
else:
    # A program that needs the protocol alone, such as the server, imports `jobline.v1` without
    # the client, which would double what the server loads at its start.
    def __getattr__(name):
        if name.startswith("_") and name not in {"__all__", "__version__"}:
            raise _nothing(name)
        from jobline import _public  # noqa: PLC0415

        if name not in globals():  # a module, such as `errors`, is there by now
            if not hasattr(_public, name):
                raise _nothing(name)
            globals()[name] = getattr(_public, name)
        return globals()[name]

    def __dir__():
        return [*__getattr__("__all__"), "errors", "v1"]

    def _nothing(name):
        return AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
