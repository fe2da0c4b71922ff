"""The contract of a target, on PostgreSQL: a database per test."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FuturesTimeout
from contextlib import contextmanager
from datetime import datetime, timedelta
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.errors import (
    ConnectorError,
    Fenced,
    PreflightError,
    TargetDiffers,
    TargetUnavailable,
    ValueNotRepresentable,
)
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.gtid.mariadb import DomainPosition
from connector.log.gtid.mysql import GtidSet
from connector.log.ids import UNKNOWN_SHARD, Seqno
from connector.log.transaction.layout import Column, TableLayout
from connector.log.transaction.load import Part
from connector.log.transaction.position import TargetPosition
from connector.targets.postgres.errors import translated
from connector.targets.postgres.signal_table import PostgresSignalSession
from connector.targets.postgres.target import PostgresTarget
from connector.targets.signal_table import SignalTable
from connector.targets.target_schema import Excluded
from tests.contract.target_again import *  # noqa: F403
from tests.contract.target_again import made
from tests.contract.target_ddl import *  # noqa: F403
from tests.contract.target_history import *  # noqa: F403
from tests.contract.target_load import *  # noqa: F403
from tests.contract.target_load import CREATE_ORDERS, ORDERS, begin, end, states, unique
from tests.contract.target_partial import *  # noqa: F403
from tests.contract.target_suite import *  # noqa: F403
from tests.contract.target_suite import CREATE_USERS, KILLS, USERS, Applier, stops
from tests.contract.target_transactions import *  # noqa: F403
from tests.contract.target_values import *  # noqa: F403
from tests.contract.target_ways_out import *  # noqa: F403
from tests.contract.target_ways_out import GOOD, applied, ddl, inserted
from tests.support.fragments import load_record, record, statement
from tests.support.net import Row, in_order, layout, net
from tests.support.servers.environment import DatabaseServer


class PostgresPlace:
    schemaless = False
    kinds = ("integer", "smallint")
    way_out = 'ALTER COLUMN "n" DROP EXPRESSION'
    lacks = frozenset[str]()
    indexes = True
    computed = "STORED"
    early = False
    kills = KILLS

    def __init__(self, url: str) -> None:
        self.url = url
        self.opened: list[PostgresTarget] = []
        self.reader = psycopg.connect(url, autocommit=True)

    def open(
        self, *, audit: bool = False, columns: MetadataColumns | None = None, history: HistoryTables | None = None
    ) -> PostgresTarget:
        self.opened.append(
            PostgresTarget(SecretStr(self.url), SystemClock(), audit=audit, columns=columns, history=history)
        )
        return self.opened[-1]

    @property
    def options(self) -> dict[str, Any]:
        return {"url": self.url}

    def open_for_undo(self, *, columns: MetadataColumns | None = None) -> PostgresTarget:
        return self.open(audit=True, columns=columns)

    def query(self, sql: str) -> list[Row]:
        return self.reader.execute(sql.encode()).fetchall()

    def read(self, table: TableLayout) -> list[Row] | None:
        name = ".".join(quoted(part) for part in table.name)
        if self.query(f"SELECT to_regclass('{name}')") == [(None,)]:
            return None
        columns = ", ".join(readable(column) for column in table.columns)
        rows = self.query(f"SELECT {columns} FROM {name}")
        return in_order(
            tuple(
                None if item is None else as_logged(item, column)
                for item, column in zip(row, table.columns, strict=True)
            )
            for row in rows
        )

    def applied(self) -> list[tuple[int, int]]:
        return [
            (int(seqno), int(rows)) for seqno, rows in self.query("SELECT seqno, rows FROM thl.thl_applied ORDER BY 1")
        ]

    def drop(self, table: TableLayout) -> None:
        self.reader.execute(f"DROP TABLE {table.name}".encode())

    def run(self, sql: str) -> None:
        self.reader.execute(sql.encode())

    def indexed(self, table: TableLayout) -> list[str]:
        sql = (
            "SELECT string_agg(a.attname, ',' ORDER BY k.place) FROM pg_index i, "
            "unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place), pg_attribute a "
            f"WHERE i.indrelid = '{table.name}'::regclass AND a.attrelid = i.indrelid AND a.attnum = k.number "
            "GROUP BY i.indexrelid ORDER BY 1"
        )
        return [str(columns) for (columns,) in self.query(sql)]

    def marks(self) -> int:
        return int(str(self.query("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'thl_marks_%'")[0][0]))

    def note_deletes(self, name: str, body: str) -> None:
        self.run(
            "CREATE OR REPLACE FUNCTION by_user() RETURNS trigger LANGUAGE plpgsql "
            f"AS $$BEGIN {body}; RETURN old; END$$"
        )
        self.run(f"CREATE TRIGGER by_user AFTER DELETE ON {name} FOR EACH ROW EXECUTE FUNCTION by_user()")

    def forget_deletes(self, name: str) -> None:
        self.run(f"DROP TRIGGER by_user ON {name}")

    def signals(self) -> SignalTable:
        return SignalTable(PostgresSignalSession(self.url))

    def staging(self) -> int:
        sql = (
            "SELECT count(*)::int FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' "
            "AND nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'thl') "
            "AND (nspname || '.' || relname) NOT IN (SELECT target_name FROM thl.thl_tables)"
        )
        left = -1
        for _ in range(100):  # a session's tables are dropped shortly after its end
            left = int(str(self.query(sql)[0][0]))
            if left == 0:
                break
            time.sleep(0.05)
        return left


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def readable(column: Column) -> str:
    """An expression whose value Python has exactly."""
    name = quoted(column.name)
    if column.type.startswith("time") and not column.type.startswith("timestamp"):
        return f"(extract(epoch FROM {name}) * 1000000)::bigint"
    if column.type.startswith(("datetime", "timestamp")):
        zone = " AT TIME ZONE 'UTC'" if column.type.startswith("timestamp") else ""
        return f"({name}{zone})::timestamp"
    return f"{name}::text" if column.type.startswith(("decimal", "date", "json", "bit", "float")) else name


def as_logged(item: object, column: Column) -> int | float | str | bytes:
    """A value as the log has it, from the type's own meaning: nothing of the target's code."""
    base, _, sizes = column.type.partition("(")
    places = int(sizes.rstrip(")")) if base in ("time", "datetime", "timestamp") and sizes else 0
    if base == "bigint" and column.unsigned:
        return int(str(item)) if int(str(item)) < 2**63 else str(item)
    if base == "bit":
        size = int(sizes.rstrip(")"))
        return int(str(item), 2).to_bytes((size + 7) // 8, "big")
    if base == "time":
        assert isinstance(item, int)
        seconds, micros = divmod(abs(item), 1_000_000)
        text = f"{'-' if item < 0 else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return text + f".{micros:06}"[: places + 1] if places else text
    if base in ("datetime", "timestamp"):
        assert isinstance(item, datetime)
        text = f"{item.year:04}-{item:%m-%d %H:%M:%S}"
        return text + f".{item.microsecond:06}"[: places + 1] if places else text
    if base == "float":
        import struct

        return float(struct.unpack("<f", struct.pack("<f", float(str(item))))[0])
    assert isinstance(item, int | float | str | bytes)
    return item


@pytest.fixture(scope="module")
def database(postgres_server: DatabaseServer) -> Iterator[str]:
    server = postgres_server
    base = f"postgresql://{server.user}:{server.password}@{server.host}:{server.port}"
    with psycopg.connect(f"{base}/postgres", autocommit=True) as admin:
        admin.execute("CREATE DATABASE target_contract ENCODING 'UTF8' TEMPLATE template0")
        yield f"{base}/target_contract"
        admin.execute("DROP DATABASE target_contract WITH (FORCE)")


@pytest.fixture
def place(database: str) -> Iterator[PostgresPlace]:
    made = PostgresPlace(database)
    yield made
    made.run("ALTER DATABASE target_contract RESET ALL")
    for target in made.opened:
        target.close()
    for (schema,) in made.query("SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^(pg_|information_)'"):
        made.reader.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    made.reader.close()


NOT_REPRESENTABLE = [
    ("date", "0000-00-00", "zero_date"),
    ("date", "2024-00-10", "zero_date"),
    ("date", "2023-02-29", "calendar"),
    ("date", "2023-13-01", "calendar"),
    ("datetime(3)", "0000-00-00 00:00:00.000", "zero_date"),
    ("timestamp", "0000-00-00 00:00:00", "zero_date"),
    ("varchar(9)", "a\0b", "zero_character"),
    ("json", '"\0"', "zero_character"),
]


@pytest.mark.parametrize(("kind", "value", "reason"), NOT_REPRESENTABLE)
def test_value_postgresql_lacks_stops_with_table_key_and_column(
    place: PostgresPlace, kind: str, value: str, reason: str
) -> None:
    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", f"CREATE TABLE z (id INT PRIMARY KEY, v {kind} NULL)")
    table = layout("shop.z", ["id int", f"v {kind}"], ["id"])
    with pytest.raises(ValueNotRepresentable) as caught:
        applier.rows(net(table, inserts=[(1, None), (41, value)]))
    assert (caught.value.where["table"], caught.value.where["column"]) == (table.name, "v")
    assert caught.value.where["reason"] == reason
    assert caught.value.where["row"] == "id=41"
    assert "thl apply --exclude-table shop.z --reason" in caught.value.hint
    assert ("zero_dates" in caught.value.hint) == ("-00" in value)
    assert place.read(table) == []


def test_zero_date_default_for_existing_rows_stops(place: PostgresPlace, applier: Applier) -> None:
    applier.rows(net(USERS, inserts=[(1, "ann", None)]))
    with pytest.raises(ValueNotRepresentable):
        applier.sql("ALTER TABLE users ADD born DATE NOT NULL")
    assert place.read(USERS) == [(1, "ann", None)]


def test_zero_date_default_for_an_empty_table_is_accepted(place: PostgresPlace, applier: Applier) -> None:
    applier.sql("ALTER TABLE users ADD born DATE NOT NULL")
    assert place.read(USERS) == []


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE users MODIFY name TEXT, ADD n INT, MODIFY id BIGINT",
        "ALTER TABLE users DROP name",
        "DROP TABLE users",
    ],
    ids=["type", "column", "table"],
)
def test_dependent_view_is_named_and_not_retried(place: PostgresPlace, applier: Applier, statement: str) -> None:
    place.run("CREATE VIEW shop.report AS SELECT id, name FROM shop.users")
    error = stops(applier, TargetDiffers, statement)
    assert "view shop.report" in error.message
    assert "DROP VIEW" in error.hint
    assert (error.where["seqno"], error.where["sql"]) == (1, statement)
    place.run("DROP VIEW shop.report")
    Applier(place.open()).sql(statement)


@pytest.mark.parametrize("column", ["xmin", "ctid", "tableoid"])
def test_system_column_name_is_refused_with_a_hint(applier: Applier, column: str) -> None:
    error = stops(applier, ValueNotRepresentable, f"ALTER TABLE users ADD {column} INT")
    assert error.where["column"] == column
    assert "source.filters.tables" in error.hint


TEXTS = layout("shop.texts", ["id varchar(20)", "v int"], ["id"])
COLLATIONS = {
    "case": "CREATE COLLATION IF NOT EXISTS shop.case_blind "
    "(provider = icu, locale = 'und-u-ks-level2', deterministic = false);"
    "ALTER TABLE shop.texts ALTER COLUMN id TYPE text COLLATE shop.case_blind",
    "order": 'ALTER TABLE shop.texts ALTER COLUMN id TYPE text COLLATE "und-x-icu"',
}


@pytest.fixture
def texts(place: PostgresPlace, applier: Applier) -> Applier:
    applier.sql("CREATE TABLE texts (id VARCHAR(20) PRIMARY KEY, v INT)")
    applier.rows(net(TEXTS, inserts=[("a", 1), ("b", 2)]))
    return applier


@pytest.mark.parametrize("collation", COLLATIONS)
def test_a_key_in_another_collation_is_refused_at_the_start_with_the_statement_that_ends_it(
    place: PostgresPlace, texts: Applier, collation: str
) -> None:
    """By one that takes a for A an insert would fail, too."""
    texts.target.close()
    place.run(COLLATIONS[collation])
    with pytest.raises(PreflightError) as refused:
        place.open().claim("shop")
    assert "shop.texts.id has" in refused.value.message
    place.run(refused.value.hint)
    again = Applier(place.open())
    again.rows(net(TEXTS, inserts=[("A", 3)], updates=[("b", 5)], deletes=[("a", 1)]))
    assert place.read(TEXTS) == [("A", 3), ("b", 5)]


def test_a_key_that_gets_another_collation_meanwhile_stops_with_the_way_out(
    place: PostgresPlace, texts: Applier
) -> None:
    place.run(COLLATIONS["order"])
    with pytest.raises(TargetDiffers) as stopped:
        texts.rows(net(TEXTS, updates=[("b", 5)]))
    assert 'TYPE text COLLATE "C"' in stopped.value.hint
    assert place.read(TEXTS) == [("a", 1), ("b", 2)]


def test_a_collation_of_an_excluded_table_or_of_another_column_is_not_looked_at(
    place: PostgresPlace, texts: Applier
) -> None:
    place.run('ALTER TABLE shop.users ALTER COLUMN name TYPE text COLLATE "und-x-icu"')
    entry = Excluded(since=Seqno(texts.position.seqno + 1), at=1, by="me@here", reason="why")
    texts.target.exclude({TEXTS.name: entry})
    texts.commit()
    texts.target.close()
    place.run(COLLATIONS["case"])
    assert place.open().claim("shop") == texts.position


@pytest.mark.parametrize(
    "wrong",
    [{"password": "secret"}, {"user": "nobody_there"}, {"dbname": "nothing_there"}],
    ids=["password", "user", "database"],
)
def test_refused_connection_is_not_retried(place: PostgresPlace, wrong: dict[str, str]) -> None:
    place.reader.execute("CREATE ROLE thl_other LOGIN PASSWORD 'x'")
    try:
        with pytest.raises(PreflightError) as raised:
            PostgresTarget(
                SecretStr(make_conninfo(place.url, **{"user": "thl_other", "password": "x", **wrong})), SystemClock()
            )
        assert "secret" not in str(raised.value)
    finally:
        place.reader.execute("DROP ROLE thl_other")


@pytest.mark.parametrize("given_by", ["database", "environment", "url"])
def test_text_is_utf8_whatever_encoding_clients_have(
    place: PostgresPlace, monkeypatch: pytest.MonkeyPatch, given_by: str
) -> None:
    text = "é€日"
    if given_by == "database":
        place.run("ALTER DATABASE target_contract SET client_encoding = 'LATIN1'")
    elif given_by == "environment":
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    else:
        place.url += "?client_encoding=latin1"
    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9))")
    applier.rows(net(layout("shop.t", ["id int", "v varchar(9)"], ["id"]), inserts=[(1, text)]))
    assert place.query("SELECT encode(convert_to(v, 'UTF8'), 'hex') FROM shop.t") == [(text.encode().hex(),)]


def test_a_table_of_another_service_is_refused_by_name(place: PostgresPlace, applier: Applier) -> None:
    create = "CREATE TABLE shop.t (id INT PRIMARY KEY)"
    applier.sql("CREATE DATABASE shop", create)
    with psycopg.connect(place.url) as other:
        other.execute("UPDATE thl.thl_tables SET service = 'other'")
        other.execute("DROP TABLE shop.t")
    applier.target.close()
    again = Applier(place.open())
    with pytest.raises(PreflightError, match="another service has a table of this name") as caught:
        again.sql(create)
    assert "a database for each service" in caught.value.hint


def test_timeouts_of_the_database_do_not_end_sessions(place: PostgresPlace) -> None:
    names = ["idle_session_timeout", "statement_timeout"]
    if place.reader.info.server_version >= 170000:
        names.append("transaction_timeout")
    for name in names:
        place.run(f"ALTER DATABASE target_contract SET {name} = '1s'")
    target = place.open()
    assert [target._db.execute(f"SHOW {name}".encode()).fetchone() for name in names] == [("0",)] * len(names)


def test_killed_session_loses_staged_rows(place: PostgresPlace, applier: Applier) -> None:
    applier.target.stage([net(USERS, inserts=[(1, "ann", None)])], last=False)
    place.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'thl shop'")
    with pytest.raises(TargetUnavailable):
        applier.commit()
    again = Applier(place.open())
    assert again.position.seqno == 0
    again.rows(net(USERS, inserts=[(1, "bob", None)]))
    assert place.read(USERS) == [(1, "bob", None)]


def test_staging_holds_no_lock_on_the_targets_tables(place: PostgresPlace, applier: Applier) -> None:
    applier.target.stage([net(USERS, inserts=[(1, "ann", None)])], last=False)
    with place.reader.transaction():
        place.reader.execute("SET LOCAL lock_timeout = '1s'")
        place.reader.execute("LOCK TABLE shop.users IN ACCESS EXCLUSIVE MODE")


def test_staging_tables_are_reused_and_do_not_grow(place: PostgresPlace, applier: Applier) -> None:
    for batch in range(30):
        applier.rows(net(USERS, inserts=[(batch * 1000 + n, "x" * 50, None) for n in range(1000)]))
    sizes = place.query("SELECT pg_relation_size(oid) FROM pg_class WHERE relname LIKE 'thl_stage_%'")
    assert len(sizes) == 1
    assert int(sizes[0][0]) < 10 * 1000 * 100


def test_names_longer_than_63_bytes_are_cut_and_two_of_them_refused(place: PostgresPlace, applier: Applier) -> None:
    long = "x" * 62
    applier.sql(f"CREATE TABLE {long}é (id INT PRIMARY KEY)")
    applier.rows(net(layout(f"shop.{long}é", ["id int"], ["id"]), inserts=[(1,)]))
    assert place.read(layout(f"shop.{long}", ["id int"])) == [(1,)]
    with pytest.raises(ValueNotRepresentable) as refused:
        applier.sql(f"CREATE TABLE {long}ü (id INT PRIMARY KEY)")
    assert (str(refused.value.where["other"]), str(refused.value.where["table"])) == (f"shop.{long}é", f"shop.{long}ü")


def test_an_interval_prints_as_mysql_prints_a_time(place: PostgresPlace, applier: Applier) -> None:
    applier.sql("CREATE TABLE t (v TIME)")
    applier.rows(net(layout("shop.t", ["v time"]), inserts=[("-838:59:59",)]))
    assert place.query("SELECT v::text, v FROM shop.t") == [
        ("-838:59:59", -timedelta(hours=838, minutes=59, seconds=59))
    ]


def test_newer_applier_waits_for_a_commit_and_replaces_a_stopped_one(
    place: PostgresPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulate an older process that is stopped between its merge and its COMMIT."""
    claimed: list[TargetPosition] = []
    before = applier.position

    def stand_still(name: str) -> None:
        if name == "target.before_commit" and not claimed:
            claimed.append(place.open().claim("shop"))

    applier.target._db.execute("SET idle_in_transaction_session_timeout = '300ms'")
    monkeypatch.setattr("connector.targets.postgres.target.faults.point", stand_still)
    with pytest.raises(TargetUnavailable):
        applier.rows(net(USERS, inserts=[(1, "old", None)]))
    with pytest.raises(Fenced):
        place.open().claim("shop", applier.target.token)
    assert claimed == [before]
    assert place.read(USERS) == []


