"""Who runs this process: for what is noted in a target."""

from __future__ import annotations

import os
import pwd
import socket


def who() -> str:
    """`user@host`, of the operating system."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container's user without a name
        user = str(uid)
    return f"{user}@{socket.gethostname()}"
