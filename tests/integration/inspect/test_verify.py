"""`thl verify` finds every kind of difference, and none in equal tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY
from pydantic import SecretStr

from connector.cli import run as thl
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.filters import Filters, Mask, TableRule
from connector.config.model import Config
from connector.errors import ConfigError, PreflightError
from connector.logs import fields_of
from connector.mysql.server.dump import open_stream
from connector.targets.open import open_target
from connector.verify import Difference, Report, TableReport, verify
from connector.verify.report import DifferenceKind
from connector.verify.source import SourceReader
from connector.verify.watch import watch
from tests.integration.mariadb.test_log import CASES
from tests.support.loading import EVERYTHING, a_database, load_into, run
from tests.support.servers.environment import DatabaseServer, SqlServer

KEY = SecretStr("a key for this test alone")


@dataclass(frozen=True)
class Pair:
    """A source and a target that are equal."""

    config: Config
    database: str
    file: Path

    def change_target(self, sql: str) -> None:
        with sqlite3.connect(self.file) as connection:
            connection.execute(sql.format(db=self.database))
        connection.close()

    def change_source(self, *sql: str) -> None:
        run(self.config.source, self.database, *sql)

    def verify(self, *tables: str) -> Report:
        return verify(self.config, [f"{self.database}.{table}" for table in tables] or None, patience=0.5)

    def differences(self, table: str) -> list[DifferenceKind]:
        return [difference.what for difference in self.report(table).differences]

    def report(self, table: str) -> TableReport:
        found = self.verify()
        others = [report for report in found.tables if report.name != f"{self.database}.{table}"]
        assert all(report.equal for report in others), others
        return next(report for report in found.tables if report.name == f"{self.database}.{table}")


@contextmanager
def a_pair(
    server: SqlServer,
    statements: Iterable[str],
    *,
    file: Path = Path(),
    url: str = "",
    rules: Callable[[str], tuple[TableRule, ...]] = lambda _: (),
) -> Iterator[Pair]:
    """What the statements make, loaded into a file, or into the target at a URL under a service of its own."""
    with a_database(server, "verify") as (whole, name):
        run(whole, name, *statements)
        filters = Filters(do=(name,), tables=rules(name), hash_key=KEY)
        source = whole.model_copy(update={"filters": filters})
        to = Target(url=url or f"sqlite:///{file}")
        config = Config(service=name if url else "default", source=source, target=to)
        target = open_target(to, SystemClock())
        load_into(target, source, config.service)
        target.close()
        yield Pair(config, name, file)


@pytest.fixture
def pair(mysql_server: SqlServer, tmp_path: Path) -> Iterator[Pair]:
    with a_pair(mysql_server, ("SET NAMES utf8mb4", *EVERYTHING), file=tmp_path / "target.db") as made:
        yield made


def test_equal_tables_of_all_types_are_equal(pair: Pair) -> None:
    report = pair.verify()
    assert report.equal, [str(d) for table in report.tables for d in table.differences]
    assert report.exact
    assert {table.name.partition(".")[2]: table.rows for table in report.tables} == {
        "everything": 4,
        "nokey": 6,
        "prefixed": 2,
        "zeros": 2,
        "labelled": 2,
        "computed": 2,
    }


@pytest.mark.parametrize(
    ("column", "changed"),
    [
        ("t1", "t1 + 1"),
        ("d", "'-12345678901234567890123456789012345.123456789012345678901234567891'"),
        ("f", "3.1415929794311523"),
        ("db", "0.10000000000000002"),
        ("b64", "x'fffffffffffffffe'"),
        ("ti6", "'-838:59:58.999998'"),
        ("ts6", "'1970-01-01 00:00:01.000002'"),
        ("v", "'var😀'"),
        ("v", "'vär😀 '"),
        ("bi", "x'0100000000000001'"),
        ("vb", "x'00010200'"),
        ("e", "'a'"),
        ("st", "'x'"),
        ("j", "replace(j, '1e100', '1e101')"),
        ("g", "CAST(substr(g, 1, 24) || x'3e' AS BLOB)"),
        ("ve", "NULL"),
    ],
)
def test_changed_bit_is_found_in_every_type(pair: Pair, column: str, changed: str) -> None:
    pair.change_target(f'UPDATE "{{db}}.everything" SET "{column}" = {changed} WHERE t1 = -128')
    (difference,) = pair.report("everything").differences
    assert difference.what is DifferenceKind.CHANGED
    assert f"{column}: " in difference.detail
    assert "i8u=18446744073709551615, id=1" in difference.row


def ruled(pair: Pair, *rules: TableRule, do: tuple[str, ...] | None = None) -> Pair:
    """The same with rules, or other patterns, in its configuration; the target is as it was."""
    filters = Filters(do=(pair.database,) if do is None else do, tables=rules, hash_key=KEY)
    source = pair.config.source.model_copy(update={"filters": filters})
    return Pair(pair.config.model_copy(update={"source": source}), pair.database, pair.file)


def test_partly_published_tables_are_in_verdict(pair: Pair) -> None:
    pair.change_target('DELETE FROM "{db}.prefixed"')
    rule = TableRule(match=(f"{pair.database}.prefixed", "*.gone"), actions=("insert", "ddl"))
    some = ruled(pair, rule)
    report = some.verify()
    assert report.equal
    assert report.filtered == (f"{pair.database}.prefixed",)
    assert report.verdict == "not all compared"
    assert f"{pair.database}.prefixed" not in {table.name for table in report.tables}
    left_out = verify(some.config, ignored=["*.pre*"], patience=0.5)
    assert (left_out.verdict, left_out.filtered) == ("equal", ())
    assert left_out.left_out == (f"{pair.database}.prefixed",)
    with pytest.raises(ConfigError) as raised:
        some.verify("prefixed")
    assert raised.value.where == {"tables": f"{pair.database}.prefixed"}
    with pytest.raises(ConfigError) as raised:
        verify(some.config, ignored=["x"], patience=0.5)
    assert raised.value.where == {"pattern": "x"}


def test_no_compared_table_is_not_equal(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.change_target("DELETE FROM thl_tables")
    report = ruled(pair, do=("nothing",)).verify()
    assert (report.tables, report.equal, report.verdict) == ((), False, "not all compared")
    assert thl([*arguments_of(pair), "--set", "source.filters.do=nothing"]) == 13
    assert capsys.readouterr().out.startswith("nothing was compared at seqno ")


def test_rule_without_effect_on_rows_is_compared(pair: Pair) -> None:
    rule = TableRule(match=(f"{pair.database}.*",), zero_dates=("no_such*",), actions=("insert", "update", "delete"))
    report = ruled(pair, rule).verify()
    assert (report.verdict, report.filtered, len(report.tables)) == ("equal", (), 6)
    pair.change_target('DELETE FROM "{db}.nokey" WHERE a = 2')
    assert ruled(pair, rule).verify().verdict == "different"


RULED = (
    "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(80), mail VARCHAR(80), note TEXT, born DATE,"
    " seen DATETIME(3), salary INT, rate DOUBLE, mass FLOAT, secret VARBINARY(9))",
    "INSERT INTO people VALUES"
    " (1, 'Zoë', 'zoe@x', 'äöü😀 and more', '0000-00-00', '0000-00-00 00:00:00.000', 7, 1.5, 2, 'x'),"
    " (2, NULL, NULL, NULL, '2024-02-29', '2024-02-29 10:11:12.125', NULL, NULL, NULL, NULL),"
    " (3, '', '', '', NULL, NULL, -1, 0, 0, '')",
    "CREATE TABLE plain (id INT PRIMARY KEY, born DATE)",
    "INSERT INTO plain VALUES (1, '0000-00-00')",
)
RULES = TableRule(
    match=("*.people",),
    drop=("secret",),
    mask={
        "mail": Mask(hash=16), "note": Mask(truncate=3), "salary": Mask(fixed=0), "rate": Mask(fixed=0.1),
        "mass": Mask(fixed=0.1),
    },
    zero_dates=("born", "seen"),
    rename={"name": "called"},
)  # fmt: skip


@contextmanager
def a_ruled_pair(server: SqlServer, **to: Any) -> Iterator[Pair]:
    def rules(database: str) -> tuple[TableRule, ...]:
        return RULES, TableRule(match=(f"{database}.plain",), zero_dates=("*",), publish_as="elsewhere.dates")

    with a_pair(server, RULED, rules=rules, **to) as made:
        yield made


def test_tables_with_rules_are_compared_with_rules_applied(mysql_server: SqlServer, tmp_path: Path) -> None:
    with a_ruled_pair(mysql_server, file=tmp_path / "target.db") as made:
        report = made.verify()
        assert report.verdict == "equal", [str(d) for table in report.tables for d in table.differences]
        assert [(table.name, table.rows, table.target) for table in report.tables] == [
            (f"{made.database}.people", 3, ""), (f"{made.database}.plain", 1, "elsewhere.dates"),
        ]  # fmt: skip
        for column in ("called", "mail", "note", "born", "seen", "salary", "rate", "mass"):
            with sqlite3.connect(made.file) as connection:
                (before,) = connection.execute(f'SELECT {column} FROM "{made.database}.people" WHERE id = 1').fetchone()
            made.change_target(f'UPDATE "{{db}}.people" SET {column} = 5 WHERE id = 1')
            (difference,) = made.report("people").differences
            assert f"{column}: " in difference.detail
            with sqlite3.connect(made.file) as connection:
                connection.execute(f'UPDATE "{made.database}.people" SET {column} = ? WHERE id = 1', (before,))
        assert made.verify().verdict == "equal"
        made.change_target("UPDATE \"elsewhere.dates\" SET born = '2024-01-01'")
        assert made.differences("plain") == [DifferenceKind.CHANGED]


def test_tables_with_rules_are_compared_with_rules_applied_in_postgres(
    mysql_server: SqlServer, postgres_server: DatabaseServer
) -> None:
    with a_ruled_pair(mysql_server, url=postgres_server.dsn) as made:
        report = made.verify()
        assert report.verdict == "equal", [str(d) for table in report.tables for d in table.differences]
        change_postgres(made, "UPDATE \"{db}\".people SET note = 'äö' WHERE id = 1")
        assert made.differences("people") == [DifferenceKind.CHANGED]


def test_renamed_columns_are_compared_by_published_name(pair: Pair) -> None:
    rule = TableRule(match=(f"{pair.database}.prefixed",), rename={"A": "b", "n": "a"})
    source = pair.config.source.model_copy(update={"filters": Filters(do=(pair.database,), tables=(rule,))})
    ruled = Pair(pair.config.model_copy(update={"source": source}), pair.database, pair.file)
    (difference,) = ruled.report("prefixed").differences
    assert difference.detail == "(columns b, a on the source, a, n on the target)"
    for old, new in (("a", "b"), ("n", "a")):
        pair.change_target(f'ALTER TABLE "{{db}}.prefixed" RENAME COLUMN {old} TO {new}')
    assert ruled.verify("prefixed").equal
    pair.change_target("UPDATE \"{db}.prefixed\" SET a = 3 WHERE b = 'aaaab'")
    (difference,) = ruled.report("prefixed").differences
    assert (difference.what, difference.row) == (DifferenceKind.CHANGED, "b=aaaab")
    assert difference.detail == "(a: 2 on the source, 3 on the target)"


def test_changed_key_is_missing_and_extra_row(pair: Pair) -> None:
    pair.change_target("UPDATE \"{db}.prefixed\" SET a = 'other' WHERE n = 1")
    assert sorted(pair.differences("prefixed")) == sorted([DifferenceKind.MISSING, DifferenceKind.EXTRA])


def test_negative_zero_differs_from_zero(pair: Pair) -> None:
    pair.change_target('UPDATE "{db}.everything" SET f = 0.0 WHERE t1 = 5')
    assert pair.differences("everything") == [DifferenceKind.CHANGED]


def test_zero_date_differs_from_null(pair: Pair) -> None:
    pair.change_target("UPDATE \"{db}.zeros\" SET d = NULL WHERE d = '0000-00-00'")
    assert sorted(pair.differences("zeros")) == sorted([DifferenceKind.MISSING, DifferenceKind.EXTRA])


def test_missing_row_is_found(pair: Pair) -> None:
    pair.change_target('DELETE FROM "{db}.everything" WHERE t1 = 6')
    assert pair.differences("everything") == [DifferenceKind.MISSING]


def test_extra_row_is_found(pair: Pair) -> None:
    pair.change_target("INSERT INTO \"{db}.prefixed\" VALUES ('zzz', 3)")
    assert pair.differences("prefixed") == [DifferenceKind.EXTRA]


@pytest.mark.parametrize(
    "sql", ["INSERT INTO {t} SELECT * FROM {t} WHERE a = 2", "INSERT INTO {t} VALUES (NULL, NULL)"]
)
def test_duplicate_row_without_key_is_found(pair: Pair, sql: str) -> None:
    pair.change_target(sql.replace("{t}", '"{db}.nokey"'))
    assert pair.differences("nokey") == [DifferenceKind.COUNT]


def test_missing_duplicate_row_is_found(pair: Pair) -> None:
    pair.change_target('DELETE FROM "{db}.nokey" WHERE rowid = (SELECT min(rowid) FROM "{db}.nokey" WHERE a = 1)')
    (difference,) = pair.report("nokey").differences
    assert str(difference) == "a=1, b=x is present a different number of times (2 on the source, 1 on the target)"


def test_change_of_source_is_found(pair: Pair) -> None:
    pair.change_source("UPDATE prefixed SET n = n + 1 WHERE n = 2")
    report = pair.verify()
    assert not report.equal
    assert not report.exact
    assert pair.differences("prefixed") == [DifferenceKind.CHANGED]


def test_table_of_one_side_is_found(pair: Pair) -> None:
    pair.change_source("CREATE TABLE more (id INT)")
    assert pair.differences("more") == [DifferenceKind.MISSING]
    pair.change_source("DROP TABLE more", "DROP TABLE zeros")
    assert pair.differences("zeros") == [DifferenceKind.EXTRA]


def test_additional_column_is_found(pair: Pair) -> None:
    pair.change_source("ALTER TABLE nokey ADD COLUMN c INT")
    (difference,) = pair.report("nokey").differences
    assert "columns a, b, c on the source, a, b on the target" in str(difference)


def test_excluded_table_is_named_and_not_equal(pair: Pair) -> None:
    pair.change_target("INSERT INTO thl_excluded VALUES ('default', '{db}', 'nokey', 7, 1, 'me@here', 'why', 0)")
    (difference,) = pair.report("nokey").differences
    assert str(difference) == "the table is not applied since event 7 (thl apply --exclude-table)"


LOADING = "INSERT INTO {}thl_loading VALUES ('{}', '{{db}}', 'nokey', 'a1', 7, 1, 'new', '', {})"


def test_table_that_is_being_loaded_is_named_and_not_equal(pair: Pair) -> None:
    pair.change_target(LOADING.format("", pair.config.service, 1))
    (difference,) = pair.report("nokey").differences
    assert str(difference) == "the table is being loaded since event 7 (thl load --status)"


def test_table_that_is_being_loaded_into_postgres_is_named(postgres_pair: Pair) -> None:
    change_postgres(postgres_pair, LOADING.format("thl.", postgres_pair.config.service, "true"))
    (difference,) = postgres_pair.report("nokey").differences
    assert difference.what is DifferenceKind.LOADING


def test_chosen_tables_alone_are_compared(pair: Pair) -> None:
    pair.change_target('DELETE FROM "{db}.nokey"')
    assert pair.verify("prefixed", "zeros").equal
    assert not pair.verify("nokey").equal
    with pytest.raises(ConfigError) as raised:
        pair.verify("nothing_there")
    assert raised.value.where == {"tables": f"{pair.database}.nothing_there"}


def test_wrong_name_is_refused_before_the_wait_for_a_lagging_target(pair: Pair) -> None:
    class Unused(SystemClock):
        def sleep(self, seconds: float) -> None:
            raise AssertionError("it waits for the target")

    pair.change_source("INSERT INTO nokey VALUES (9, 'x')")
    name = f"{pair.database}.nothing_there"
    for tables, ignored in (((name,), ()), ((f"{pair.database}.nokey", name), ()), (None, ("nothing.*",))):
        with pytest.raises(ConfigError, match="no captured table"):
            verify(pair.config, tables, ignored=ignored, patience=60.0, clock=Unused())
    with pytest.raises(AssertionError, match="it waits"):
        verify(pair.config, [f"{pair.database}.nokey"], patience=60.0, clock=Unused())


def test_target_without_applied_events_is_refused(pair: Pair, tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    config = pair.config.model_copy(update={"target": Target(url=f"sqlite:///{file}")})
    for make in (lambda: None, file.touch):
        make()
        with pytest.raises(PreflightError) as raised:
            verify(config)
        assert raised.value.hint == "thl apply"


def arguments_of(pair: Pair) -> list[str]:
    source = pair.config.source
    return [
        "verify", "--stall-timeout", "0.5",
        "--set", f"source.host={source.host}", "--set", f"source.port={source.port}",
        "--set", f"source.user={source.user}", "--set", f"source.password={source.password.get_secret_value()}",
        "--set", f"source.filters.do={pair.database}", "--set", f"target.url=sqlite:///{pair.file}",
    ]  # fmt: skip


def test_command_prints_result_and_exits_with_its_code(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = arguments_of(pair)
    assert thl(arguments) == 0
    told = capsys.readouterr().out
    assert f"{pair.database}.nokey: 6 rows, equal\n" in told
    assert told.splitlines()[-1].startswith("source and target are equal at seqno ")
    pair.change_target('DELETE FROM "{db}.nokey" WHERE a = 2')
    assert thl(arguments) == 9
    told = capsys.readouterr().out
    assert "  a=2, b= is missing on the target" in told
    assert told.splitlines()[-1].startswith("source and target are NOT equal at seqno ")
    assert thl([*arguments, "--ignore", "*.nokey"]) == 0
    assert f"{pair.database}.nokey: not compared (--ignore)" in capsys.readouterr().out
    rule = json.dumps([{"match": [f"{pair.database}.nokey"], "actions": ["insert"]}])
    assert thl([*arguments, "--set", f"source.filters.tables={rule}"]) == 13
    assert "were NOT compared" in capsys.readouterr().out
    assert thl([*arguments, "--set", f"source.filters.tables={rule}", "--format", "json"]) == 13
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["filtered"]) == ("not all compared", [f"{pair.database}.nokey"])


@pytest.fixture
def postgres_pair(mysql_server: SqlServer, postgres_server: DatabaseServer) -> Iterator[Pair]:
    # Dates with zeros in them have no equal in PostgreSQL.
    statements = ("SET NAMES utf8mb4", *(sql for sql in EVERYTHING if "zeros" not in sql))
    with a_pair(mysql_server, statements, url=postgres_server.dsn) as made:
        yield made


def change_postgres(pair: Pair, sql: str) -> None:
    with psycopg.connect(pair.config.target.url.get_secret_value(), autocommit=True) as connection:
        connection.execute(sql.format(db=pair.database))


def test_lagging_target_is_compared_once_and_the_missing_process_is_named(
    postgres_pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair = postgres_pair
    source = pair.config.source.model_copy(update={"server_id": 4_000_000_123})
    pair.change_source("INSERT INTO nokey VALUES (9, 'x')")
    config = pair.config.model_copy(update={"source": source})
    alone = verify(config, patience=0.5)
    assert not alone.equal
    assert alone.lags == "no producer reads the source's binary log: thl produce"
    (warning,) = caplog.records  # the comparison is not repeated
    assert fields_of(warning)["why"] == alone.lags
    with closing(SourceReader(source)) as reader:
        position = reader.view().position
    with closing(open_stream(source, position)):
        assert verify(config, patience=0.5).lags == "no applier has a session with the target: thl apply"
        with closing(open_target(config.target, SystemClock())) as target:
            target.claim(config.service)
            assert verify(config, patience=0.5).lags == "producer and applier run"


def test_command_names_the_process_that_a_lagging_target_lacks(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    pair.change_source("INSERT INTO nokey VALUES (9, 'x')")
    arguments = [*arguments_of(pair), "--set", "source.server_id=4000000124", "--stall-timeout", "0.5"]
    assert thl(arguments) == 9
    assert "source's position (no producer reads the source's binary log: thl produce): " in capsys.readouterr().out


def with_metadata_columns(pair: Pair) -> None:
    """The target's tables get some; their rows are as they were."""
    columns = {"seqno": "thl_seqno", "commit_time": "thl_commit_time"}
    config = pair.config.target.model_copy(update={"metadata_columns": columns})
    target = open_target(config, SystemClock())
    target.claim(pair.config.service)
    target.close()


