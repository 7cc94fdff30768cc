"""How messages say that something is to be installed.

Neither `jobline` nor `jobline-server` is on PyPI yet: they come from a checkout, as README.md says.
Here is what to change when they are.
"""

from __future__ import annotations

from typing import Literal

Package = Literal["jobline", "jobline-server"]


def how_to_install(package: Package, extra: str) -> str:
    """Returns the end of a sentence, behind "install it": where, and by which command. Both
    packages in one command, or pip looks for the client on PyPI.
    """
    if package == "jobline":
        what = f"'./clients/python[{extra}]'"
    else:
        what = f"'./clients/python[cli]' '.[{extra}]'"
    return f"in a checkout of Jobline: pip install {what}"
