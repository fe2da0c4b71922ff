"""DDL on MySQL and MariaDB targets: exactly once through kill -9, and as the source executed it.

The `test_target_*_ddl` files run it on both servers.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from connector.errors import Fenced, MissingPrivilege, PreflightError, TargetDiffers, Unsupported
from connector.log.compact.history import history_tables
from connector.log.transaction import statement_options as replay
from connector.targets.mysql.ddl.once import DdlOnce
from connector.targets.mysql.entrance import NEEDED, REFERENCES
from tests.contract.mysql_place import SYSTEM, MySqlPlace
from tests.contract.target_suite import CREATE_LOOSE, CREATE_USERS, USERS, Applier, stops
from tests.contract.target_transactions import ALL, metadata, wide
from tests.contract.target_ways_out import exclude
from tests.support import killed, mysql_applier
from tests.support.clock import PATIENCE
from tests.support.mysql_applier import HISTORY
from tests.support.net import layout, net

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def applier(place: MySqlPlace) -> Applier:
    made = Applier(place.open())
    made.sql("CREATE DATABASE shop", CREATE_USERS, CREATE_LOOSE)
    return made


def run(place: MySqlPlace, definitions: str, crash: str = "") -> int:
    """Run the program that applies the history; return its exit code."""
    return killed.run(mysql_applier.main, place.url, definitions, crash=crash)


def state(place: MySqlPlace) -> dict[str, object]:
    """Definitions and rows of all tables, and the applied events."""
    system = ", ".join(f"'{name}'" for name in (*SYSTEM, "thl"))
    tables = place.query(
        "SELECT table_schema, table_name FROM information_schema.tables "
        f"WHERE table_schema NOT IN ({system}) ORDER BY 1, 2"
    )
    found: dict[str, object] = {"applied": place.applied()}
    for schema, table in tables:
        ((_, definition),) = place.query(f"SHOW CREATE TABLE `{schema}`.`{table}`")
        rows = sorted(place.query(f"SELECT * FROM `{schema}`.`{table}`"), key=repr)
        found[f"{schema}.{table}"] = (definition, rows)
    return found


@pytest.fixture(scope="module")
def expected() -> dict[str, dict[str, object]]:
    """What the history leaves without a kill, by definitions."""
    return {}


def uninterrupted(place: MySqlPlace, expected: dict[str, dict[str, object]], definitions: str) -> dict[str, object]:
    if definitions not in expected:
        assert run(place, definitions) == 0
        expected[definitions] = state(place)
        place.drop_all()
    return expected[definitions]


def killed_each_time(place: MySqlPlace, point: str, definitions: str, passages: range) -> int:
    """Kill the applier at each of some passages of a point, and let it end; return the number of kills."""
    kills = 0
    for passage in passages:
        code = run(place, definitions, crash=f"{point}:{passage}")
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
    assert run(place, definitions) == 0
    return kills


def dies_at(patched: pytest.MonkeyPatch, point: str) -> None:
    def died(passed: str) -> None:
        if passed == point:
            raise KeyboardInterrupt

    patched.setattr("connector.targets.mysql.ddl.once.faults.point", died)


class TestExactlyOnce:
    @pytest.mark.parametrize("definitions", ["source", pytest.param("plain", marks=pytest.mark.long)])
    @pytest.mark.parametrize("point", ["target.before_ddl", "target.after_ddl", "target.before_commit"])
    def test_ddl_of_an_applier_killed_again_and_again_is_executed_once(
        self, place: MySqlPlace, expected: dict[str, dict[str, object]], point: str, definitions: str
    ) -> None:
        wanted = uninterrupted(place, expected, definitions)
        assert len(wanted) == 4
        # After a statement was executed the next attempt passes the point with the one behind it.
        assert killed_each_time(place, point, definitions, range(1, 4)) == 3
        assert state(place) == wanted
        assert place.query("SELECT seqno, statement FROM thl.thl_ddl") == [(None, None)]

    @pytest.mark.long
    @pytest.mark.parametrize("definitions", ["source", "plain"])
    @pytest.mark.parametrize("point", ["target.before_ddl", "target.after_ddl", "target.after_commit"])
    def test_each_statement_is_executed_once_when_the_applier_is_killed_at_it(
        self, place: MySqlPlace, expected: dict[str, dict[str, object]], point: str, definitions: str
    ) -> None:
        wanted = uninterrupted(place, expected, definitions)
        passage, before = 1, None
        for _ in range(4 * len(HISTORY)):
            if run(place, definitions, crash=f"{point}:{passage}") == 0:
                break
            # A server without GTIDs executes again what may be repeated: the next attempt has to get past it.
            now = place.query("SELECT number, seqno, step FROM thl.thl_ddl"), place.applied()
            passage, before = 2 if now == before else 1, now
        else:
            raise AssertionError("the history does not end")
        assert state(place) == wanted

    @pytest.mark.parametrize(
        "point",
        [
            "target.after_ddl:4",
            *(pytest.param(one, marks=pytest.mark.long) for one in ("target.before_ddl:4", "target.after_ddl:6")),
        ],
    )
    def test_ddl_is_executed_once_when_the_server_is_killed(
        self, place: MySqlPlace, expected: dict[str, dict[str, object]], point: str
    ) -> None:
        wanted = uninterrupted(place, expected, "source")
        command = [sys.executable, "-m", "tests.support.mysql_applier", place.url, "source"]
        with subprocess.Popen(
            command, cwd=REPOSITORY, env={**os.environ, "THL_STOP_POINT": point}, stderr=subprocess.DEVNULL
        ) as applier:
            os.waitid(os.P_PID, applier.pid, os.WSTOPPED | os.WNOWAIT)
            place.server.kill()
            place.server.start()
            applier.send_signal(signal.SIGCONT)
            assert applier.wait(PATIENCE) != 0
        place.reader = place.connect()
        assert run(place, "source") == 0
        assert state(place) == wanted

    def test_older_applier_that_stood_still_before_its_ddl_executes_nothing(self, place: MySqlPlace) -> None:
        command = [sys.executable, "-m", "tests.support.mysql_applier", place.url, "source"]
        with subprocess.Popen(
            command,
            cwd=REPOSITORY,
            env={**os.environ, "THL_STOP_POINT": "target.before_ddl:4"},
            stderr=subprocess.PIPE,
        ) as applier:
            os.waitid(os.P_PID, applier.pid, os.WSTOPPED | os.WNOWAIT)
            newer = Applier(place.open())
            newer.target.close()
            applier.send_signal(signal.SIGCONT)
            _, text = applier.communicate(timeout=PATIENCE)
        assert applier.returncode != 0
        assert Fenced.__name__ in text.decode()
        assert place.query("SELECT count(*) FROM shop.old") == [(50,)]  # the ring of renames was not begun

    def test_ring_of_equal_tables_stops_with_both_states_if_nothing_tells(
        self, place: MySqlPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(DdlOnce, "_may_set_gtids", lambda _: False)
        monkeypatch.setattr(DdlOnce, "_identifier", lambda *_: "created in one second")
        target = place.open()
        applier = Applier(target)
        applier.sql("CREATE TABLE a (n INT)", "CREATE TABLE b (n INT)")
        applier.rows(net(layout("shop.a", ["n int"]), inserts=[(1,)]))

        def died(point: str) -> None:
            if point == "target.after_ddl":
                raise KeyboardInterrupt

        ring = "RENAME TABLE a TO c, b TO a, c TO b"
        with monkeypatch.context() as patched:
            patched.setattr("connector.targets.mysql.ddl.once.faults.point", died)
            with pytest.raises(KeyboardInterrupt):
                applier.sql(ring)
        target.close()
        again = Applier(place.open())
        with pytest.raises(TargetDiffers, match="not known") as stopped:
            again.sql(ring)
        assert all(name in str(stopped.value.where["before"]) for name in ("shop.a", "shop.b"))
        assert "thl.thl_ddl SET seqno = NULL" in stopped.value.hint
        assert place.query("SELECT n FROM shop.b") == [(1,)]

    def test_another_event_after_executed_ddl_stops(
        self, place: MySqlPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def died(point: str) -> None:
            if point == "target.after_ddl":
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("connector.targets.mysql.ddl.once.faults.point", died)
            with pytest.raises(KeyboardInterrupt):
                applier.sql("DROP TABLE loose")
        applier.target.close()
        again = Applier(place.open())
        again.position = again.position.__class__(service="shop", seqno=again.position.seqno.__class__(7))
        with pytest.raises(TargetDiffers, match="event 8 comes") as stopped:
            again.commit()
        assert "DROP TABLE" in str(stopped.value.where["sql"])

    def test_ddl_is_executed_after_the_target_was_restored(self, place: MySqlPlace, applier: Applier) -> None:
        """The server's GTIDs have later numbers than the restored database: it passes over a statement under one."""
        place.run("UPDATE thl.thl_ddl SET number = 0")
        applier.target.close()
        again = Applier(place.open())
        again.sql("DROP TABLE loose")
        again.sql("CREATE TABLE loose (n INT)")
        assert place.query("SELECT count(*) FROM shop.loose") == [(0,)]
        assert place.query("SHOW COLUMNS FROM shop.loose")[0][0] == "n"

    def test_columns_that_swapped_names_without_a_gtid_do_not_swap_again(
        self, place: MySqlPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The user may set GTIDs only since the applier has died."""
        pairs = layout("shop.pairs", ["a int", "b int"], ["a"])
        applier.target.close()
        place.definitions = "source"
        swap = "ALTER TABLE pairs CHANGE b a INT FIRST, CHANGE a b INT AFTER a"
        monkeypatch.setattr(DdlOnce, "_identifier", lambda *_: "created in one second")
        with monkeypatch.context() as patched:
            patched.setattr(DdlOnce, "_may_set_gtids", lambda _: False)
            applier = Applier(place.open())
            applier.sql("CREATE TABLE pairs (a INT, b INT)")
            applier.rows(net(layout("shop.pairs", ["a int", "b int"]), inserts=[(1, 2)]))
            dies_at(patched, "target.after_ddl")
            with pytest.raises(KeyboardInterrupt):
                applier.sql(swap)
        applier.target.close()
        again = Applier(place.open())
        with pytest.raises(TargetDiffers, match="not known"):
            again.sql(swap)
        assert place.read(pairs) == [(2, 1)]

    def test_statement_that_a_copy_of_the_target_has_not_executed_is_executed(
        self, place: MySqlPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A dump that was made meanwhile has the row of `thl_ddl`, and tables with other numbers."""
        monkeypatch.setattr(DdlOnce, "_may_set_gtids", lambda _: False)
        applier.target.close()
        applier = Applier(place.open())
        with monkeypatch.context() as patched:
            dies_at(patched, "target.before_ddl")
            with pytest.raises(KeyboardInterrupt):
                applier.sql("ALTER TABLE loose ADD n INT")
        applier.target.close()
        place.run("CREATE TABLE shop.other LIKE shop.loose")
        place.run("DROP TABLE shop.loose")
        place.run("RENAME TABLE shop.other TO shop.loose")
        Applier(place.open()).sql("ALTER TABLE loose ADD n INT")
        assert "n" in [row[0] for row in place.query("SHOW COLUMNS FROM shop.loose")]

    def test_tables_whose_names_differ_in_case_are_told_apart(
        self, place: MySqlPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(DdlOnce, "_may_set_gtids", lambda _: False)
        applier.target.close()
        applier = Applier(place.open())
        applier.sql("CREATE TABLE LOOSE (a INT)")
        with monkeypatch.context() as patched:
            dies_at(patched, "target.after_ddl")
            with pytest.raises(KeyboardInterrupt):
                applier.sql("RENAME TABLE LOOSE TO apart")
        applier.target.close()
        Applier(place.open()).sql("RENAME TABLE LOOSE TO apart")
        assert place.query("SELECT count(*) FROM shop.apart") == [(0,)]

    def test_event_goes_on_where_the_server_has_refused_its_second_statement(self, place: MySqlPlace) -> None:
        place.run("DROP USER IF EXISTS limited")
        place.run("CREATE USER limited IDENTIFIED BY 'secret'")
        rights = f"GRANT {', '.join((*NEEDED, REFERENCES))} ON {{}}.* TO limited"
        ((version,),) = place.query("SELECT @@version")
        if "MariaDB" not in str(version):
            place.run("GRANT SYSTEM_VARIABLES_ADMIN, REPLICATION_APPLIER ON *.* TO limited")
        for schema in ("thl", "shop"):
            place.run(rights.format(schema))
        place.definitions = "source"
        place.url = f"mysql://limited:secret@{place.server.host}:{place.server.port}"
        history = history_tables(["shop.users"])
        applier = Applier(place.open(history=history))
        with pytest.raises(MissingPrivilege, match="shop__history"):
            applier.sql("CREATE DATABASE shop", CREATE_USERS)
        applier.target.close()
        place.run(rights.format("shop__history"))
        again = Applier(place.open(history=history))
        again.sql("CREATE DATABASE shop", CREATE_USERS)
        assert place.query("SELECT action FROM shop__history.users") == [("statement",)]
        place.run("DROP USER limited")

    @pytest.mark.parametrize("definitions", ["source", "plain"])
    def test_renaming_of_an_excluded_table_is_executed_once(
        self, place: MySqlPlace, applier: Applier, monkeypatch: pytest.MonkeyPatch, definitions: str
    ) -> None:
        exclude(applier, "loose")
        applier.target.close()
        place.definitions = "plain" if definitions == "plain" else "source"
        applier = Applier(place.open())

        def died(point: str) -> None:
            if point == "target.after_ddl":
                raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr("connector.targets.mysql.ddl.once.faults.point", died)
            with pytest.raises(KeyboardInterrupt):
                applier.sql("RENAME TABLE loose TO apart")
        applier.target.close()
        again = Applier(place.open())
        again.sql("RENAME TABLE loose TO apart")
        assert place.query("SELECT count(*) FROM shop.apart") == [(0,)]
        assert place.query("SELECT seqno FROM thl.thl_ddl") == [(None,)]

    def test_refused_statement_leaves_nothing_begun(self, place: MySqlPlace, applier: Applier) -> None:
        place.run("CREATE TABLE shop.taken (n INT)")
        stops(applier, TargetDiffers, "CREATE TABLE taken (id INT)")
        applier.target.close()
        again = Applier(place.open())
        again.sql("CREATE TABLE free (id INT)")
        assert place.query("SELECT seqno FROM thl.thl_ddl") == [(None,)]


@pytest.fixture
def source(place: MySqlPlace) -> Applier:
    """An applier whose tables have the source's definitions."""
    place.definitions = "source"
    made = Applier(place.open())
    made.sql("CREATE DATABASE shop", CREATE_USERS)
    return made


def definition(place: MySqlPlace, table: str) -> str:
    ((_, found),) = place.query(f"SHOW CREATE TABLE shop.{table}")
    return str(found)


class TestSourceDefinitions:
    CREATE = (
        "CREATE TABLE items (id INT NOT NULL AUTO_INCREMENT, name VARCHAR(20) CHARACTER SET latin1 NOT NULL DEFAULT "
        "'it''s', price DECIMAL(5,1), twice DECIMAL(6,1) AS (price * 2) STORED, seen TIMESTAMP NULL DEFAULT NULL ON "
        "UPDATE CURRENT_TIMESTAMP, owner INT, PRIMARY KEY (id), UNIQUE KEY by_name (name), KEY (owner), "
        "CONSTRAINT fk FOREIGN KEY (owner) REFERENCES users (id) ON DELETE CASCADE, CHECK (price >= 0)) "
        "ENGINE=MyISAM COMMENT 'ENGINE=MyISAM'"
    )
    ITEMS = layout(
        "shop.items",
        [
            *("id int", "name varchar(20) not null", "price decimal(5,1)", "twice decimal(6,1)", "seen timestamp"),
            "owner int",
        ],
        ["id"],
    )
    ROWS = ((0, "pen", "1.5", "3.0", "2024-01-01 10:00:00", 1), (2, "ink", None, None, None, None))

    def test_table_is_the_sources_and_in_innodb(self, place: MySqlPlace, source: Applier) -> None:
        source.sql(self.CREATE)
        made = definition(place, "items")
        for part in ("AUTO_INCREMENT", "latin1", "'it''s'", "STORED", "UNIQUE KEY `by_name`", "FOREIGN KEY", "CHECK"):
            assert part in made, made
        assert "ENGINE=InnoDB" in made
        assert "COMMENT='ENGINE=MyISAM'" in made

    def test_rows_beside_generated_columns_and_unique_keys_apply(self, place: MySqlPlace, source: Applier) -> None:
        source.sql(self.CREATE)
        source.rows(net(USERS, inserts=[(1, "ann", "a"), (2, "bob", "b")]))
        source.rows(net(self.ITEMS, inserts=self.ROWS))
        assert place.read(self.ITEMS) == list(self.ROWS)
        one, two = self.ROWS
        source.rows(net(self.ITEMS, updates=[(*one[:1], "ink", *one[2:]), (*two[:1], "pen", *two[2:])]))
        source.rows(net(USERS, updates=[(1, "ann", "b"), (2, "bob", "a")], deletes=[]))
        assert place.read(USERS) == [(1, "ann", "b"), (2, "bob", "a")]
        source.rows(net(USERS, deletes=[(1, "ann", "b")]))  # the source's own cascades are in its log
        assert len(place.read(self.ITEMS) or []) == 2
        source.rows(net(self.ITEMS, changed=[({"price": "2.0", "twice": "4.0"}, (0,))]))
        assert (place.read(self.ITEMS) or [])[0] == (0, "ink", "2.0", "4.0", "2024-01-01 10:00:00", 1)
        source.rows(net(self.ITEMS, moved=[({"id": 5}, (0,))]))
        assert (place.read(self.ITEMS) or [])[1] == (5, "ink", "2.0", "4.0", "2024-01-01 10:00:00", 1)

    def test_ddl_without_effect_on_rows_is_executed(self, place: MySqlPlace, source: Applier) -> None:
        source.sql("CREATE INDEX by_name ON users (name)", "ALTER TABLE users COMMENT = 'people', ADD CHECK (id > 0)")
        made = definition(place, "users")
        assert all(part in made for part in ("KEY `by_name`", "COMMENT='people'", "CHECK"))
        source.sql("DROP INDEX by_name ON users")
        assert "by_name" not in definition(place, "users")

    def test_ddl_is_executed_in_the_session_of_the_source(self, place: MySqlPlace, source: Applier) -> None:
        source.rows(net(USERS, inserts=[(1, "ann", None)]))
        options = {"sql_mode": "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "time_zone": "+05:30", "timestamp": "1700000000.5"}
        source.sql(
            """ALTER TABLE "users" ADD "at" DATETIME(1) DEFAULT CURRENT_TIMESTAMP(1), ADD b CHAR(1) DEFAULT '\\'""",
            **options,
        )
        columns = ["id int", "name varchar(50)", "mail varchar(50)", "at datetime(1)", "b char(1)"]
        after = layout("shop.users", columns, ["id"])
        assert place.read(after) == [(1, "ann", None, "2023-11-15 03:43:20.5", "\\")]
        source.rows(net(after, inserts=[(2, "it's", "\\", None, None)]))
        assert (place.read(after) or [])[1] == (2, "it's", "\\", None, None)

    def test_values_that_only_the_source_knows_stop_still(self, place: MySqlPlace, source: Applier) -> None:
        source.rows(net(USERS, inserts=[(1, "ann", None)]))
        before = definition(place, "users")
        stops(source, Unsupported, "ALTER TABLE users ADD u CHAR(36) DEFAULT (uuid())")
        assert definition(place, "users") == before

    def test_what_the_target_lacks_is_refused_by_name(self, place: MySqlPlace, source: Applier) -> None:
        error = stops(source, Unsupported, "CREATE TABLE odd (a INT) COLLATE utf8mb4_klingon_ci")
        assert "klingon" in error.message
        assert "thl apply --exclude-table shop.odd" in error.hint

    def test_table_gets_the_default_character_set_that_its_database_has_at_the_source(
        self, place: MySqlPlace, source: Applier
    ) -> None:
        noted = {replay.SCHEMA_CHARSET: "binary"}
        source.sql("CREATE TABLE elsewhere.raw (v VARCHAR(3))", **noted)  # no event has made its database
        ((_, made),) = place.query("SHOW CREATE TABLE elsewhere.raw")
        assert "`v` varbinary(3)" in str(made)
        place.run("ALTER DATABASE shop CHARACTER SET latin1")
        with pytest.raises(TargetDiffers, match="of database shop is latin1 here, and binary at the source") as refused:
            source.sql("CREATE TABLE raw (v VARCHAR(3))", **noted)
        way_out = refused.value.hint.split(";")[0]
        assert not place.query("SHOW TABLES FROM shop LIKE 'raw'")
        source.target.close()
        place.run(way_out)
        Applier(place.open()).sql("CREATE TABLE raw (v VARCHAR(3))", **noted)
        assert "`v` varbinary(3)" in definition(place, "raw")

    def test_metadata_columns_are_added_to_the_sources_table(self, place: MySqlPlace) -> None:
        place.definitions = "source"
        applier = Applier(place.open(columns=ALL))
        applier.sql("CREATE DATABASE shop", CREATE_USERS)
        applier.rows(net(wide(USERS), inserts=[(1, "ann", None, *metadata(1))]))
        applier.sql("ALTER TABLE users ADD n INT DEFAULT 4")
        after = layout("shop.users", ["id int", "name varchar(50)", "mail varchar(50)", "n int"], ["id"])
        assert place.read(wide(after)) == [(1, "ann", None, 4, *metadata(1))]


@pytest.mark.parametrize(
    ("charset", "characters"), [("latin1", 3072), ("utf8mb3", 1024), ("utf8mb4", 768), ("binary", 3072)]
)
def test_longest_key_of_the_schemas_character_set_fits_a_plain_table(
    place: MySqlPlace, applier: Applier, charset: str, characters: int
) -> None:
    """An index has 3,072 bytes, and a character has up to 4 in utf8mb4."""
    applier.sql(f"CREATE TABLE t (k VARCHAR({characters}) PRIMARY KEY)", **{replay.SCHEMA_CHARSET: charset})
    found = "SELECT character_maximum_length, character_set_name FROM information_schema.columns WHERE table_name = 't'"
    assert place.query(found) == [(characters, None if charset == "binary" else charset)]


def test_row_larger_than_the_servers_packets_is_refused(place: MySqlPlace, applier: Applier) -> None:
    applier.target._db.max_packet = 20_000  # type: ignore[attr-defined]
    large = layout("shop.large", ["id int", "v longtext"], ["id"])
    applier.sql("CREATE TABLE large (id INT PRIMARY KEY, v LONGTEXT)")
    applier.rows(net(large, inserts=[(n, "x" * 9000) for n in range(5)]))
    with pytest.raises(Exception, match=re.escape("max_allowed_packet is 20000")):
        applier.rows(net(large, inserts=[(9, "x" * 30_000)]))


def test_size_of_a_row_of_which_the_log_has_a_part_is_that_of_its_bytes(place: MySqlPlace, applier: Applier) -> None:
    applier.target._db.max_packet = 20_000  # type: ignore[attr-defined]
    large = layout("shop.large", ["id int", "v longtext"], ["id"])
    applier.sql("CREATE TABLE large (id INT PRIMARY KEY, v LONGTEXT)")
    applier.rows(net(large, inserts=[(1, "x")]))
    with pytest.raises(PreflightError, match="max_allowed_packet is 20000"):
        applier.rows(net(large, changed=[({"v": "€" * 9000}, (1,))]))