def test_metadata_columns_are_not_compared(pair: Pair) -> None:
    with_metadata_columns(pair)
    pair.change_target('UPDATE "{db}.everything" SET thl_seqno = 7')
    report = pair.verify()
    assert report.equal, [str(d) for table in report.tables for d in table.differences]
    pair.change_target('ALTER TABLE "{db}.nokey" ADD COLUMN thl_gtid TEXT')
    assert [difference.what for difference in pair.report("nokey").differences] == [DifferenceKind.CHANGED]


def test_postgres_target_is_equal(postgres_pair: Pair) -> None:
    with_metadata_columns(postgres_pair)
    report = postgres_pair.verify()
    assert report.equal, [str(d) for table in report.tables for d in table.differences]
    assert report.exact


@pytest.mark.parametrize(
    ("column", "changed"),
    [
        ("i8", "i8 + 1"),
        ("d", "d + 0.000000000000000000000000000001"),
        ("f", "f * 1.0000002"),
        ("db", "0.10000000000000002"),
        ("b17", "B'10000000000000011'"),
        ("b64", "B'0' || substring(b64 from 2)"),
        ("dt", "dt - 1"),
        ("ti6", "ti6 + interval '1 microsecond'"),
        ("da3", "da3 - interval '1 millisecond'"),
        ("ts6", "ts6 + interval '1 microsecond'"),
        ("v", "v || ' '"),
        ("bi", r"'\x0100000000000001'"),
        ("e", "'a'"),
        ("j", "replace(j::text, ': [', ':  [')::json"),
    ],
)
def test_changed_bit_is_found_in_postgres(postgres_pair: Pair, column: str, changed: str) -> None:
    change_postgres(postgres_pair, f'UPDATE "{{db}}".everything SET "{column}" = {changed} WHERE t1 = -128')
    (difference,) = postgres_pair.report("everything").differences
    assert difference.what is DifferenceKind.CHANGED
    assert f"{column}: " in difference.detail


