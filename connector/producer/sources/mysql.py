"""Reads MySQL or MariaDB as the producer's source: implements `EventSource` with `connector.mysql`."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

from connector.clock import Clock
from connector.config.model import Config
from connector.errors import HistoriesDiffer, PreflightError
from connector.log.epochs.load_pause import LoadPause
from connector.log.gtid.source_gtids import parse_gtids
from connector.log.ids import LogId
from connector.log.rules import NEW_LOG
from connector.log.transaction.definition import Definitions
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import AfterGtids, Finished, PositionRecord, SourcePosition, StreamStart
from connector.log.writing.online import SourceFound
from connector.mysql.preflight.cascades import CascadeGuard
from connector.mysql.preflight.preflight import NOW, preflight, reads_definitions
from connector.mysql.preflight.replication import check_replication
from connector.mysql.preflight.wider_filters import check_widened
from connector.mysql.schema_history.table_history import history_of
from connector.mysql.server import source_state
from connector.mysql.server.connection import session
from connector.mysql.server.dump import replica_uuid
from connector.mysql.server.semi_sync import SemiSyncAcknowledger
from connector.mysql.server.source_facts import SourceFacts, read_facts
from connector.mysql.snapshot.estimate import LoadEstimate, estimate_load
from connector.mysql.snapshot.information_schema import definitions_at_position
from connector.mysql.snapshot.load_conditions import read_conditions
from connector.mysql.snapshot.load_round import LoadRound, RoundTable
from connector.mysql.snapshot.loadable import Purpose
from connector.mysql.snapshot.snapshot import Snapshot, read_snapshot
from connector.mysql.transforms.filters import Filter, capture_of, fingerprint
from connector.producer.sources.source import Stream, start_after, start_redo
from connector.producer.sources.source_log import SourceLog
from connector.producer.sources.unknown_alone import Known, UnknownAlone
from connector.producer.sources.watched_stream import WatchedStream

LOG: Final = logging.getLogger(__name__)
SNAPSHOT: Final = "snapshot"
MOST_BY_FILE: Final = 1 << 32  # the largest offset of the dump command
UNKNOWN_POSITION: Final = SourcePosition("", 0)  # until the first event of a log that begins at a GTID set


class MySqlSource:
    """The configured server; implements `EventSource`.

    Args:
        config: the source and the service.
        clock: the clock.
    """

    def __init__(self, config: Config, clock: Clock) -> None:
        self._config = config
        self._source = config.source
        self._clock = clock
        self.acknowledger = SemiSyncAcknowledger(config.service) if config.source.semi_sync else None
        self._log = SourceLog(config, clock, self.acknowledger)
        self._filter: Filter | None = None
        self._server: SourceFacts | None = None
        self._warned: tuple[str, ...] = ()

    def check(self, *, load: bool) -> None:
        """Run the preflight; each warning is logged once."""
        with session(self._source) as connection:
            facts = preflight(
                connection,
                self._source,
                snapshot=load,
                replica_uuid=replica_uuid(self._config.service, self._source),
            )
        self._filter = Filter.of(
            self._source,
            facts.lower_case_table_names,
            facts.unlogged_options,
            facts.system_time_zone,
            virtual_tables=facts.virtual_tables,
            unique_tables=facts.unique_tables,
        )
        self._server = facts
        if facts.warnings != self._warned:
            self._warned = facts.warnings
            for warning in facts.warnings:
                LOG.warning(warning, extra={"service": self._config.service})

    def facts(self, *, new: bool) -> SourceFound:
        """Return the identity of the server, and its current position."""
        load = new and self._source.start == SNAPSHOT
        with session(self._source) as connection:
            facts = read_facts(connection)
            executed = source_state.gtid_begun(connection)
            files = dict(source_state.binary_logs(connection))
            start, gtid_set = source_state.end_position(connection), source_state.gtid_executed(connection)
            tables = None
            if new and not load and self._needs_tables(facts):
                self.check(load=True)  # the same prerequisites as for a snapshot point
                point, tables = definitions_at_position(connection, self._source, self._capture(), self._clock)
                start, gtid_set = point.position, point.gtid_set
            elif new and not load:
                found = self._log.start(connection)
                start, gtid_set = found.position or UNKNOWN_POSITION, found.gtid_set
            unlogged = source_state.unlogged_gtids(connection) if not facts.logs_replicated else None
        if new and not load:
            self.check(load=False)  # a foreign key that was created before this position is not in the log
        return SourceFound(
            source_id=f"{self._source.host}:{self._source.port}",
            server_uuid=facts.server_uuid,
            now=self._clock.now(),
            log_id=LogId(secrets.token_hex(16)),
            start=start,
            gtid_set=gtid_set,
            executed=executed,
            unlogged=unlogged,
            files=files,
            snapshot=load,
            tables=tables,
            filters=fingerprint(self._source),
            capture=capture_of(self._source),
        )

    def _needs_tables(self, facts: SourceFacts) -> bool:
        """Return True if a log that begins without a load has to know the tables there."""
        if facts.binlog_row_metadata != "FULL":
            _check_start(facts, self._source.start)
            return True
        return reads_definitions(facts, self._source)

    def check_widened(self, before: Mapping[str, Any] | None, accepted: Sequence[str]) -> Mapping[TableName, TableName]:
        """Compare the current tables with the earlier filters; return those that join."""
        captured = self._capture()
        with session(self._source) as connection:
            change = check_widened(connection, self._source, captured, before, accepted)
        fields = {"service": self._config.service}
        if change.partial:
            LOG.warning(
                "the log continues with partial tables, by --accept-partial",
                extra={**fields, "lacking": "; ".join(map(str, change.partial))},
            )
        if change.left:
            LOG.warning(
                "tables are no longer captured: targets keep them as they are",
                extra={**fields, "tables": ", ".join(map(str, change.left))},
            )
        if change.joined:
            LOG.info("tables join: their loads begin", extra={**fields, "tables": ", ".join(map(str, change.joined))})
        return {name: captured.published_name(name) for name in change.joined}

    def holds(self, finished: Finished) -> bool:
        """Return True while the server or the archive has the transaction's binary log."""
        return self._log.holds(finished)

    def created(self, file: str) -> int:
        """Return the creation time in the file's format description event."""
        return self._log.created.get(file, 0)

    def redo(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Return a stream from the last finished transaction on."""
        captured = self._capture().including(position.finished)
        start = start_redo(position, by_file=self._by_file(position))
        return self._read(start, position, tables, captured)

    def after(self, position: PositionRecord, tables: Definitions | None) -> Stream:
        """Return a stream from the position on, which must exist."""
        start = start_after(position, by_file=self._by_file(position))
        return self._read(start, position, tables, self._capture())

    def snapshot(self) -> Snapshot:
        """Return the definitions of every captured table at one position."""
        snapshot = read_snapshot(self._source, self._capture(), self._clock)
        self.check(load=True)  # a foreign key that was created meanwhile is not in the log
        return snapshot

    def round(
        self,
        after: Mapping[TableName, tuple[str, ...] | None],
        keys: Mapping[TableName, Sequence[tuple[str, ...]]],
        *,
        lock: bool,
    ) -> LoadRound:
        """A round of the loads of tables."""
        tables = [RoundTable(name, key, keys.get(name, ())) for name, key in after.items()]
        return LoadRound(self._source, self._capture(), tables, self._clock, lock=lock)

    def load_pause(self, position: PositionRecord, newest_commit: int | None) -> LoadPause | None:
        """Read lag and retention of the server."""
        settings = self._source.snapshot
        with session(self._source) as connection:
            conditions = read_conditions(connection, settings, position, newest_commit, self._clock.now())
        return conditions.pause(settings)

    def estimate(self) -> tuple[LoadEstimate, int]:
        """Return what an initial load would read, and the seconds for which the source keeps its log (0: always).

        Raises as `check`.
        """
        self.check(load=True)
        kept = self._server.expire_seconds if self._server is not None else 0
        return estimate_load(self._source, self._capture(), self._clock, Purpose.INITIAL), kept

    def _by_file(self, position: PositionRecord) -> bool:
        """Return True to read by file and offset despite GTIDs: on the server of the position.

        By GTIDs a MySQL server leaves out transactions without one (gtid_mode was not ON meanwhile), and a server that
        was reset has other transactions under the same GTIDs.

        Raises:
            HistoriesDiffer: the file of the position is another one, or gone.
        """
        self._capture()
        server, resume = self._server, position.resume
        if server is None or position.gtid_set is None or not resume.file or position.server_uuid != server.server_uuid:
            return False
        if self._log.keeps_file(position):
            return not server.mariadb and resume.offset < MOST_BY_FILE
        self._log.check(AfterGtids(position.gtid_set))  # missing GTIDs have an error of their own
        if not self._source.accept_gtids_alone:
            raise HistoriesDiffer(
                "the source has purged the file that was read last: it may have been reset meanwhile, or have written "
                "transactions without GTIDs",
                hint="if it was not (the first file of SHOW BINARY LOGS is an old one), continue by GTIDs with "
                f"--set source.accept_gtids_alone=true; else {NEW_LOG}; source.archive keeps "
                "such files",
                file=resume.file,
                read_up_to=resume.offset,
            )
        LOG.warning("the file that was read last was purged: continuing by GTIDs alone", extra={"file": resume.file})
        return False

    def _read(
        self, start: StreamStart, position: PositionRecord, tables: Definitions | None, captured: Filter
    ) -> Stream:
        resolver = history_of(tables, captured, position)
        server = self._server
        if server is not None and not server.cascades_logged and not self._source.accept_unlogged_cascades:
            resolver = CascadeGuard(resolver, captured, server, position)
        stream: Stream
        if isinstance(start, SourcePosition) and position.gtid_set is not None:
            known = parse_gtids(position.gtid_set)
            if captured.always_read is not None and captured.always_read.gtid is not None:
                known.remove(captured.always_read.gtid)
            end, known_gtids = self._log.end(), Known(known)
            stream = UnknownAlone(self._log.read(start, captured, resolver, known_gtids), known_gtids, end)
        else:
            stream = self._log.read(start, captured, resolver)
        return (
            stream
            if server is None or server.logs_replicated
            else WatchedStream(stream, self._check_server, self._clock)
        )

    def _check_server(self) -> None:
        """Check that the server has not become a replica that does not log the changes that it replicates."""
        with session(self._source) as connection:
            check_replication(connection, read_facts(connection))

    def _capture(self) -> Filter:
        if self._filter is None:
            self.check(load=False)
        return self._filter or Filter.of(self._source)


def _check_start(facts: SourceFacts, start: str) -> None:
    """Refuse a start at which the tables are unknown, if the log does not name columns."""
    if start != NOW and not facts.logs_column_names:
        raise PreflightError(
            f"the log of {facts.server} does not name columns, and its tables at {start} are not known",
            hint="start with a snapshot, or now",
        )
    if start != NOW:
        raise PreflightError(
            f"binlog_row_metadata is {facts.binlog_row_metadata}, so the log does not name columns, and the "
            f"tables at {start} are not known",
            hint=f"start with a snapshot, or now; or {facts.set_variable} binlog_row_metadata = 'FULL'; where the "
            "log has names from there on",
        )
