"""A DuckDB target: its file among processes, crashes, and what DuckDB alone refuses."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Thread
from time import sleep

import duckdb
import pytest

from connector.clock import Clock, SystemClock
from connector.errors import (
    Fenced,
    PreflightError,
    TargetDiffers,
    TargetUnavailable,
    Unsupported,
    ValueNotRepresentable,
)
from connector.log.transaction.layout import TableName
from connector.mysql.server.heartbeat_table import COLUMNS
from connector.targets.duckdb import signal_table
from connector.targets.duckdb.ddl import run
from connector.targets.duckdb.file import DuckDbFile, FileSession, opened_to_read
from connector.targets.duckdb.progress import read_heartbeat, read_position
from connector.targets.duckdb.target import DuckDbTarget
from connector.targets.operations import AlterTable, ExistingColumn
from connector.targets.signal_table import Request
from connector.targets.table import make_table
from connector.verify import duckdb as reading
from connector.verify.duckdb import DuckDbReader
from connector.verify.values import ComparedColumn, ValueForm, column_of, double_form
from tests.contract.duckdb_place import DuckDbPlace
from tests.contract.target_suite import CREATE_USERS, USERS, Applier, stops
from tests.contract.target_values import VALUES
from tests.support import duckdb_applier, killed
from tests.support.clock import Slept
from tests.support.duckdb_applier import ROWS
from tests.support.net import column, layout, net

REPOSITORY = Path(__file__).parents[2]
READ = "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2]).fetchall())"
HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[DuckDbPlace]:
    made = DuckDbPlace(tmp_path / "target.duckdb")
    yield made
    made.close()


@pytest.fixture
def applier(place: DuckDbPlace) -> Applier:
    made = Applier(place.open())
    made.sql("CREATE DATABASE shop", CREATE_USERS)
    return made


def read_elsewhere(file: Path, sql: str) -> str:
    """What another process reads from the file; "" if it cannot open it."""
    done = subprocess.run([sys.executable, "-c", READ, file, sql], capture_output=True, text=True, check=False)
    assert not done.returncode or "Could not set lock" in done.stderr, done.stderr
    return done.stdout.strip()


def apply(file: Path, *arguments: str, crash: str = "") -> int:
    """Run the program that applies the history; return its exit code."""
    return killed.run(duckdb_applier.main, str(file), *arguments, crash=crash)


def state(place: DuckDbPlace) -> dict[str, object]:
    """Columns and rows of all tables, and the applied events."""
    tables = place.query("SELECT schema_name, table_name FROM duckdb_tables() WHERE schema_name <> 'thl' ORDER BY ALL")
    found: dict[str, object] = {"applied": place.applied()}
    for schema, table in tables:
        name = f'"{schema}"."{table}"'
        found[f"{schema}.{table}"] = (place.query(f"DESCRIBE {name}"), place.query(f"FROM {name} ORDER BY ALL"))
    return found


class TestOneProcess:
    def test_file_that_another_process_has_open_is_refused_with_the_process(
        self, place: DuckDbPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "WAIT_SECONDS", 0.1)
        Applier(place.open()).target.close()
        command = [sys.executable, "-c", HOLD, place.path]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout is not None
            other.stdout.readline()
            with pytest.raises(TargetUnavailable) as refused:
                place.open()
            with pytest.raises(TargetUnavailable), DuckDbReader(place.path).view("shop"):
                pass
            other.communicate()
        assert refused.value.where["pid"] == str(other.pid)
        assert f"end process {other.pid}" in refused.value.hint
        assert Applier(place.open()).position.seqno == -1

    def test_file_is_lent_between_commits_and_not_within_one(self, tmp_path: Path) -> None:
        clock = Slept()
        place = DuckDbPlace(tmp_path / "target.duckdb")
        made = Applier(DuckDbTarget(place.path, clock))
        made.sql("CREATE DATABASE shop", CREATE_USERS)
        made.target.stage([net(USERS, inserts=[(1, "ann", None)])], last=True)
        assert read_elsewhere(place.path, "FROM shop.users") == ""
        made.commit()
        assert read_elsewhere(place.path, "FROM shop.users") == "[(1, 'ann', None)]"
        made.rows(net(USERS, inserts=[(2, "bob", None)]))
        made.target.stage([net(USERS, inserts=[(3, "cid", None)])], last=True)
        made.target.discard()
        assert read_elsewhere(place.path, "SELECT count(*) FROM shop.users") == "[(2,)]"
        made.target.close()

    def test_file_stays_open_until_its_opening_is_paid_for(self, tmp_path: Path) -> None:
        clock = Slept()
        file = DuckDbFile(tmp_path / "a.duckdb", clock)
        file.session.run("CREATE TABLE t (a INTEGER)")
        file._cost, file._opened_at = 1.0, clock.monotonic()
        file.lend()
        assert read_elsewhere(file.path, "FROM t") == ""
        clock.sleep(20)
        file.lend()
        assert read_elsewhere(file.path, "FROM t") == "[]"
        file.close()

    def test_lent_file_stays_closed_for_a_moment(self, tmp_path: Path) -> None:
        """Or no other process would find the moment between two commits of a busy applier."""
        clock = Slept(seconds=100)
        file = DuckDbFile(tmp_path / "a.duckdb", clock)
        for _ in range(3):
            file.session.run("CREATE TABLE IF NOT EXISTS t (a INTEGER)")
            file.lend()
        assert clock.seconds == pytest.approx(100.1)
        clock.sleep(5)
        file.session.run("FROM t")
        assert clock.seconds == pytest.approx(105.1)
        file.close()

    def test_unused_file_is_closed_without_another_commit(self, tmp_path: Path) -> None:
        clock = Slept()
        file = DuckDbFile(tmp_path / "a.duckdb", clock)
        file.session.run("CREATE TABLE t (a INTEGER)")
        file._cost = 0.001
        file.lend()
        assert file._timer is not None
        file._timer.join()
        assert read_elsewhere(file.path, "FROM t") == "[]"

    def test_file_in_use_is_not_closed_by_an_earlier_timer(self, tmp_path: Path) -> None:
        file = DuckDbFile(tmp_path / "a.duckdb", Slept())
        session = file.session
        file._cost = 0.001
        file.lend()
        timer = file._timer
        assert timer is not None
        assert file.session is session  # in use again
        timer.join()
        session.run("SELECT 1")
        file.close()

    def test_applier_that_was_paused_between_commits_is_fenced_by_another_process(self, tmp_path: Path) -> None:
        place = DuckDbPlace(tmp_path / "target.duckdb")
        made = Applier(DuckDbTarget(place.path, Slept()))
        made.sql("CREATE DATABASE shop", CREATE_USERS)
        assert apply(place.path, "claim") == 0
        with pytest.raises(Fenced):
            made.rows(net(USERS, inserts=[(1, "old", None)]))
        made.target.close()
        assert place.read(USERS) == []

    def test_claim_waits_for_another_session_of_its_process_then_gives_up(self, place: DuckDbPlace) -> None:
        older = Applier(place.open())
        older.sql("CREATE DATABASE shop", CREATE_USERS)
        older.target.stage([net(USERS, inserts=[(1, "old", None)])], last=True)
        with pytest.raises(TargetUnavailable) as waited:
            place.open().claim("shop")
        assert waited.value.where["service"] == "shop"
        older.commit()
        assert place.open().claim("shop") == older.position
        assert place.read(USERS) == [(1, "old", None)]

    def test_file_and_log_are_the_owners_alone(self, place: DuckDbPlace, applier: Applier) -> None:
        files = list(place.path.parent.iterdir())
        assert {file.name for file in files} == {"target.duckdb", "target.duckdb.wal"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    @pytest.mark.parametrize("name", ["text", "no/such/folder"])
    def test_file_that_cannot_be_used_is_refused(self, tmp_path: Path, name: str) -> None:
        if name == "text":
            (tmp_path / name).write_text("not a database at all, but long enough to look at " * 100)
        with pytest.raises(PreflightError) as refused:
            DuckDbTarget(tmp_path / name, SystemClock())
        assert "target.url" in refused.value.hint


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the history leaves without a kill."""
    place = DuckDbPlace(tmp_path_factory.mktemp("whole") / "target.duckdb")
    assert apply(place.path) == 0
    return state(place)


