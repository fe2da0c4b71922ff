"""The interface of every server of the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from connector.sandbox.program import Program


class Server(Protocol):
    """A real server on loopback with data in one folder.

    `start` returns when the server answers; after `stop` or `kill` it starts on the same port with the same data.
    `stop` shuts down cleanly, and sends SIGKILL if that fails; `kill` sends SIGKILL at once. Both return when the
    process has ended, and do nothing if it has ended already.
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
        """The process ID; None before the first start."""
        ...

    def start(self) -> None:
        """Start the server and wait until it answers; raise SandboxError if it does not."""
        ...

    def stop(self) -> None:
        """Shut the server down cleanly."""
        ...

    def kill(self) -> None:
        """Kill the server."""
        ...
