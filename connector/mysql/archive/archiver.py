"""`thl archive`: the source's binary log into a folder, file by file, as the server sends it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from threading import Event
from typing import Final, TypeVar

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import SourceUnavailable
from connector.log.transaction.source_position import SourcePosition
from connector.mysql.archive.archive import Archive, ArchiveWriter
from connector.mysql.binlog.frames import PacketFrames
from connector.mysql.binlog.raw import RawEvents
from connector.mysql.server import source_state
from connector.mysql.server.connection import session
from connector.mysql.server.dump import PacketSource, open_stream
from connector.mysql.server.source_facts import read_facts
from connector.retrying import Stopped, retry

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")
READ: Final = 0.2  # seconds without anything, after which we look whether to stop


@dataclass(slots=True)
class _Dump:
    """A running dump: its connection, and what cuts it."""

    source: PacketSource
    frames: PacketFrames
    raw: RawEvents


class Archiver:
    """One run.

    Args:
        config: `service` and `source`, whose `server_id` must be this archiver's alone.
        archive: where to.
        clock: the time.
        stop: set by whoever wants it to end.
        follow: whether to go on at the log's end; else it stops where the log ended when it began.
    """

    def __init__(self, config: Config, archive: Archive, clock: Clock, stop: Event, *, follow: bool) -> None:
        self._source = config.source
        self._name = f"{config.service}.archive"
        self._archive = archive
        self._clock = clock
        self._stop = stop
        self._follow = follow

    def run(self) -> SourcePosition | None:
        """Archive until asked to stop, or to the end.

        Returns:
            The place behind the last event that is safe in the archive; None when there is none.

        Raises:
            ConnectorError: the source purged what comes next; the folder is another server's, or cannot be written;
                what the server sent is damaged; the server stays away.
        """
        with self._archive.locked():
            with closing(ArchiveWriter(self._archive)) as writer, suppress(Stopped):
                end = None if self._follow else self._retry(self._end)
                while not self._stop.is_set():
                    dump = self._retry(lambda: self._open(writer))
                    try:
                        self._write(dump, writer, end)
                        break
                    except SourceUnavailable as error:
                        LOG.warning("the source is gone", extra={"service": self._name, "why": error})
                    finally:
                        dump.source.close()
            return self._archive.resume()

    def _open(self, writer: ArchiveWriter) -> _Dump:
        """Go on where the archive ends; returns when the source has sent something."""
        writer.close()
        with session(self._source) as connection:
            self._archive.belong(read_facts(connection).server_uuid)
            start = self._archive.resume() or source_state.oldest_position(connection)
            source_state.check_position_available(connection, start)
        source = open_stream(self._source, start, self._clock, service=self._name)
        try:
            frames = PacketFrames()
            while frames.receive(source, READ) is None and not self._stop.is_set():
                continue
        except BaseException:
            source.close()
            raise
        writer.begin(start.file)
        return _Dump(source, frames, RawEvents(frames, start.file, start.offset))

    def _write(self, dump: _Dump, writer: ArchiveWriter, end: SourcePosition | None) -> None:
        """Until asked to stop, or until `end`."""
        while not self._stop.is_set():
            for name in writer.accept(dump.raw.drain()):
                LOG.info("archived", extra={"service": self._name, "file": name})
            if end is not None and SourcePosition(dump.raw.file, dump.raw.offset) >= end:
                return
            if dump.frames.receive(dump.source, READ) is None:
                writer.sync()

    def _end(self) -> SourcePosition:
        with session(self._source) as connection:
            return source_state.end_position(connection)

    def _retry(self, call: Callable[[], T]) -> T:
        retries = self._source.retries
        errors = (SourceUnavailable,)
        return retry(
            call, errors, retries=retries, service=self._name, stage="archive", stop=self._stop, clock=self._clock
        )
