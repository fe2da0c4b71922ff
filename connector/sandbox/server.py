"""The shape that every server of the sandbox has."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from connector.sandbox.program import Program


class Server(Protocol):
    """A real server on loopback with data in one folder.

    `start` returns when it answers; again after `stop` or `kill` it comes up on the same port with the same data.
    `stop` is clean and falls back to SIGKILL; `kill` is `kill -9`. Both return when the process is gone, and do
    nothing when it is.
    """

    folder: Path
    port: int
    program: Program

    @property
    def name(self) -> str:
        """The kind of server."""
        ...

    @property
    def host(self) -> str:
        """The address on which it listens."""
        ...

    @property
    def pid(self) -> int | None:
        """Its process id; None before the first start."""
        ...

    def start(self) -> None:
        """Start it and wait until it answers; SandboxError when it does not."""
        ...

    def stop(self) -> None:
        """End it cleanly."""
        ...

    def kill(self) -> None:
        """End it at once."""
        ...