def test_discarded_staging_is_dropped(place: PostgresPlace, applier: Applier) -> None:
    for _ in range(3):
        applier.target.stage([net(USERS, inserts=[(1, "ann", None)])], last=False)
        applier.target.discard()
    assert place.query("SELECT count(*)::int FROM pg_class WHERE relname LIKE 'thl_stage_%'") == [(0,)]


def test_account_without_temporary_tables_or_under_row_security_gets_the_remedy(place: PostgresPlace) -> None:
    ((database,),) = place.query("SELECT current_database()")
    place.reader.execute("DROP ROLE IF EXISTS thl_nobody")
    place.reader.execute(
        f"CREATE ROLE thl_nobody LOGIN PASSWORD 'x'; GRANT CREATE ON DATABASE {database} TO thl_nobody"
    )
    url, place.url = place.url, make_conninfo(place.url, user="thl_nobody", password="x")
    try:
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        rows = net(USERS, inserts=[(1, "x", None)])
        applier.rows(rows)
        place.reader.execute(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC")
        with pytest.raises(PreflightError) as refused:
            Applier(place.open()).rows(net(USERS, updates=[(1, "y", None)]))
        assert "GRANT TEMPORARY ON DATABASE" in refused.value.hint
        place.reader.execute(f"GRANT TEMPORARY ON DATABASE {database} TO PUBLIC")
        place.reader.execute("ALTER TABLE shop.users ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        with pytest.raises(ConnectorError) as under:
            Applier(place.open()).rows(net(USERS, inserts=[(2, "y", None)]))
        assert "BYPASSRLS" in under.value.hint
    finally:
        place.url = url
        place.reader.execute(f"GRANT TEMPORARY ON DATABASE {database} TO PUBLIC")
        place.reader.execute("DROP OWNED BY thl_nobody; DROP ROLE thl_nobody")


def test_account_without_create_gets_the_grant_as_hint(place: PostgresPlace) -> None:
    place.reader.execute("DROP ROLE IF EXISTS thl_nobody")
    place.reader.execute("CREATE ROLE thl_nobody LOGIN PASSWORD 'x'")
    try:
        url = make_conninfo(place.url, user="thl_nobody", password="x")
        target = PostgresTarget(SecretStr(url), SystemClock())
        with pytest.raises(PreflightError) as refused:
            target.claim("shop")
        assert "GRANT CREATE" in refused.value.hint
        target.close()
    finally:
        place.reader.execute("DROP ROLE thl_nobody")


@pytest.mark.parametrize(
    ("columns", "indexed"),
    [
        (["a varchar(700) not null", "b int"], "a"),
        (["a int not null", "b varbinary(3000) not null"], "b"),
        (["a varchar(100) not null", "b varbinary(2000) not null"], "a,b"),
    ],
    ids=["a hash of one", "a hash of the longest", "a B-tree that has room"],
)
def test_key_too_long_for_a_btree_gets_a_hash_index(
    place: PostgresPlace, applier: Applier, columns: list[str], indexed: str
) -> None:
    names = [column.split()[0] for column in columns if "not null" in column]
    applier.sql(f"CREATE TABLE told ({', '.join(columns)}, UNIQUE KEY ({', '.join(names)}))")
    told = layout("shop.told", columns, names)
    long: Row = tuple("é" * 700 if "char" in c else b"\xff" * 2000 if "binary" in c else 1 for c in columns)
    applier.rows(net(told, inserts=[long]))
    applier.rows(net(told, deletes=[long]))
    assert (place.indexed(told), place.read(told)) == ([indexed], [])
    ((definition,),) = place.query("SELECT indexdef FROM pg_indexes WHERE tablename = 'told'")
    assert ('COLLATE "C"' in str(definition)) == ("a varchar" in columns[0])  # as the merge compares


@pytest.fixture
def gtids(place: PostgresPlace) -> Iterator[PostgresPlace]:
    PostgresTarget(SecretStr(place.url), SystemClock()).claim("shop")
    yield place


def sets_of_mysql(random: Random) -> str:
    sources = ["6f1c9a52-0000-11ee-8c99-0242ac120002", "7" * 8 + "-1111-2222-3333-" + "a" * 12]
    parts = []
    for source in random.sample([*sources, f"{sources[0]}:tag", f"{sources[0]}:other"], random.randint(0, 3)):
        spans = [(first, first + random.randint(0, 4)) for first in random.sample(range(1, 14), random.randint(1, 3))]
        parts.append(":".join([source, *(f"{first}-{last}" if first < last else str(first) for first, last in spans)]))
    return ",".join(parts)


def positions_of_mariadb(random: Random) -> str:
    count = random.randint(1, 3)
    return ",".join(f"{random.randint(0, 2)}-{random.randint(1, 2)}-{random.randint(0, 5)}" for _ in range(count))


def test_gtids_are_compared_as_the_log_compares_them(gtids: PostgresPlace) -> None:
    random = Random(7)
    pairs, expected = [], []
    for _ in range(600):
        applied, wanted = sets_of_mysql(random), sets_of_mysql(random)
        pairs.append((str(GtidSet.parse(applied)), wanted.upper() if random.random() < 0.3 else wanted))
        expected.append(GtidSet.parse(wanted).issubset(GtidSet.parse(applied)))
    for _ in range(600):
        applied, wanted = positions_of_mariadb(random), positions_of_mariadb(random)
        there = DomainPosition.parse(applied)
        pairs.append((str(there), wanted))
        expected.append(all(one.endswith("-0") or there.contains(one) for one in wanted.split(",")))
    assert 200 < sum(expected) < 1000
    found = gtids.reader.execute(
        "SELECT thl.thl_has_gtid(a, w) FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS p (a, w, n) ORDER BY n",
        ([one for one, _ in pairs], [one for _, one in pairs]),
    ).fetchall()
    assert [row[0] for row in found] == expected


@pytest.mark.parametrize(
    ("applied", "wanted", "expected"),
    [
        ("", "", True),
        ("", "0-1-0", True),
        ("", "0-1-1", False),
        ("0-1-7", "6f1c9a52-0000-11ee-8c99-0242ac120002:1", False),
        ("6f1c9a52-0000-11ee-8c99-0242ac120002:1-9223372036854775806", "6f1c9a52000011ee8c990242ac120002:9", True),
        ("6f1c9a52-0000-11ee-8c99-0242ac120002:1-5:7", "6f1c9a52-0000-11ee-8c99-0242ac120002:6", False),
        ("6f1c9a52-0000-11ee-8c99-0242ac120002:1-5:t:1-9", "6f1c9a52-0000-11ee-8c99-0242ac120002:9", False),
        ("6f1c9a52-0000-11ee-8c99-0242ac120002:1-5:t:1-9", " 6F1C9A52-0000-11EE-8C99-0242AC120002 : T : 9", True),
        ("0-1-18446744073709551615", "0-1-18446744073709551614", True),
    ],
)
def test_gtids_at_the_limits_are_compared(gtids: PostgresPlace, applied: str, wanted: str, expected: bool) -> None:
    assert gtids.reader.execute("SELECT thl.thl_has_gtid(%s, %s)", (applied, wanted)).fetchone() == (expected,)


@pytest.mark.parametrize(
    "wrong",
    ["x", "6f1c9a52-0000-11ee-8c99-0242ac120002", "6f1c9a52-0000-11ee-8c99-0242ac120002:0", "0-1-2,x",
     "6f1c9a52-0000-11ee-8c99-0242ac120002:t", "6f1c9a52-0000-11ee-8c99-0242ac120002:9223372036854775807"],
)  # fmt: skip
def test_malformed_gtid_is_refused_at_once(gtids: PostgresPlace, wrong: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        gtids.reader.execute("SELECT thl.thl_wait_for_gtid(%s, '1 hour')", (wrong,))


def test_a_reader_waits_until_its_write_has_come(place: PostgresPlace, applier: Applier) -> None:
    uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
    wait = "SELECT thl.thl_wait_for_gtid(%s, %s)"
    assert place.reader.execute(wait, (f"{uuid}:5", "0 s")).fetchone() == (True,)
    assert place.reader.execute(wait, (f"{uuid}:6", "0.05 s")).fetchone() == (False,)
    applier.commit(consistent=False)
    assert place.reader.execute(wait, (f"{uuid}:5", "0.05 s")).fetchone() == (False,)
    with psycopg.connect(place.url, autocommit=True) as waiting, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: waiting.execute(wait, (f"{uuid}:5", "30 s")).fetchone())
        with pytest.raises(FuturesTimeout):
            answer.result(0.2)
        applier.commit()
        assert answer.result(10) == (True,)
    assert place.reader.execute(f"{wait[:-1]}, service => 'other')", (f"{uuid}:5", "0 s")).fetchone() == (False,)
    assert place.reader.execute("SELECT thl.thl_wait_for_gtid(NULL)").fetchone() == (None,)


def test_wait_in_repeatable_read_is_refused(place: PostgresPlace, applier: Applier) -> None:
    del applier
    with pytest.raises(psycopg.errors.ActiveSqlTransaction), place.reader.transaction():
        place.reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        place.reader.execute("SELECT thl.thl_wait_for_gtid('0-1-1')")


def test_missing_bookkeeping_is_created_by_the_next_claim(place: PostgresPlace, applier: Applier) -> None:
    applier.commit()
    place.reader.execute("DROP VIEW thl.thl_progress")
    place.reader.execute("DROP FUNCTION thl.thl_has_gtid(text, text)")
    place.open().claim("shop")
    assert place.query("SELECT seqno, consistent FROM thl.thl_progress") == [(1, True)]
    assert place.query("SELECT thl.thl_has_gtid('', '')") == [(True,)]


def test_account_that_may_only_write_works_without_views(place: PostgresPlace, applier: Applier) -> None:
    applier.target.close()
    place.reader.execute("DROP VIEW thl.thl_progress")
    place.reader.execute("DROP ROLE IF EXISTS thl_writer")
    place.reader.execute("CREATE ROLE thl_writer LOGIN PASSWORD 'x'")
    try:
        place.reader.execute("GRANT USAGE ON SCHEMA thl TO thl_writer")
        place.reader.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA thl TO thl_writer")
        target = PostgresTarget(SecretStr(make_conninfo(place.url, user="thl_writer", password="x")), SystemClock())
        assert target.claim("shop") == applier.position
        target.close()
        assert place.query("SELECT to_regclass('thl.thl_progress')") == [(None,)]
    finally:
        place.reader.execute("DROP OWNED BY thl_writer")
        place.reader.execute("DROP ROLE thl_writer")


def test_concurrent_definitions_are_retryable(place: PostgresPlace) -> None:
    """The server's errors for a cached plan, and for a schema that two sessions create at once."""
    with psycopg.connect(place.url, autocommit=True) as one, psycopg.connect(place.url, autocommit=True) as other:
        one.execute("CREATE SCHEMA mine; CREATE TABLE mine.kept (a int)")
        one.execute("PREPARE kept AS SELECT * FROM mine.kept")
        one.execute("EXECUTE kept")
        other.execute("ALTER TABLE mine.kept ADD b int")
        with retryable("0A000"):  # feature_not_supported: the cached plan has another result
            one.execute("EXECUTE kept")
        one.execute("BEGIN; CREATE SCHEMA shared")
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(other.execute, "CREATE SCHEMA shared")
            while place.query(f"SELECT pg_blocking_pids({other.info.backend_pid}) = '{{}}'") == [(True,)]:
                assert not waiting.done()
            one.execute("COMMIT")
            with retryable("23505"):  # unique_violation, of the index of schema names
                waiting.result()
        with retryable("42P06"):  # duplicate_schema
            other.execute("CREATE SCHEMA shared")


@contextmanager
def retryable(sqlstate: str) -> Iterator[None]:
    with pytest.raises(TargetUnavailable) as raised, translated():
        yield
    assert isinstance(raised.value.__cause__, psycopg.Error)
    assert raised.value.__cause__.sqlstate == sqlstate


def test_account_that_may_not_create_marks_gets_the_grant(place: PostgresPlace) -> None:
    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", CREATE_USERS)
    applier.target.close()
    place.reader.execute("DROP ROLE IF EXISTS thl_markless; CREATE ROLE thl_markless LOGIN PASSWORD 'x'")
    place.reader.execute("GRANT USAGE ON SCHEMA thl TO thl_markless; GRANT ALL ON SCHEMA shop TO thl_markless")
    place.reader.execute("GRANT ALL ON ALL TABLES IN SCHEMA thl, shop TO thl_markless")
    place.url = make_conninfo(place.url, user="thl_markless", password="x")
    try:
        with pytest.raises(PreflightError) as refused:
            begin(Applier(place.open()))
        assert "GRANT CREATE, USAGE ON SCHEMA thl" in refused.value.hint
        place.opened.pop().close()
        place.reader.execute("GRANT CREATE ON SCHEMA thl TO thl_markless")
        begin(Applier(place.open()))
        assert states(place) == {"shop.users": "marked"}
        place.opened.pop().close()
    finally:
        place.reader.execute("DROP OWNED BY thl_markless; DROP ROLE thl_markless")


def test_view_on_a_quarantined_table_that_is_loaded_stops_no_other_table(place: PostgresPlace) -> None:
    records = [
        ddl(0, "CREATE DATABASE shop", "CREATE TABLE good (id INT PRIMARY KEY, v INT)", CREATE_ORDERS),
        record(1, [made("insert", None, [1, "one"])], last_barrier=0),
        record(2, [made("update", [9, "missing"], [9, "new"])], last_barrier=0),
    ]
    applied(place, records)
    place.run("CREATE VIEW shop.report AS SELECT v FROM shop.orders")
    records += [
        load_record(3, [statement(CREATE_ORDERS)], part=Part.BEGIN, shard=UNKNOWN_SHARD, last_barrier=0),
        load_record(4, [made("read", None, [2, "two"])], last_barrier=3),
        record(5, inserted(5, "good"), last_barrier=3),
    ]
    applied(place, records)
    assert place.read(GOOD) == [(5, 5)]
    assert place.read(ORDERS) == [(1, "one")]
    with place.signals() as signals:
        (entry,) = signals.excluded("shop").values()
    assert entry.since == 3
    assert "report" in entry.reason


@pytest.mark.parametrize("action", ["ON DELETE CASCADE", "ON DELETE SET NULL", ""])
def test_load_leaves_rows_of_other_tables_that_refer_to_it(place: PostgresPlace, action: str) -> None:
    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", CREATE_USERS)
    applier.rows(net(USERS, inserts=[(1, "ann", "a"), (2, "bob", "b")]))
    place.run("CREATE TABLE child (id int PRIMARY KEY, p int)")
    place.run(f"ALTER TABLE child ADD CONSTRAINT by_user FOREIGN KEY (p) REFERENCES shop.users (id) {action}")
    place.run("INSERT INTO child VALUES (10, 1), (20, 2)")
    begin(applier)
    applier.rows(net(USERS, updates=[(1, "ann", "read"), (2, "bob", "read")]))
    applier.rows(net(USERS, updates=[(2, "bob", "changed")]))
    end(applier)
    assert place.query("SELECT id, p FROM child ORDER BY id") == [(10, 1), (20, 2)]
    assert place.read(USERS) == [(1, "ann", "read"), (2, "bob", "changed")]
    place.run("ALTER TABLE shop.users ADD UNIQUE (mail) DEFERRABLE INITIALLY DEFERRED")
    with pytest.raises(TargetDiffers, match=r"foreign key by_user of .*child") as stopped:
        begin(applier, load="l2")
    assert "DROP CONSTRAINT" in stopped.value.hint
    assert stopped.value.tables == (USERS.name,)


def test_swap_in_a_unique_index_of_others_needs_one_that_is_checked_at_the_commit(place: PostgresPlace) -> None:
    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", CREATE_USERS)
    applier.rows(net(USERS, inserts=[(1, "ann", "a"), (2, "bob", "b")]))
    unique(place, USERS, "mail")
    swapped = net(USERS, updates=[(1, "ann", "b"), (2, "bob", "a")])
    with pytest.raises(TargetDiffers, match="by_user") as stopped:
        applier.rows(swapped)
    assert "ADD UNIQUE (…) DEFERRABLE INITIALLY DEFERRED" in stopped.value.hint
    place.run("DROP INDEX shop.by_user")
    place.run("ALTER TABLE shop.users ADD UNIQUE (mail) DEFERRABLE INITIALLY DEFERRED")
    applier = Applier(place.open())
    applier.rows(swapped)
    applier.rows(net(USERS, updates=[(1, "ann", "a")], changed=[({"id": 2, "mail": "b"}, (2,))]))
    assert place.read(USERS) == [(1, "ann", "a"), (2, "bob", "b")]
