"""A relay as a test writes and reads it."""

from __future__ import annotations

from pathlib import Path

from connector.clock import Clock, SystemClock
from connector.config.model import Config
from connector.log.ids import Seqno
from connector.relay.reader import RelayReader, TrappedEvents
from connector.relay.writer import RelayWriter

EVER = 1e9  # seconds: no file is deleted
SMALL = 2000  # bytes of a file: a few events of one row


def writer(folder: Path, *, size: int = SMALL, retention: float = EVER, clock: Clock | None = None) -> RelayWriter:
    return RelayWriter(folder, max_file_bytes=size, retention=retention, clock=clock or SystemClock())


def seqnos(folder: Path) -> list[int]:
    """The whole events of a relay from its oldest file on, those that are passed over left out."""
    relay = RelayReader(folder)
    return [one.last.seqno for one in relay.events(relay.oldest) if not isinstance(one, TrappedEvents)]


def values(folder: Path, first: int = 0) -> list[bytes]:
    """The messages of a relay's events from one on."""
    found = RelayReader(folder).fragments(Seqno(first))
    return [one.fragment.value for one in found if not isinstance(one, TrappedEvents)]


def names(folder: Path) -> list[str]:
    """The names of the files."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("thl.data"))


def config(service: str = "shop") -> Config:
    return Config(service=service)
