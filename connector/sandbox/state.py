"""Records the running servers in a stack's folder, so that another process can find and stop them."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from connector.errors import SandboxError
from connector.sandbox.mysqld import PASSWORD_FILE
from connector.sandbox.process import Process

_FILE = "stack.json"
_STOP_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A started server: its process, its addresses, and the signal that stops it."""

    name: str
    process: Process
    address: str
    port: int
    folder: str
    log: str
    stop_signal: int

    @property
    def where(self) -> str:
        """The server's address, and the file with the administrator's password if the address has none."""
        file = Path(self.folder, PASSWORD_FILE)
        return f"{self.address}  password in {file}" if file.exists() else self.address

    def stop(self) -> bool:
        """Stop the server by its PID, if that is still the same process; return False if it had ended."""
        if not self.process.running:
            return False
        self.process.signal(signal.Signals(self.stop_signal))
        deadline = time.monotonic() + _STOP_TIMEOUT
        while self.process.running and time.monotonic() < deadline:
            time.sleep(0.05)
        self.process.signal(signal.SIGKILL)
        return True


def load(folder: Path) -> list[RunningServer]:
    """Return the servers that were started in `folder`; none if there is no record.

    Raises:
        SandboxError: the record is damaged.
    """
    file = folder / _FILE
    if not file.exists():
        return []
    try:
        entries = json.loads(file.read_text())["servers"]
        return [RunningServer(**{**entry, "process": Process(**entry["process"])}) for entry in entries]
    except (ValueError, LookupError, TypeError) as error:
        raise SandboxError(
            "the record of the sandbox's servers is damaged",
            hint="end those that run by their process IDs (ps shows their folder), then delete the file",
            file=str(file),
        ) from error


def save(folder: Path, servers: Sequence[RunningServer]) -> None:
    """Replace the record atomically."""
    new = folder / f"{_FILE}.new"
    new.write_text(json.dumps({"servers": [asdict(server) for server in servers]}, indent=2) + "\n")
    new.replace(folder / _FILE)
