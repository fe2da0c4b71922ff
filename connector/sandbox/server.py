"""A server of the sandbox: one program on loopback, with a folder and a port."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from connector.sandbox.ports import free_port
from connector.sandbox.program import Program, wait_until
from connector.sandbox.settings import HOST


class Server(ABC):
    """A real server on loopback with data in one folder; as a context it runs until the end of the block.

    `start` returns when the server answers; after `stop` or `kill` it starts on the same port with the same data.
    `stop` shuts down cleanly, and sends SIGKILL if that fails; `kill` sends SIGKILL at once. Both return when the
    process has ended, and do nothing if it has ended already.

    A subclass sets `program`, and says when it answers.

    Args:
        folder: folder for data, configuration and log; existing data is used again.
        port: TCP port; by default a free one, chosen once for this object.
    """

    name: str  # the kind of server
    host = HOST  # the address on which it listens
    start_timeout: ClassVar[float]  # seconds
    program: Program

    def __init__(self, folder: Path, port: int | None) -> None:
        self.folder = folder.absolute()
        self.port = port or free_port()

    @abstractmethod
    def answers(self) -> bool:
        """Return True if the running server is ready."""

    def prepare(self) -> None:  # noqa: B027 (not every server needs it)
        """Make what the program needs before each start; the first time, its data folder.

        Raises:
            SandboxError: the data folder cannot be made.
        """

    @property
    def pid(self) -> int | None:
        """The process ID; None before the first start."""
        return self.program.pid

    def start(self) -> None:
        """Start the server and wait until it answers.

        Raises:
            SandboxError: it does not.
        """
        self.prepare()
        self.program.start()
        wait_until(self.program, self.answers, timeout=self.start_timeout)

    def stop(self) -> None:
        """Shut the server down cleanly."""
        self.program.stop()

    def kill(self) -> None:
        """Send SIGKILL to the server."""
        self.program.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
