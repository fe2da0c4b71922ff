"""Reads files of a binary log as the producer's source, without a server: `thl produce --from-files FOLDER`.

The producer stops at the end of the files. A later start can continue with more files or, with GTIDs, with the server
itself.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from connector.clock import Clock
from connector.config.filters import Filters
from connector.config.model import Config
from connector.errors import ConfigError, PreflightError, Purged
from connector.log.gtid.source_gtids import Gtids
from connector.log.ids import LogId
from connector.log.transaction.batch import PositionAdvance, TransactionBatch
from connector.log.transaction.definition import Definitions, Item
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import Finished, PositionRecord, SourcePosition, StreamStart
from connector.log.transaction.xa import Decided, Prepared
from connector.log.writing.online import SourceFound
from connector.mysql.archive.archive import Archive
from connector.mysql.archive.archived_log import ArchivedLog, Files, covering, holds, previous_gtids, writer
from connector.mysql.binlog.byte_source import ByteSource
from connector.mysql.binlog.events.column_names import ColumnNameResolver, RefusingResolver
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.log_files import MAGIC, LogBytes, LogFile, log_files
from connector.mysql.binlog.reader import BinlogReader
from connector.mysql.preflight.wider_filters import accepts_all, same_tables
from connector.mysql.schema_history.table_history import history_of
from connector.mysql.transforms.filters import Filter, capture_of, fingerprint
from connector.producer.sources.source import Round, SourceSnapshot, Stream, start_after, start_redo

NOTHING: Final = Filter(Filters(ignore=("*",)))


@dataclass(frozen=True, slots=True)
class GivenFiles:
    """Named files, in order."""

    given: tuple[LogFile, ...]

    def files(self) -> list[LogFile]:
        """Return all files."""
        return list(self.given)

    def __str__(self) -> str:
        return " ".join(map(str, self.given))


class FileSource:
    """Implements `EventSource` for files, which wait for nothing.

    Args:
        config: the service, and the filters of `source`.
        paths: one folder, or files in their order.
        clock: the clock.

    Raises:
        ConfigError: a file does not exist, or the folder has none.
    """

    acknowledger: Final = None

    def __init__(self, config: Config, paths: Sequence[Path], clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._filter = Filter.of(config.source, virtual_tables=None)
        folder = Archive(paths[0]) if len(paths) == 1 and paths[0].is_dir() else None
        self._files: Files = folder or GivenFiles(tuple(log_files([str(path) for path in paths])))
        self._owner = folder.owner if folder else None
        if not self._files.files():
            raise ConfigError("there is no binary log file", folder=self._files)

    def check(self, *, load: bool) -> None:
        """Accept the files.

        Raises:
            PreflightError: an initial load is needed.
        """
        if load:
            raise PreflightError(
                "the log's initial load is unfinished, and files have none",
                hint="finish it with its server as the source",
                service=self._config.service,
            )

    def facts(self, *, new: bool) -> SourceFound:
        """Return the start of the files, and their GTIDs.

        Raises:
            ConfigError: a file cannot be read.
            CorruptBinlog: one is damaged.
        """
        files = self._files.files()
        before = previous_gtids(files[0])
        return SourceFound(
            source_id=str(self._files),
            server_uuid=self._owner or "",
            now=self._clock.now(),
            log_id=LogId(secrets.token_hex(16)),
            start=SourcePosition(files[0].name, len(MAGIC)),
            gtid_set=None if before is None else str(before),
            executed=None if before is None else self._executed(files[-1]),
            filters=fingerprint(self._config.source),
            capture=capture_of(self._config.source),
        )

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> Mapping[TableName, TableName]:
        """Refuse changed filters: files do not show which tables had rows.

        Raises:
            PreflightError: other tables were captured before.
        """
        if not same_tables(before, self._config.source) and not accepts_all(accepted):
            raise PreflightError(
                "the filters have changed, and files do not show which tables have rows that the log lacks",
                hint="use the earlier source.filters; or thl produce --accept-partial '*'",
                service=self._config.service,
                captured_before=None if before is None else before.get("filters"),
            )
        return {}

    def holds(self, finished: Finished) -> bool:
        """Return True if the files have this transaction."""
        return holds(self._files, finished)

    def created(self, file: str) -> int:
        """Return 0: the files of a folder are not re-created."""
        del file
        return 0

    def redo(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Return a stream from the last finished transaction on."""
        return self._read(start_redo(position), position, tables, self._filter.including(position.finished))

    def after(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Return a stream from the position on.

        Raises:
            Purged: the files begin after it.
        """
        return self._read(start_after(position), position, tables, self._filter)

    def snapshot(self) -> SourceSnapshot:
        """Raise PreflightError: files have no initial load."""
        raise PreflightError("files have no initial load", service=self._config.service)

    def round(
        self,
        after: Mapping[TableName, tuple[str, ...] | None],
        keys: Mapping[TableName, Sequence[tuple[str, ...]]],
        *,
        lock: bool,
    ) -> Round:
        """Raise PreflightError: files have no tables to load."""
        raise PreflightError("files have no tables to load", service=self._config.service)

    def load_pause(self, position: PositionRecord, newest_commit: int | None) -> None:
        """Return None: `round` says why there is none."""

    def _read(
        self, start: StreamStart, position: PositionRecord, tables: Definitions | None, captured: Filter
    ) -> ArchivedLog:
        first = covering(self._files, start)
        if first is None:
            raise Purged(
                "the files begin after the log's position",
                hint="add older files: thl produce --from-files",
                start=start,
                oldest=self._files.files()[0],
            )
        resolver = history_of(tables, captured, position)

        def of_file(source: ByteSource, file: LogFile, known: Gtids | None) -> BinlogReader:
            self._check_writer(file)
            return self._reader(source, file, captured, resolver, known)

        return ArchivedLog(self._files, start, first, of_file, None)

    def _reader(
        self,
        source: ByteSource,
        file: LogFile,
        filter: Filter,
        resolver: ColumnNameResolver,
        known: Gtids | None = None,
    ) -> BinlogReader:
        return BinlogReader(
            source,
            EventFrames(),
            filters=filter,
            service=self._config.service,
            batch_bytes=self._config.source.batch_bytes,
            file=file.name,
            resolver=resolver,
            known=known,
        )

    def _check_writer(self, file: LogFile) -> None:
        """Refuse files of a server with `source.server_id`: all its transactions would be ignored."""
        if writer(file) == self._config.source.server_id:
            raise PreflightError(
                f"source.server_id {self._config.source.server_id} is that of the server that wrote the file",
                hint="set source.server_id to a number that no server or replica of this source has",
                file=file,
            )

    def _executed(self, newest: LogFile) -> str:
        """Return every GTID up to the end of the newest file."""
        executed = previous_gtids(newest)
        if executed is None:
            raise RuntimeError("a log without GTIDs")
        reader = self._reader(LogBytes(newest), newest, NOTHING, RefusingResolver())
        try:
            while not reader.ended:
                for item in reader.read():
                    gtid = _gtid(item)
                    if gtid is not None:
                        executed.add(gtid)
        finally:
            reader.close()
        return str(executed)


def _gtid(item: Item) -> str | None:
    match item:
        case PositionAdvance():
            return item.gtid
        case Prepared(batch=TransactionBatch(begin=begin)) | TransactionBatch(begin=begin) | Decided(begin=begin):
            return begin.gtid if begin is not None else None
        case _:
            return None