class TestCrash:
    @pytest.mark.parametrize(
        "point",
        [
            "target.after_claim",
            pytest.param("target.mid_stage", marks=pytest.mark.long),
            "target.before_commit",
            "target.after_commit",
        ],
    )
    def test_history_of_an_applier_killed_again_and_again_is_applied_once(
        self, place: DuckDbPlace, whole: dict[str, object], point: str
    ) -> None:
        passages = (1,) if point == "target.after_claim" else (1, 2, 3)
        for passage in passages:
            assert apply(place.path, crash=f"{point}:{passage}") == -signal.SIGKILL
        assert apply(place.path) == 0
        assert state(place) == whole
        assert len(place.applied()) > 10

    @pytest.mark.long
    def test_applier_killed_at_any_time_leaves_whole_commits(self, place: DuckDbPlace) -> None:
        random = Random(1)
        command = [sys.executable, "-m", "tests.support.duckdb_applier", str(place.path), "forever"]
        reached = -1
        for _ in range(12):
            with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as applying:
                assert applying.stdout is not None
                first = int(applying.stdout.readline())
                sleep(random.random() / 2)
                applying.kill()
                told = max([first, *map(int, applying.stdout.read().split())])
            assert first > reached
            ((reached,),) = place.query("SELECT seqno FROM thl.thl_position")
            assert reached in (told, told + 1)  # the last one may be committed and not told
            for table in ("one", "two"):
                counts = f"SELECT count(*), count(DISTINCT id), count(*) FILTER (v = '{reached}') FROM shop.{table}"
                own = ROWS * min(reached, 2)
                assert place.query(counts) == [(ROWS * reached, ROWS * reached, own)]

    @pytest.mark.parametrize("point", ["target.before_commit", "target.after_commit"])
    def test_commit_is_whole_or_absent_after_a_kill(self, tmp_path: Path, point: str) -> None:
        """The seventh event adds rows to a table that the sixth has emptied; the third has swapped two tables."""
        place = DuckDbPlace(tmp_path / "target.duckdb")
        assert apply(place.path, crash=f"{point}:7") == -signal.SIGKILL
        done = 7 if point == "target.after_commit" else 6
        assert [seqno for seqno, _ in place.applied()] == list(range(done))
        assert place.query("SELECT seqno FROM thl.thl_position") == [(done - 1,)]
        assert place.query("SELECT count(*) FROM shop.new") == [(7 * (done == 7),)]
        assert place.query("SELECT count(*) FROM shop.old") == [(21,)]