def test_missing_and_duplicate_rows_are_found_in_postgres(postgres_pair: Pair) -> None:
    change_postgres(postgres_pair, 'DELETE FROM "{db}".everything WHERE t1 = 6')
    assert [d.what for d in postgres_pair.verify("everything").tables[0].differences] == [DifferenceKind.MISSING]
    change_postgres(postgres_pair, "INSERT INTO \"{db}\".nokey VALUES (2, '')")
    assert [d.what for d in postgres_pair.verify("nokey").tables[0].differences] == [DifferenceKind.COUNT]


@pytest.fixture
def mariadb_pair(mariadb_server: SqlServer, tmp_path: Path) -> Iterator[Pair]:
    """A table for each type and its values."""
    statements = ["SET SESSION time_zone = '+00:00', sql_mode = 'ALLOW_INVALID_DATES'"]
    for number, (_, definition, values) in enumerate(CASES):
        rows = ", ".join(f"({value})" for value in values)
        statements.append(f"CREATE TABLE t{number} (id int auto_increment primary key, v {definition})")
        statements.append(f"INSERT INTO t{number} (v) VALUES {rows}")
    with a_pair(mariadb_server, statements, file=tmp_path / "target.db") as made:
        yield made


def test_mariadb_is_compared_in_every_type_by_gtids(mariadb_pair: Pair) -> None:
    report = mariadb_pair.verify()
    assert report.equal, [str(d) for table in report.tables for d in table.differences]
    assert report.exact
    rows = {table.name.rpartition(".")[2]: table.rows for table in report.tables}
    assert rows == {f"t{number}": len(values) for number, (_, _, values) in enumerate(CASES)}
    uuid = next(number for number, (_, definition, _) in enumerate(CASES) if definition == "uuid")
    mariadb_pair.change_target(
        f"UPDATE \"{{db}}.t{uuid}\" SET v = CAST(substr(v, 1, 15) || x'01' AS BLOB) WHERE id = 1"
    )
    assert mariadb_pair.differences(f"t{uuid}") == [DifferenceKind.CHANGED]
    mariadb_pair.change_source("INSERT INTO t0 (v) VALUES (1)")
    behind = mariadb_pair.verify("t0")
    assert [difference.what for difference in behind.tables[0].differences] == [DifferenceKind.MISSING]
    assert not behind.exact


def test_watch_reports_each_round(pair: Pair) -> None:
    stop, told = Event(), list[bool]()

    def tell(report: Report) -> None:
        told.append(report.equal)
        if len(told) == 1:
            pair.change_target('DELETE FROM "{db}.everything" WHERE t1 = 6')
        else:
            stop.set()

    verdict = watch(pair.config, None, tell, patience=0.5, every=0, stop=stop, clock=SystemClock())
    assert verdict == "different"
    assert told == [True, False]
    service = {"service": pair.config.service, "target": "target"}
    assert REGISTRY.get_sample_value("thl_verified_different_tables", service) == 1
    assert (REGISTRY.get_sample_value("thl_verified_seconds", service) or 0) > 1_700_000_000


def test_difference_is_a_sentence() -> None:
    assert str(Difference(DifferenceKind.EXTRA)) == "the table is only on the target"


def test_inconsistent_target_is_never_compared_exactly(pair: Pair) -> None:
    """A rewound one has the position's GTIDs and some rows of a later one: equal is not what it is, nor different."""
    pair.change_target("UPDATE thl_position SET consistent = 0")
    report = pair.verify()
    assert not report.exact
