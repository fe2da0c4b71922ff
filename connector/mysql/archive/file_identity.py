"""Distinguishes binary log files of the same name by their first events."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Final

from connector.clock import Clock
from connector.config.source import Source
from connector.errors import CorruptBinlog, HistoriesDiffer, SourceUnavailable
from connector.log.gtid.source_gtids import Gtids, parse_gtids
from connector.log.rules import NEW_LOG
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.archive.archived_log import beginning_gtids, previous_gtids, second_event, within
from connector.mysql.binlog.frames import PacketFrames
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile
from connector.mysql.binlog.raw import RawEvents
from connector.mysql.server.dump import open_stream

TIME: Final = 4  # bytes of the time at an event's start
READ: Final = 0.2
PATIENCE: Final = 30.0  # seconds for a server to send a file's first events
RESET: Final = (
    "was the source reset (RESET BINARY LOGS AND GTIDS, RESET MASTER) or restored? the log lacks what the source wrote "
    f"since: {NEW_LOG}"
)


@dataclass(frozen=True, slots=True)
class FileBeginning:
    """Facts from the first events of a file.

    Args:
        created: creation time, seconds since 1970 UTC.
        previous: GTIDs of all files before it; None if the log had none.
    """

    created: int
    previous: Gtids | None


def beginning_on_server(source: Source, file: str, clock: Clock, service: str) -> FileBeginning:
    """Reads the beginning of a file on the server.

    Raises:
        SourceUnavailable: the server does not answer.
        PreflightError: it does not send the file.
    """
    start = SourcePosition(file, len(MAGIC))
    frames = PacketFrames()
    raw = RawEvents(frames, file, start.offset)
    beginning = b""
    give_up = clock.monotonic() + PATIENCE
    with closing(open_stream(source, start, clock, service=service)) as stream:
        while clock.monotonic() < give_up:
            beginning += b"".join(events for name, events in raw.drain() if name == file)
            if (second := second_event(beginning)) is not None:
                gtids = beginning_gtids(second, checksums=raw.checksums)
                return FileBeginning(int.from_bytes(beginning[:TIME], "little"), gtids)
            frames.receive(stream, READ)
    raise SourceUnavailable(f"the source did not send the beginning of a file in {PATIENCE:.0f} s", file=file)


def beginning_in_archive(file: LogFile) -> FileBeginning:
    """Reads the beginning of an archived file.

    Raises:
        ConfigError, CorruptBinlog: it cannot be read, or is too short.
    """
    first = bytearray(len(MAGIC) + TIME)
    with closing(LogBytes(file)) as source:
        filled = 0
        while filled < len(first) and (got := source.receive(memoryview(first)[filled:], 0)):
            filled += got
    if filled < len(first):
        raise CorruptBinlog("the file ends before its format description", file=file)
    return FileBeginning(int.from_bytes(first[len(MAGIC) :], "little"), previous_gtids(file))


def check_beginning(position: PositionRecord, found: FileBeginning) -> None:
    """Checks that a file is the file of a position.

    Raises:
        HistoriesDiffer: it is another file of that name.
    """
    if position.created and position.created != found.created:
        raise HistoriesDiffer(
            "the source's binary log was replaced: a file that was read exists again, begun at another time",
            hint=RESET,
            file=position.resume.file,
            begun=found.created,
            was_begun=position.created,
        )
    known = parse_gtids(position.gtid_set) if position.gtid_set is not None else None
    if known is not None and found.previous is not None and not within(found.previous, known):
        raise HistoriesDiffer(
            "the source's binary log was replaced: it has transactions before the file read last that the log lacks",
            hint=RESET,
            file=position.resume.file,
            before=found.previous,
        )
