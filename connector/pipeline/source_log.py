"""The source's binary log as the producer reads it: the server's stream, and from the archive what that has purged."""

from __future__ import annotations

import logging
from typing import Final

from connector.capture import source_state
from connector.capture.archive import Archive
from connector.capture.archived_log import ArchivedLog, covering, holds, previous_gtids
from connector.capture.connection import Connection, session
from connector.capture.filters import Filter
from connector.capture.frames import EventFrames, Frames, PacketFrames
from connector.capture.log_files import LogFile
from connector.capture.naming import Naming
from connector.capture.reader import BinlogReader
from connector.capture.source_facts import read_facts
from connector.capture.stream import ByteSource, StreamStart, open_stream
from connector.clock import Clock
from connector.config import Config
from connector.errors import HistoriesDiffer, Purged
from connector.pipeline.source import Stream
from connector.thl.gtids import Gtids, parse_gtids
from connector.thl.position import Finished, SourcePosition

LOG: Final = logging.getLogger(__name__)
EARLIEST: Final = "earliest"


class SourceLog:
    """The log.

    Args:
        config: `source` and `service`.
        clock: measures silence.
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self._service = config.service
        self._source = config.source
        self._clock = clock
        self._archive = Archive(config.source.archive) if config.source.archive else None

    def start(self, connection: Connection) -> source_state.Start:
        """Where a new log begins, by `source.start`: a place that is there.

        Raises:
            ConfigError: it is no place.
            Purged: neither the server nor the archive has it any more.
            HistoriesDiffer: the server never had it.
        """
        found = source_state.resolve_start(connection, self._source.start)
        if self._archive is not None and self._source.start == EARLIEST:
            first = next(iter(self._archive.files()), None)
            place = first and SourcePosition(first.name, source_state.FIRST_EVENT)
            if first and place and found.position is not None and place < found.position:
                before = previous_gtids(first) if found.gtid_set is not None else None
                return source_state.Start(place, None if before is None else str(before))
        self._check(connection, found.stream)
        return found

    def holds(self, finished: Finished) -> bool:
        """Whether the transaction is still there, on the server or in the archive."""
        with session(self._source) as connection:
            purged = source_state.gtid_purged(connection) if finished.gtid is not None else None
            files = dict(source_state.binary_logs(connection))
        if purged is not None and finished.gtid is not None:
            there = finished.gtid not in parse_gtids(purged)
        else:
            there = finished.start.file in files
        return there or (self._archive is not None and holds(self._archive, finished))

    def read(self, start: StreamStart, wanted: Filter, naming: Naming) -> Stream:
        """The log from a place on; `naming` names columns that it does not.

        Raises:
            Purged: neither the server nor the archive has it any more.
            HistoriesDiffer, PreflightError, SourceUnavailable: as `check_available`, `open_stream`.
        """
        with session(self._source) as connection:
            archived = self._check(connection, start)
        if archived is None:
            return self._stream(start, wanted, naming)
        fields = {"service": self._service, "file": archived, "start": start}
        LOG.info("reading from the archive what the source has purged", extra=fields)

        def of_file(source: ByteSource, file: LogFile, known: Gtids | None) -> BinlogReader:
            return self._reader(source, EventFrames(), wanted, naming, file=file.name, known=known)

        def live(place: StreamStart) -> BinlogReader:
            with session(self._source) as connection:
                source_state.check_available(connection, place)
            LOG.info("the archive is read, the source's stream goes on", extra=fields | {"start": place})
            return self._stream(place, wanted, naming)

        if self._archive is None:
            raise RuntimeError("there is no archive")
        return ArchivedLog(self._archive, start, archived, of_file, live)

    def _check(self, connection: Connection, start: StreamStart) -> LogFile | None:
        """Make sure that what comes next is there.

        Returns:
            The archived file that has it, where the server has purged it.
        """
        try:
            source_state.check_available(connection, start)
        except Purged as gone:
            if self._archive is None:
                raise
            if isinstance(start, SourcePosition):
                self._check_owner(connection, self._archive)
            found = covering(self._archive, start)
            if found is None:
                oldest = next(iter(self._archive.files()), None)
                raise Purged(
                    f"{gone.message}; the archive does not have it either",
                    hint=gone.hint,
                    archive=self._archive,
                    oldest_archived=oldest.name if oldest else "none",
                ) from gone
            return found
        return None

    def _check_owner(self, connection: Connection, archive: Archive) -> None:
        """A file and offset means something on its own server only."""
        server = read_facts(connection).server_uuid
        if archive.owner not in {None, server}:
            raise HistoriesDiffer(
                "the archive holds another server's binary log, and without GTIDs nothing tells where to go on in it",
                archive=archive,
                owner=archive.owner,
                source=server,
            )

    def _stream(self, start: StreamStart, wanted: Filter, naming: Naming) -> BinlogReader:
        stream = open_stream(self._source, start, self._clock, service=self._service)
        return self._reader(stream, PacketFrames(), wanted, naming)

    def _reader(
        self,
        source: ByteSource,
        frames: Frames,
        wanted: Filter,
        naming: Naming,
        *,
        file: str = "",
        known: Gtids | None = None,
    ) -> BinlogReader:
        return BinlogReader(
            source,
            frames,
            filters=wanted,
            service=self._service,
            piece_bytes=self._source.piece_bytes,
            file=file,
            naming=naming,
            known=known,
        )