class TestRefused:
    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("v date", "0000-00-00"),
            ("v date", "2024-00-10"),
            ("v date", "0000-05-05"),
            ("v date", "2024-02-30"),
            ("v datetime(3)", "2024-01-00 00:00:00.000"),
            ("v timestamp", "0000-00-00 00:00:00"),
        ],
    )
    def test_dates_that_are_in_no_calendar_stop(
        self, place: DuckDbPlace, applier: Applier, column: str, value: str
    ) -> None:
        applier.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {column} NULL)")
        table = layout("shop.t", ["id int", column], ["id"])
        with pytest.raises(ValueNotRepresentable) as stopped:
            applier.rows(net(table, inserts=[(1, "2024-01-01 00:00:00"[: len(value)]), (2, value)]))
        where = stopped.value.where
        assert (str(where["table"]), where["column"], where["row"]) == ("shop.t", "v", "id=2")
        assert value in stopped.value.message
        assert ("zero_dates" in stopped.value.hint) is ("00" in value[:10].split("-")[1:])
        applier.target.close()
        assert place.query("FROM shop.t") == []

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("v bigint unsigned", -1),
            ("v bigint unsigned", str(1 << 64)),
            ("v int", 1 << 31),
            ("v tinyint unsigned", -1),
            ("v decimal(5,2)", "1000.00"),
            ("v json", "nonsense"),
        ],
    )
    def test_values_that_the_type_lacks_stop(self, applier: Applier, column: str, value: int | str) -> None:
        applier.sql(f"CREATE TABLE t (id INT PRIMARY KEY, {column})")
        table = layout("shop.t", ["id int", column], ["id"])
        good = "1.00" if isinstance(value, str) and "unsigned" not in column else 1
        with pytest.raises(ValueNotRepresentable) as stopped:
            applier.rows(net(table, inserts=[(1, good), (2, value), (3, None)]))
        where = stopped.value.where
        assert (str(where["table"]), where["column"], where["row"]) == ("shop.t", "v", "id=2")

    def test_bytes_in_a_text_column_stop(self, place: DuckDbPlace, applier: Applier) -> None:
        with pytest.raises(ValueNotRepresentable) as stopped:
            applier.rows(net(USERS, inserts=[(1, "text", None), (2, b"\xff", None), (3, b"bytes", None)]))
        assert (stopped.value.where["column"], stopped.value.where["row"]) == ("name", "id=2")

    def test_text_with_u0000_is_kept(self, place: DuckDbPlace, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "a\0b", "\0")]))
        applier.sql("ALTER TABLE users ADD n VARCHAR(9) DEFAULT 'a\\0b'")
        assert place.query("FROM shop.users") == [(1, "a\0b", "\0", "a\0b")]

    def test_names_that_differ_in_case_only_are_refused(self, applier: Applier) -> None:
        stops(applier, ValueNotRepresentable, "CREATE TABLE USERS (a INT)")

    def test_table_gets_another_case(self, place: DuckDbPlace, applier: Applier) -> None:
        applier.rows(net(USERS, inserts=[(1, "ann", None)]))
        applier.sql("RENAME TABLE users TO Users")
        assert place.query("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'shop'") == [("Users",)]

    @pytest.mark.parametrize("schema", ["information_schema", "pg_catalog", "thl", "THL"])
    def test_reserved_schema_is_refused(self, applier: Applier, schema: str) -> None:
        stops(applier, ValueNotRepresentable, f"CREATE TABLE {schema}.t (a INT)")

    @pytest.mark.parametrize("stem", ["shop", "thl", "temp", "a b"])
    def test_file_may_have_the_name_of_a_schema(self, tmp_path: Path, stem: str) -> None:
        place = DuckDbPlace(tmp_path / f"{stem}.duckdb")
        applier = Applier(place.open())
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        applier.rows(net(USERS, inserts=[(1, "ann", None)]))
        applier.rows(net(USERS, updates=[(1, "bob", None)]))
        with place.signals() as signals:
            assert signals.skipped("shop") == set()
        applier.target.close()
        moved = tmp_path / "moved.duckdb"
        place.path.rename(moved)
        with duckdb.connect(str(moved)) as connection:
            assert connection.execute("FROM shop.users").fetchall() == [(1, "bob", None)]
            assert connection.execute("SELECT seqno FROM thl.thl_progress").fetchall() == [(2,)]
        assert DuckDbTarget(moved, SystemClock()).claim("shop") == applier.position

    def test_deletes_of_a_keyless_table_with_a_column_rowid_stop(self, place: DuckDbPlace, applier: Applier) -> None:
        applier.sql("CREATE TABLE r (rowid INT, a INT)")
        table = layout("shop.r", ["rowid int", "a int"])
        applier.rows(net(table, inserts=[(7, 1), (7, 1)]))
        with pytest.raises(ValueNotRepresentable) as raised:
            applier.rows(net(table, deletes=[(7, 1)]))
        assert "source.filters.tables" in raised.value.hint

    def test_conversion_that_would_lose_a_value_stops(self, place: DuckDbPlace, applier: Applier) -> None:
        """Conditions of `narrowing` find such values first; this does not depend on them."""
        applier.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        applier.rows(net(layout("shop.t", ["id int", "v int"], ["id"]), inserts=[(1, 1), (2, 40_000), (3, None)]))
        before, after = (
            make_table(TableName("shop", "t"), [column("id int"), column(f"v {kind}")], ["id"])
            for kind in ("int", "smallint")
        )
        applier.target.close()
        file = DuckDbFile(place.path, SystemClock())
        change = AlterTable(before, after, (ExistingColumn("id"), ExistingColumn("v")))
        with pytest.raises(Unsupported) as stopped:
            run(file.session, change)
        file.close()
        assert (str(stopped.value.where["table"]), stopped.value.where["column"]) == ("shop.t", "v")

    @pytest.mark.parametrize(
        "sql",
        [
            "ALTER TABLE users DROP mail",
            "ALTER TABLE users MODIFY id BIGINT NOT NULL",
            "ALTER TABLE users RENAME COLUMN name TO title",
            "RENAME TABLE users TO attic.users",
        ],
    )
    def test_index_of_a_user_that_keeps_ddl_from_its_table_is_told(
        self, place: DuckDbPlace, applier: Applier, sql: str
    ) -> None:
        applier.sql("CREATE DATABASE attic")
        place.run("CREATE INDEX by_user ON shop.users (id, mail)")
        error = stops(applier, TargetDiffers, sql)
        assert "DROP INDEX" in error.hint or "index by_user" in error.message


