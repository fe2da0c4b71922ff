"""Lists the events of a relay, for `thl list --relay` and `thl index --relay`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from connector.errors import ConfigError
from connector.inspect.formats.tungsten import time_of
from connector.inspect.thl_events.attempts import Attempt
from connector.inspect.thl_events.choice import Choice
from connector.inspect.thl_events.decoding import header_of
from connector.inspect.thl_events.log import Listed, listed
from connector.log.ids import Epoch, Seqno
from connector.relay.folder import warn_of_checksum
from connector.relay.reader import RelayReader, TrappedEvents, WholeEvent


def relay_events(folder: Path, topic: str, choice: Choice, *, checksums: bool = True) -> Iterator[Listed]:
    """Yield the chosen fragments of whole events, as `LogList.events` does for those on Kafka.

    Args:
        folder: the relay.
        topic: the event topic, for errors.
        choice: the choice.
        checksums: False: fragments and records with a wrong checksum are listed, with a warning.

    Raises:
        ConfigError: the folder has no relay, or it does not have the one event that is named.
        LogDamaged: an event is missing before a later one, or a file is damaged.
    """
    relay = RelayReader(folder, checksums=checksums)
    low, high = choice.bounds(lambda: (relay.oldest, relay.newest))
    found = False
    for event in relay.events(Seqno(max(low or 0, relay.oldest)), None if high is None else Seqno(high)):
        if isinstance(event, TrappedEvents) or not choice.includes(attempt := _attempt(event, topic)):
            continue
        found = True
        for at in event.wrong:
            warn_of_checksum(event.file.path, at, event.last.seqno)
        messages = ((one.fragment.offset, one.fragment.value) for one in relay.of_event(event))
        for fragment in listed(topic, attempt.partition, messages, voided=False, checksums=checksums):
            yield replace(fragment, file=event.file.name)
        if choice.gtid is not None:
            return
    if choice.one and not found:
        raise ConfigError(
            "the relay does not have the event", hint="thl index --relay shows its seqnos", folder=str(folder)
        )


@dataclass(frozen=True, slots=True)
class RelayEntry:
    """A file of a relay with its events.

    Args:
        file: its name.
        first, last: its first and its last event.
        epoch: of the first one.
        commit_time: of the first one, µs since 1970 UTC.
        size: bytes up to the end of the last one.
    """

    file: str
    first: Seqno
    last: Seqno
    epoch: Epoch
    commit_time: int
    size: int

    def as_line(self) -> str:
        """A line as Tungsten prints a file; then epoch and time."""
        time = time_of(self.commit_time)
        return f"LogIndexEntry {self.file}({self.first}:{self.last}) epoch {self.epoch} from {time}"

    def as_object(self) -> dict[str, object]:
        """The entry for JSON."""
        return {
            "file": self.file,
            "firstSeqno": self.first,
            "lastSeqno": self.last,
            "epoch": self.epoch,
            "time": time_of(self.commit_time),
            "bytes": self.size,
        }


def relay_entries(folder: Path) -> Iterator[RelayEntry]:
    """Yield the files that have events, in order; every checksum is compared.

    Raises:
        ConfigError: the folder has no relay.
        LogDamaged: an event is missing before a later one, or a file is damaged.
    """
    relay = RelayReader(folder)
    for file in relay.files:
        first = last = None
        for event in relay.of_file(file):
            if isinstance(event, WholeEvent):
                first, last = first or event, event
        if first is not None and last is not None:
            begins = first.last
            yield RelayEntry(file.name, begins.seqno, last.last.seqno, begins.epoch, begins.commit_time, last.end)


def _attempt(event: WholeEvent, topic: str) -> Attempt:
    first, last = event.first, event.last
    ending = header_of(last.value, f"{topic}-{last.partition}@{last.offset}")
    return Attempt(last.partition, last.seqno, last.epoch, first.offset, last.offset, ending, None)
