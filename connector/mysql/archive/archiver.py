"""Archives the source's binary log to a folder, file by file (`thl archive`)."""

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
READ: Final = 0.2  # seconds without news after which the stop flag is checked


@dataclass(slots=True)
class _Dump:
    """A running dump: its connection and its readers."""

    source: PacketSource
    frames: PacketFrames
    raw: RawEvents


class Archiver:
    """One run of archiving.

    Args:
        config: `service` and `source`; no other replica may have its `server_id`.
        archive: the archive to fill.
        clock: the clock for retries and silence.
        stop: set to end the run.
        follow: True: continue at the log's end; False: stop where the log ended at the start of the run.
    """

    def __init__(self, config: Config, archive: Archive, clock: Clock, stop: Event, *, follow: bool) -> None:
        self._source = config.source
        self._name = f"{config.service}.archive"
        self._archive = archive
        self._clock = clock
        self._stop = stop
        self._follow = follow

    def run(self) -> SourcePosition | None:
        """Archives until `stop` is set, or to the end.

        Returns:
            Position after the last event synced to the archive; None if there is none.

        Raises:
            ConnectorError: the source has purged what follows; the folder is another server's, or cannot be written;
                the dump is damaged; the server stays unavailable.
        """
        with self._archive.locked():
            with closing(ArchiveWriter(self._archive)) as writer, suppress(Stopped):
                end = None if self._follow else self._retry(lambda: source_state.log_end(self._source))
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
        """Opens a dump at the archive's end; returns once the source has sent something."""
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
        """Writes until `stop` is set, or until `end`."""
        while not self._stop.is_set():
            for name in writer.accept(dump.raw.drain()):
                LOG.info("archived", extra={"service": self._name, "file": name})
            if end is not None and SourcePosition(dump.raw.file, dump.raw.offset) >= end:
                return
            if dump.frames.receive(dump.source, READ) is None:
                writer.sync()

    def _retry(self, call: Callable[[], T]) -> T:
        retries = self._source.retries
        errors = (SourceUnavailable,)
        return retry(
            call, errors, retries=retries, service=self._name, stage="archive", stop=self._stop, clock=self._clock
        )