class TestReaders:
    def test_position_is_read_beside_the_applier(self, place: DuckDbPlace, applier: Applier) -> None:
        applier.commit(consistent=False)
        row = read_position(place.path, "shop")
        assert row is not None
        assert (row.seqno, row.consistent, row.reasons, row.applier) == (1, False, ("load",), None)
        assert read_position(place.path, "other") is None
        assert read_position(place.path.with_name("missing"), "shop") is None

    def test_position_is_read_while_an_applier_of_another_process_commits_all_the_time(
        self, place: DuckDbPlace
    ) -> None:
        command = [sys.executable, "-m", "tests.support.duckdb_applier", str(place.path), "forever"]
        with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as applying:
            assert applying.stdout is not None
            applying.stdout.readline()
            Thread(target=applying.stdout.read, daemon=True).start()
            try:
                rows = [read_position(place.path, "shop") for _ in range(2)]
                assert applying.poll() is None
            finally:
                applying.kill()
        found = [row.seqno for row in rows if row is not None]
        assert len(found) == 2
        assert found == sorted(found)
        assert found[-1] > 0

    def test_heartbeat_is_read(self, place: DuckDbPlace, applier: Applier) -> None:
        applier.sql(f"CREATE TABLE IF NOT EXISTS `shop`.`Beat` ({COLUMNS})")
        columns = ["service varchar(200)", "name varchar(200)", "written datetime(6)"]
        beat = layout("shop.Beat", columns, ["service", "name"])
        applier.rows(net(beat, inserts=[("shop", "mine", "2026-11-21 06:00:00.100000")]))
        name = TableName("shop", "beat")
        assert read_heartbeat(place.path, "shop", name, "mine") == "2026-11-21 06:00:00.100000"
        assert read_heartbeat(place.path, "shop", name, "other") is None
        assert read_heartbeat(place.path, "shop", TableName("shop", "none"), "mine") is None

    def test_progress_view_has_times(self, place: DuckDbPlace) -> None:
        applier = Applier(place.open())
        times = "SELECT seqno, commit_time, applied_at, latency FROM thl.thl_progress"
        assert place.query(times) == [(-1, None, None, None)]
        applier.commit()
        columns = "CAST(commit_time AS VARCHAR), consistent, latency > 0"
        assert place.query(f"SELECT {columns} FROM thl.thl_progress") == [("2023-11-14 22:13:20", True, True)]

    @pytest.mark.parametrize("kind", VALUES)
    def test_comparison_reads_each_value_as_mysql_shows_it(
        self, place: DuckDbPlace, applier: Applier, kind: str
    ) -> None:
        definition, values = VALUES[kind]
        applier.sql(f"CREATE TABLE vals (id INT PRIMARY KEY, v {definition})")
        table = layout("shop.vals", ["id int", f"v {kind}"], ["id"])
        applier.rows(net(table, inserts=[(n, item) for n, item in enumerate([*values, None])]))
        column = column_of("v", kind.partition("(")[0].split()[0], kind)
        reader = DuckDbReader(place.path)
        with reader.view("shop") as state:
            assert (state.seqno, state.tables[("shop", "vals")]) == (2, "shop.vals")
            assert reader.columns(("shop", "vals")) == ["id", "v"]
            found = list(reader.rows(("shop", "vals"), [ComparedColumn("id", ValueForm.NUMBER), column]))
        expected = [None if item is None else form(item) for item in (*values, None)]
        assert [value for _, value in sorted(found, key=lambda row: int(row[0] or 0))] == expected

    def test_comparison_marks_a_value_of_another_type(self, place: DuckDbPlace, applier: Applier) -> None:
        place.run("ALTER TABLE shop.users ALTER COLUMN name TYPE BLOB")
        place.run("INSERT INTO shop.users VALUES (1, 'a', NULL)")
        reader = DuckDbReader(place.path)
        with reader.view("shop"):
            found = list(reader.rows(("shop", "users"), [ComparedColumn("name", ValueForm.TEXT)]))
        assert found == [(b"wrong type BLOB a",)]


def form(value: int | float | str | bytes) -> bytes:
    if isinstance(value, float):
        return double_form(value)
    return value if isinstance(value, bytes) else str(value).encode()


class TestSignals:
    def test_request_that_is_looked_for_again_opens_no_file_before_a_commit(
        self, place: DuckDbPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened: list[Path] = []

        @contextmanager
        def counted(path: Path, clock: Clock, *, wait: float) -> Iterator[FileSession]:
            opened.append(path)
            with opened_to_read(path, clock, wait=wait) as session:
                yield session

        monkeypatch.setattr(signal_table, "opened_to_read", counted)
        with place.signals() as signals, place.signals() as others:
            for _ in range(3):
                assert signals.request("shop") is None
            assert len(opened) == 2  # whether there is the table, and what it has
            others.ask_offline("shop", Request(asked_at=1, asked_by="me@here", reason="why"))
            for _ in range(3):
                found = signals.request("shop")
                assert found is not None
                assert found.reason == "why"
            assert len(opened) == 3
            applier.rows(net(USERS, inserts=[(1, "ann", None)]))
            signals.went_offline("shop", 5, 6)
            found = signals.request("shop")
            assert found is not None
            assert (found.offline_at, found.seqno) == (5, 6)
