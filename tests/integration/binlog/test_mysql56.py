"""MySQL 5.6 as a live source: its log has no column names, so they come from the table history."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from connector.applier.applier import Applier
from connector.clock import SystemClock
from connector.config.apply import Apply, Target
from connector.config.model import Config
from connector.config.source import Source
from connector.errors import ConfigError, HistoriesDiffer, PreflightError, Purged, SandboxError
from connector.log.ids import Seqno
from connector.log.transaction.batch import TransactionBatch
from connector.log.transaction.position import AfterGtids
from connector.mysql.preflight.preflight import preflight
from connector.mysql.server import connection as capture
from connector.mysql.server.connection import session
from connector.mysql.server.heartbeat_table import write_heartbeat
from connector.mysql.server.source_state import check_available, end_position, resolve_start
from connector.status.source import read_source
from connector.verify import verify
from connector.verify.source import SourceReader
from tests.integration.binlog.test_types import BYTES, cases
from tests.integration.mariadb.test_log import said_of, same
from tests.support.binlog import images, row_changes
from tests.support.definitions import MODES, SCHEMA, Statements
from tests.support.grants import granted
from tests.support.loading import a_database, a_user, as_source, checked, loaded
from tests.support.producing import SMALL, Bench, finished, fragments, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.servers.mysql56 import MySql56Server, mysql56_folder
from tests.support.servers.settings import MYSQL56_GTIDS
from tests.support.spark import session as spark_session
from tests.support.watched import Watched, rows_of, walk

pytestmark = pytest.mark.servers
LEAST = granted("mysql-source.sql", "log", "tables", "loads before MySQL 8.0.23", schema="*")

CASES = [
    *((how, definition.replace("utf8mb3", "utf8"), values) for how, definition, values in cases()),
    (BYTES, "geometrycollection", ["st_geomfromtext('GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(0 0, 1 1))')"]),
]


@pytest.fixture(scope="module", params=["OFF", "ON"], ids=["places", "gtids"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    try:
        mysql56_folder()
    except SandboxError as error:
        pytest.skip(f"MySQL 5.6 cannot be had: {error.message}")
    settings = MYSQL56_GTIDS if request.param == "ON" else {}
    with MySql56Server(tmp_path_factory.mktemp("mysql56"), settings=settings, die_with_parent=True) as found:
        yield found


@pytest.fixture
def watched(server: SqlServer) -> Iterator[Watched]:
    found = Watched(server, None)
    yield found
    found.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_history_equals_the_dictionary_after_every_statement(watched: Watched, seed: int) -> None:
    watched.run(f"SET sql_mode = '{MODES[seed]}'")
    told, layouts = walk(
        watched,
        Statements(seed),
        400,
        reasons=("a conversion", "CONVERT TO", " is not in "),
        said=lambda sql: sql.replace("utf8mb3", "utf8"),
    )
    assert told > 40
    assert layouts > 5


def test_timestamp_is_not_null_without_explicit_defaults(watched: Watched) -> None:
    """explicit_defaults_for_timestamp is OFF, and the log does not say so."""
    watched.run("CREATE TABLE t (a timestamp, b timestamp NULL, c timestamp(3) DEFAULT 0, d timestamp NULL)")
    watched.run("ALTER TABLE t ADD e timestamp, MODIFY d timestamp", "INSERT INTO t () VALUES ()")
    (rows,) = rows_of(watched.read())
    assert watched.known == watched.dictionary()
    assert [column.name for column in rows.layout.columns if column.nullable] == ["b"]


def test_every_value_equals_its_select_and_its_load(watched: Watched, server: SqlServer) -> None:
    watched.run(
        "SET time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'", f"ALTER DATABASE {SCHEMA} CHARSET utf8mb4"
    )
    for number, (_, definition, values) in enumerate(CASES):
        watched.run(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
        watched.run(*(f"INSERT INTO t{number} (v) VALUES ({value})" for value in values))
    found = [item for item in watched.read() if isinstance(item, TransactionBatch)]
    load = {name.table: rows for name, rows in loaded(as_source(server, do=(SCHEMA,))).items()}
    layouts = {table.layout.name.table: table.layout for table in watched.dictionary().tables.values()}
    for change in rows_of(list(found)):
        assert change.layout == layouts[change.layout.name.table]
    for number, (how, definition, _) in enumerate(CASES):
        said = said_of(watched.cursor, f"t{number}", how, definition)
        logged = [after for _, _, after in row_changes(found, f"t{number}") if after]
        assert [(definition, value, row) for (_, value), row in zip(logged, said, strict=True)
                if not same(value, row, how, definition)] == []  # fmt: skip
        assert load[f"t{number}"] == logged, definition


def test_xa_transaction_is_published_at_its_commit(watched: Watched, server: SqlServer) -> None:
    """Prepared it is nowhere in the log: a load may be taken, and what is committed behind it comes whole."""
    watched.run("CREATE TABLE t (id int primary key)", "XA START 'a'", "INSERT INTO t VALUES (1)", "XA END 'a'")
    watched.run("XA PREPARE 'a'")
    assert rows_of(watched.read()) == []
    source = as_source(server, do=(SCHEMA,))
    assert loaded(source) == {}
    watched.run("XA COMMIT 'a'", "XA START 'b'", "INSERT INTO t VALUES (2)", "XA END 'b'", "XA PREPARE 'b'")
    watched.run("XA ROLLBACK 'b'", "INSERT INTO t VALUES (3)")
    assert [images(rows) for rows in rows_of(watched.read())] == [[(None, [1])], [(None, [3])]]


SCRIPT = (
    "ALTER TABLE t ADD n int unsigned DEFAULT 7 AFTER id",
    "INSERT INTO t (n, v) VALUES (4000000000, 'h\u00e9')",
    "CREATE TABLE b (id bigint unsigned PRIMARY KEY, l varchar(9), e enum('x','y\u00e9'), s set('p','q'), "
    "d decimal(9,3), f float, g double, at timestamp, later timestamp NULL, t6 datetime(6), y year, "
    "bits bit(9), bin binary(4), txt text character set utf8) CHARACTER SET latin1",
    "INSERT INTO b (id, l, e, s, d, f, g, t6, y, bits, bin, txt) VALUES (18446744073709551615, '\u00e9', "
    "'y\u00e9', 'p,q', -0.001, 0.1, -1e300, '2024-02-29 01:02:03.000004', 2024, 257, x'0100', '\u20ac')",
    "ALTER TABLE b ADD extra int NOT NULL DEFAULT 3, MODIFY l varchar(20) FIRST",
    "UPDATE b SET l = 'longer than nine', extra = 4",
    "CREATE TABLE c LIKE b",
    "INSERT INTO c SELECT * FROM b",
    "CREATE TEMPORARY TABLE t (z int)",
    "INSERT INTO t VALUES (9)",
    "DROP TEMPORARY TABLE t",
    "RENAME TABLE c TO d",
    "DELETE FROM t WHERE id = 1",
    "UPDATE t SET v = 'changed' WHERE id = 2",
)


def test_a_target_ends_equal_to_the_source(server: SqlServer, kafka_broker: Broker, tmp_path: Path) -> None:
    """Load, rows, definitions; the producer ends, the server is killed, the producer goes on."""
    bench = Bench(server, kafka_broker, tmp_path, settings=dict(SMALL))
    bench.make_table()
    bench.sql(
        f"CREATE TABLE {bench.service}.old (id int primary key, at timestamp, f float(7,4)); "
        f"INSERT INTO {bench.service}.old (id, f) VALUES (1, 1.2345), (2, NULL)"
    )
    with bench.start() as first:
        first.loaded()
        assert "cannot name columns in its log" in first.text
        before = last_seqno(bench)
        bench.sql(f"USE {bench.service}; SET NAMES utf8mb4; {'; '.join(SCRIPT[:5])}")
        until(lambda: last_seqno(bench) >= before + 5)
        assert first.stop() == 0
    gtids = server.run_sql("SELECT @@gtid_mode").split()[1] == "ON"
    # With GTIDs the server refuses CREATE TABLE … SELECT.
    more = (*SCRIPT[5:], "CREATE TABLE sel (k int) SELECT id FROM t") if not gtids else SCRIPT[5:]
    bench.sql(f"USE {bench.service}; SET NAMES utf8mb4; {'; '.join(more)}")
    with bench.start() as second:
        second.online()
        server.kill()
        server.start()
        bench.sql(f"INSERT INTO {bench.service}.old (id) VALUES (3); CREATE TABLE {bench.service}.fence (n int)")
        until(lambda: "CREATE TABLE" in statements(bench)[-1] and "fence" in statements(bench)[-1])
        assert second.stop() == 0
    assert "t VALUES (9)" not in "".join(statements(bench))
    beat = bench.config.source.model_copy(update={"heartbeat_table": f"{bench.service}.beats"})
    write_heartbeat(beat, bench.service, "one")
    with pytest.raises(ConfigError) as too_long:
        write_heartbeat(beat, bench.service, "x" * 192)
    assert too_long.value.where["limit"] == 191
    assert server.run_sql(f"SELECT service, name FROM {bench.service}.beats").split()[2:] == [bench.service, "one"]
    bench.sql(f"DROP TABLE {bench.service}.beats")
    read = read_source(bench.config.source)
    assert (read.gtid_set is not None) == gtids
    config = Config.model_validate(
        bench.config.model_dump()
        | {
            "source": bench.config.source,
            "kafka": bench.config.kafka,
            "apply": Apply(checkpoint_dir=tmp_path / "spark"),
            "target": Target(url=f"sqlite:///{tmp_path / 'target.db'}"),
        }
    )
    with spark_session(tmp_path / "spark-session") as spark:
        assert Applier(config, spark, SystemClock(), Event(), until=Seqno(last_seqno(bench))).run() is not None
    report = verify(config, patience=0.5)
    assert report.equal, [str(d) for table in report.tables for d in table.differences]
    rows = {table.name.partition(".")[2]: table.rows for table in report.tables}
    assert rows == {"t": 2, "old": 3, "b": 1, "d": 1, "fence": 0} | ({} if gtids else {"sel": 2})


def statements(bench: Bench) -> list[str]:
    return [
        change["sql"]
        for event in finished(fragments(bench.config))
        for fragment in event
        for change in fragment["changes"]
        if "sql" in change
    ]


def test_missing_prerequisites_are_reported_with_statements_of_5_6(server: SqlServer) -> None:
    with a_user(server, server_id=1) as source:
        other = source.model_copy(update={"server_id": 4711})
        server.run_sql("SET GLOBAL binlog_format = MIXED")
        try:
            with pytest.raises(PreflightError) as refused:
                checked(source, snapshot=True)
            with pytest.raises(PreflightError) as nameless:
                checked(other.model_copy(update={"statements": "keep"}), snapshot=True)
        finally:
            server.run_sql("SET GLOBAL binlog_format = ROW")
        problems = refused.value.problems
        assert [problem.where["server_id"] for problem in problems if "server_id" in problem.where] == [1]
        assert ("source.statements", "MySQL 5.6.24-log") in [
            (problem.where.get("option"), problem.where.get("server")) for problem in nameless.value.problems
        ]
        hints = "\n".join(problem.hint for problem in problems)
        for hint in (
            "SET GLOBAL binlog_format = 'ROW'",
            "GRANT REPLICATION SLAVE ON *.*",
            "GRANT REPLICATION CLIENT ON *.*",
            "GRANT RELOAD ON *.*",
            "GRANT SELECT ON *.*",
        ):
            assert hint in hints
        assert "PERSIST" not in hints
        assert "FLUSH_TABLES" not in hints
        for grant in LEAST:
            server.run_sql(f"GRANT {grant} TO {source.user}")
        server.run_sql("SET GLOBAL sync_binlog = 0, GLOBAL expire_logs_days = 2")
        facts = checked(other, snapshot=True)
        server.run_sql("SET GLOBAL sync_binlog = 1, GLOBAL expire_logs_days = 0")
        assert (facts.release, facts.binlog_row_metadata, facts.expire_seconds) == ((5, 6, 24), "NONE", 2 * 86400)
        assert not any("PERSIST" in warning or "XA_RECOVER" in warning for warning in facts.warnings)
        assert any("SET GLOBAL sync_binlog = 1" in warning for warning in facts.warnings)
        assert facts.gtids or any("log_slave_updates" in warning for warning in facts.warnings)


def test_replica_that_does_not_log_replicated_changes_is_refused(server: SqlServer) -> None:
    source = as_source(server, server_id=4711)
    server.run_sql("CHANGE MASTER TO MASTER_HOST = '127.0.0.9', MASTER_USER = 'x'")
    try:
        with session(source) as connection:
            problem = preflight_says(connection, source)
            if problem is None:
                assert server.run_sql("SELECT @@log_slave_updates").split()[1] == "1"
            else:
                assert problem.where["replicates_from"] == "127.0.0.9"
                assert server.run_sql("SELECT @@log_slave_updates").split()[1] == "0"
    finally:
        server.run_sql("RESET SLAVE ALL")
    with session(source) as connection:
        assert preflight_says(connection, source) is None


def test_cascades_and_keys_are_seen_with_the_documented_grants(server: SqlServer) -> None:
    with a_database(server, "cascade") as (_, name), a_user(server, *LEAST, do=(name,), server_id=4711) as source:
        server.run_sql(
            f"USE {name}; CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, "
            "CONSTRAINT fk FOREIGN KEY (id) REFERENCES p (id) ON UPDATE CASCADE)"
        )
        with session(source) as connection:
            assert f"`{name}`.`c`.`fk` (ON UPDATE CASCADE)" in str(preflight_says(connection, source))
        with closing(SourceReader(source)) as reader:
            assert [(table.name[1], table.key) for table in reader.tables(reader.filter())] == [
                ("c", (0,)),
                ("p", (0,)),
            ]


def preflight_says(connection: capture.Connection, source: Source) -> PreflightError | None:
    try:
        preflight(connection, source, snapshot=True)
    except PreflightError as error:
        return error
    return None


def test_start_settings_are_resolved(server: SqlServer) -> None:
    with a_database(server, "places"), session(as_source(server)) as connection:
        now, earliest = resolve_start(connection, "now"), resolve_start(connection, "earliest")
        for start in (now, earliest):
            check_available(connection, start.stream)
        if now.gtid_set is not None:
            unknown = f"{uuid.uuid4()}:1-5"
            with pytest.raises(HistoriesDiffer) as refused:
                check_available(connection, AfterGtids(unknown))
            assert refused.value.where == {"lacking": unknown}
    server.run_sql("FLUSH LOGS")
    with session(as_source(server)) as connection:
        server.run_sql(f"PURGE BINARY LOGS TO '{end_position(connection).file}'")
        with pytest.raises(Purged) as gone:
            check_available(connection, AfterGtids("") if now.gtid_set is not None else earliest.stream)
        assert "expire_logs_days = 7" in gone.value.hint
