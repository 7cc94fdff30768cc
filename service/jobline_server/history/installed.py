"""Says what a URL needs that is not installed, before anything is sent there.

No library of a store is loaded for that: it takes half a second, and memory that a server whose
backups another process makes has no use for.
"""

from __future__ import annotations

from importlib.util import find_spec

_S3 = frozenset({"s3", "s3a"})


def check_installed(url: str) -> None:
    """Raises `ImportError`, whose message says what to install, or `ValueError` if no library is
    for such a URL. The message does not have the URL.
    """
    for protocol in _protocols_of(url):
        _check_protocol(protocol)


def _protocols_of(url: str) -> list[str]:
    """Returns those of a URL of fsspec, which may be a chain: `simplecache::s3://bucket`."""
    return [part.partition("://")[0] for part in url.split("::")]


def _check_protocol(protocol: str) -> None:
    if protocol in _S3:
        if find_spec("fsspec") is None or find_spec("s3fs") is None:
            raise ImportError(_extra("s3"))
        return
    if find_spec("fsspec") is None:
        raise ImportError(f"needs fsspec, and its package for {protocol}: pip install fsspec")
    # A directory needs none.
    from fsspec.registry import get_filesystem_class, known_implementations  # noqa: PLC0415

    known = known_implementations.get(protocol)
    package = known["class"].partition(".")[0] if known else "fsspec"
    if package != "fsspec":
        if find_spec(package) is None:
            raise ImportError(f"needs {package}: pip install {package}")
        return
    try:
        get_filesystem_class(protocol)
    except ImportError as error:
        missing = getattr(error.__cause__, "name", None)
        how = f": pip install {missing}" if missing else ""
        raise ImportError(f"needs what is not installed ({error}){how}") from None
    except ValueError:
        raise ValueError(
            f"{protocol} is no protocol that fsspec knows, as s3 and gs are; a directory is given "
            "by its path"
        ) from None


def _extra(name: str) -> str:
    # It loads gRPC, which the process that finishes backups does not need.
    from jobline._installing import how_to_install  # noqa: PLC0415

    return f"needs the extra {name}: install it {how_to_install('jobline-server', name)}"
