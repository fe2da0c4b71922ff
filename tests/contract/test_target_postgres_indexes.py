"""`target.indexes` on PostgreSQL: the indexes of the catalog after DDL, loads, kills and changes of the option."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.errors import TargetDiffers, TargetUnavailable
from connector.log.compact.net_changes import NetChanges
from connector.log.ids import NO_SEQNO, Seqno
from connector.log.transaction.layout import TableLayout
from connector.targets.postgres.build_indexes import IndexBuilder, Mode
from connector.targets.postgres.target import PostgresTarget
from connector.targets.target_schema import Excluded
from tests.contract.target_load import begin, end
from tests.contract.target_suite import USERS, Applier
from tests.contract.test_target_postgres import PostgresPlace, database, place
from tests.support.net import Row, layout, net

__all__ = ["database", "place"]

CREATE = (
    "CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(50), mail VARCHAR(50), UNIQUE KEY mail (mail), KEY n (name))"
)
UNIQUE = "users_mail UNIQUE (mail) DEFERRABLE"
PLAIN = "users_n btree (name)"


class Bench:
    """Targets with indexes on one database.

    Args:
        place: the database.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self.place = place

    def open(self, mode: Mode = "all") -> Applier:
        """A claimed target."""
        self.place.opened.append(PostgresTarget(SecretStr(self.place.url), SystemClock(), indexes=mode))
        return Applier(self.place.opened[-1])

    def with_users(self, mode: Mode = "all") -> Applier:
        """A claimed target with the table of users."""
        applier = self.open(mode)
        applier.sql("CREATE DATABASE shop", CREATE)
        return applier

    def indexes(self, table: str = "users") -> list[str]:
        """The secondary indexes of a table, with their definitions as PostgreSQL shows them, sorted."""
        return sorted(
            f"{name} {constraint or definition.split(' USING ')[1]}{' unique' if unique and not constraint else ''}"
            for name, definition, constraint, unique in self.place.query(
                "SELECT c.relname, pg_get_indexdef(c.oid), pg_get_constraintdef(o.oid), i.indisunique FROM pg_index i "
                "JOIN pg_class c ON c.oid = i.indexrelid LEFT JOIN pg_constraint o ON o.conindid = c.oid "
                f"AND o.contype = 'u' WHERE i.indrelid = 'shop.{table}'::regclass AND NOT i.indisprimary"
            )
            if isinstance(definition, str)
        )

    def users(self) -> list[Row]:
        return self.place.read(USERS) or []


@pytest.fixture
def bench(place: PostgresPlace) -> Iterator[Bench]:
    yield Bench(place)


COMPLETE = """
import sys
from pydantic import SecretStr
from connector.clock import SystemClock
from connector.targets.postgres.target import PostgresTarget
from tests.contract.target_suite import Applier
Applier(PostgresTarget(SecretStr(sys.argv[1]), SystemClock(), indexes="all")).commit(consistent=True)
"""


def load(applier: Applier) -> None:
    """An initial load that is not complete yet."""
    applier.target.begin_snapshot()
    applier.commit(consistent=False)
    applier.stage_sql(CREATE)
    applier.commit(consistent=False)
    applier.target.stage([net(USERS, inserts=[(1, "a", "x"), (2, "b", "y")])], last=True)
    applier.commit(consistent=False)


class TestOption:
    @pytest.mark.parametrize(("mode", "expected"), [("none", []), ("unique", [UNIQUE]), ("all", [UNIQUE, PLAIN])])
    def test_each_value_builds_its_indexes(self, bench: Bench, mode: Mode, expected: list[str]) -> None:
        bench.with_users(mode)
        assert bench.indexes() == expected

    def test_later_value_builds_what_is_missing_and_none_keeps_it(self, bench: Bench) -> None:
        bench.with_users("none").target.close()
        for mode, expected in (("unique", [UNIQUE]), ("all", [UNIQUE, PLAIN]), ("unique", [UNIQUE, PLAIN])):
            bench.open(mode).target.close()
            assert bench.indexes() == expected
        bench.open("none").sql("ALTER TABLE users ADD INDEX two (name, mail)")
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_none_drops_an_index_that_the_source_drops_and_swaps_values(self, bench: Bench) -> None:
        bench.with_users("all").target.close()
        applier = bench.open("none")
        applier.rows(net(USERS, inserts=[(1, "a", "x"), (2, "b", "y")]))
        applier.rows(net(USERS, updates=[(1, "a", "y"), (2, "b", "x")]))
        applier.sql("DROP INDEX mail ON users")
        assert bench.indexes() == [PLAIN]
        applier.rows(net(USERS, updates=[(1, "a", "x")]))
        assert bench.users() == [(1, "a", "x"), (2, "b", "x")]

    def test_index_of_another_owner_stays(self, bench: Bench) -> None:
        applier = bench.with_users()
        bench.place.run("CREATE INDEX own ON shop.users (id, name)")
        applier.sql("ALTER TABLE users DROP INDEX n")
        assert bench.indexes() == ["own btree (id, name)", UNIQUE]

    def test_definition_of_an_earlier_version_gets_no_index_and_is_reported(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        bench.with_users("none").target.close()
        bench.place.run("UPDATE thl.thl_tables SET definition = (definition::jsonb - 'indexes')::text")
        with caplog.at_level(logging.WARNING):
            applier = bench.open("all")
        assert [record.__dict__["tables"] for record in caplog.records] == ["shop.users"]
        applier.sql("ALTER TABLE users ADD INDEX (name)")
        assert bench.indexes() == []


class TestTableLoads:
    def test_indexes_of_a_new_table_are_built_at_the_end_of_its_load(self, bench: Bench) -> None:
        applier = bench.open()
        begin(applier, CREATE)
        applier.rows(net(USERS, updates=[(1, "a", "x"), (2, "b", "y")]))
        assert bench.indexes() == []
        applier.target.close()
        applier = bench.open()
        assert bench.indexes() == []
        end(applier)
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_unique_index_stays_while_older_rows_make_room_for_new_ones(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        applier = bench.with_users()
        applier.rows(net(USERS, inserts=[(5, "old", "x"), (6, "old", "y"), (7, "old", "z")]))
        begin(applier, CREATE)
        with caplog.at_level(logging.WARNING):
            applier.rows(net(USERS, updates=[(1, "a", "x"), (2, "b", "y")]))
            applier.rows(net(USERS, updates=[(1, "a", "y"), (2, "b", "x"), (7, "c", "z")]))
            end(applier)
        assert bench.users() == [(1, "a", "y"), (2, "b", "x"), (7, "c", "z")]
        warnings = [one for one in caplog.records if one.levelno >= logging.WARNING]
        assert (bench.indexes(), warnings) == ([UNIQUE, PLAIN], [])


class TestRows:
    def test_swap_of_unique_values_in_one_commit_is_applied(self, bench: Bench) -> None:
        applier = bench.with_users()
        applier.rows(net(USERS, inserts=[(1, "a", "x"), (2, "b", "y"), (3, "c", "z")]))
        swap = net(USERS, updates=[(1, "a", "y"), (2, "b", "x")], inserts=[(4, "d", "z")], deletes=[(3, "c", "z")])
        applier.rows(swap)
        assert bench.users() == [(1, "a", "y"), (2, "b", "x"), (4, "d", "z")]
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_swap_of_unique_values_with_partial_images_is_applied(self, bench: Bench) -> None:
        applier = bench.with_users()
        applier.rows(net(USERS, inserts=[(1, "a", "x"), (2, "b", "y"), (3, "c", "z")]))
        applier.rows(
            net(
                USERS,
                changed=[({"mail": "y"}, (1,)), ({"mail": "z"}, (2,))],
                moved=[({"id": 5, "mail": "x"}, (3,))],
            )
        )
        assert bench.users() == [(1, "a", "y"), (2, "b", "z"), (5, "c", "x")]
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_other_sessions_are_refused_equal_values_at_their_statement(self, bench: Bench) -> None:
        applier = bench.with_users()
        applier.rows(net(USERS, inserts=[(1, "a", "x")]))
        with bench.place.reader.transaction(), pytest.raises(psycopg.errors.UniqueViolation):
            bench.place.reader.execute("INSERT INTO shop.users VALUES (2, 'b', 'x')")

    def test_table_found_by_a_unique_key_keeps_its_fast_index(self, bench: Bench) -> None:
        """Staged keys are compared by bytes; an index with the collation of the column would not be used."""
        applier = bench.open()
        applier.sql("CREATE DATABASE shop", "CREATE TABLE k (m VARCHAR(9) NOT NULL, n INT, UNIQUE (m))")
        table = layout("shop.k", ["m varchar(9)", "n int"])
        table = TableLayout(table.name, tuple(replace(one, nullable=False) for one in table.columns), (0,))
        applier.rows(net(table, inserts=[("x", 1), ("y", 2)]))
        applier.rows(net(table, inserts=[("z", 3)], updates=[("x", 4)], deletes=[("y", 2)]))
        assert bench.place.read(table) == [("x", 4), ("z", 3)]
        assert bench.indexes("k") == ["k_m UNIQUE (m) DEFERRABLE", 'k_m_idx btree (m COLLATE "C")']

    def test_index_of_a_unique_key_is_made_beside_values_that_are_equal_for_a_moment(self, bench: Bench) -> None:
        applier = bench.open()
        applier.sql("CREATE DATABASE shop", "CREATE TABLE k (m VARCHAR(9) NOT NULL, n INT, UNIQUE (m), UNIQUE (n))")
        table = layout("shop.k", ["m varchar(9)", "n int"])
        table = TableLayout(table.name, tuple(replace(one, nullable=False) for one in table.columns), (0,))
        applier.rows(net(table, inserts=[("x", 1)]))
        applier.rows(net(table, inserts=[("z", 1)]), net(table, updates=[("x", 2)]))
        assert bench.place.read(table) == [("x", 2), ("z", 1)]

    def test_equal_values_replace_the_unique_index_and_the_repeated_commit_passes(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        applier = bench.with_users()
        applier.rows(net(USERS, inserts=[(1, "a", "x")]))
        bench.place.run("INSERT INTO shop.users VALUES (7, 'own', 'y')")
        with caplog.at_level(logging.WARNING), pytest.raises(TargetUnavailable):
            applier.rows(net(USERS, updates=[(1, "a", "y")]))
        assert any("thl verify" in record.__dict__.get("hint", "") for record in caplog.records)
        assert bench.indexes() == ["users_mail btree (mail)", PLAIN]
        applier.target.close()
        again = bench.open()
        again.rows(net(USERS, updates=[(1, "a", "y")]))
        assert bench.users() == [(1, "a", "y"), (7, "own", "y")]
        again.target.close()
        bench.place.run("DELETE FROM shop.users WHERE id = 7; DROP INDEX shop.users_mail")
        bench.open()
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_equal_primary_keys_stop_as_without_indexes(self, bench: Bench) -> None:
        applier = bench.with_users()
        applier.rows(net(USERS, inserts=[(1, "a", "x")]))
        with pytest.raises(TargetDiffers):
            applier.rows(net(USERS, inserts=[(1, "b", "y")]))
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_equal_values_before_the_build_give_an_index_that_is_not_unique(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        applier = bench.with_users("none")
        applier.rows(net(USERS, inserts=[(1, "a", "x"), (2, "b", "x"), (3, "c", None), (4, "d", None)]))
        applier.target.close()
        with caplog.at_level(logging.WARNING):
            bench.open("unique")
        assert bench.indexes() == ["users_mail btree (mail)"]
        assert any("(mail)=(x)" in str(record.__dict__.get("rows")) for record in caplog.records)
        bench.open("unique")
        assert bench.indexes() == ["users_mail btree (mail)"]


class TestLoad:
    def test_indexes_are_built_once_the_load_is_complete(self, bench: Bench) -> None:
        applier = bench.with_users()
        load(applier)
        assert bench.indexes() == []
        applier.target.close()
        applier = bench.open()
        assert bench.indexes() == []
        applier.commit(consistent=True)
        assert bench.indexes() == [UNIQUE, PLAIN]

    @pytest.mark.parametrize("passage", [1, 2])
    def test_applier_killed_between_load_and_build_builds_at_its_next_start(self, bench: Bench, passage: int) -> None:
        applier = bench.with_users()
        load(applier)
        applier.target.close()
        killed = subprocess.run(
            [sys.executable, "-c", COMPLETE, bench.place.url],
            env={**os.environ, "THL_CRASH_POINT": f"target.before_index:{passage}"},
            check=False,
            timeout=60,
        )
        assert killed.returncode == -signal.SIGKILL
        assert bench.indexes() == [UNIQUE, PLAIN][: passage - 1]
        assert bench.open().position.consistent
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_applier_killed_before_an_index_became_a_constraint_makes_it_one(self, bench: Bench) -> None:
        bench.with_users().target.close()
        bench.place.run(
            "ALTER TABLE shop.users DROP CONSTRAINT users_mail; CREATE UNIQUE INDEX users_mail ON shop.users (mail); "
            "COMMENT ON INDEX shop.users_mail IS 'thl: made by target.indexes'"
        )
        bench.open()
        assert bench.indexes() == [UNIQUE, PLAIN]

    def test_events_applied_again_over_later_ones_restore_the_unique_index(self, bench: Bench) -> None:
        applier = bench.with_users()
        applier.rows(net(USERS, inserts=[(1, "a", "x")]))
        applier.rows(net(USERS, updates=[(1, "a", "y")]))
        applier.rows(net(USERS, inserts=[(2, "b", "x")]))
        head = applier.position.seqno
        back = replace(applier.position, seqno=Seqno(0), consistent=False, rewound_from=head)
        applier.target.commit(back, [])

        def again(applier: Applier, change: NetChanges, seqno: int) -> None:
            applier.target.stage([replace(change, again=True)], last=True)
            done = seqno == head
            applier.target.commit(
                replace(back, seqno=Seqno(seqno), consistent=done, rewound_from=NO_SEQNO if done else head), []
            )

        with pytest.raises(TargetUnavailable):
            again(applier, net(USERS, deletes=[(1, "a", "x")], inserts=[(1, "a", "x")]), 1)
        assert bench.indexes() == ["users_mail btree (mail)", PLAIN]
        applier.target.close()
        applier = bench.open()
        again(applier, net(USERS, deletes=[(1, "a", "x")], inserts=[(1, "a", "x")]), 1)
        again(applier, net(USERS, deletes=[(1, "a", "y")], inserts=[(1, "a", "y")]), 2)
        assert bench.indexes() == ["users_mail btree (mail)", PLAIN]
        again(applier, net(USERS, deletes=[(2, "b", "x")], inserts=[(2, "b", "x")]), 3)
        assert bench.users() == [(1, "a", "y"), (2, "b", "x")]
        assert bench.indexes() == [UNIQUE, PLAIN]


# Statements about table t, in order, and its indexes after each.
COURSES: list[tuple[str, list[tuple[str, list[str]]]]] = [
    (
        "alter",
        [
            ("CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c VARCHAR(20))", []),
            ("ALTER TABLE t ADD UNIQUE u (a, b), ADD KEY k (b DESC, c)",
             ["t_k btree (b DESC, c)", "t_u UNIQUE (a, b) DEFERRABLE"]),
            ("ALTER TABLE t RENAME COLUMN a TO x, RENAME INDEX k TO kk",
             ["t_kk btree (b DESC, c)", "t_u UNIQUE (x, b) DEFERRABLE"]),
            ("ALTER TABLE t MODIFY b BIGINT", ["t_kk btree (b DESC, c)", "t_u UNIQUE (x, b) DEFERRABLE"]),
            ("ALTER TABLE t DROP COLUMN b", ["t_kk btree (c)", "t_u UNIQUE (x) DEFERRABLE"]),
            ("ALTER TABLE t DROP KEY u, ADD KEY u (x)", ["t_kk btree (c)", "t_u btree (x)"]),
            ("ALTER TABLE t DROP COLUMN x, ADD d INT UNIQUE", ["t_d UNIQUE (d) DEFERRABLE", "t_kk btree (c)"]),
            ("CREATE UNIQUE INDEX e ON t (c)",
             ["t_d UNIQUE (d) DEFERRABLE", "t_e UNIQUE (c) DEFERRABLE", "t_kk btree (c)"]),
            ("DROP INDEX kk ON t", ["t_d UNIQUE (d) DEFERRABLE", "t_e UNIQUE (c) DEFERRABLE"]),
            ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (c)",
             ["t_d UNIQUE (d) DEFERRABLE", "t_e UNIQUE (c) DEFERRABLE"]),
        ],
    ),
    (
        "values that are too wide, parts, and columns without an order",
        [
            (
                "CREATE TABLE t (id INT PRIMARY KEY, w VARCHAR(3000) CHARACTER SET latin1, b BLOB, x TEXT, j JSON, "
                "f FLOAT, g VARCHAR(9) CHARACTER SET cp932, KEY w (w), UNIQUE p (x(10)), KEY xb (id, x(20), b(30)), "
                "UNIQUE s (id, w), UNIQUE f (f), UNIQUE g (g), FULLTEXT (x), KEY e ((id + 1)))",
                [
                    "t_f btree (f)",
                    "t_g btree (g)",
                    "t_p hash (x)",
                    "t_s btree (id, \"left\"(w, 650))",
                    "t_w hash (w)",
                    "t_xb btree (id, \"left\"(x, 20), substr(b, 1, 30))",
                ],
            ),
            ("ALTER TABLE t DROP KEY w, DROP KEY s, DROP KEY xb, DROP KEY f, DROP KEY g, "
             "MODIFY w VARCHAR(50) CHARACTER SET latin1",
             ["t_p hash (x)"]),
            ("ALTER TABLE t ADD UNIQUE w (w(5))", ["t_p hash (x)", "t_w UNIQUE (w) DEFERRABLE"]),
            ("ALTER TABLE t MODIFY w VARCHAR(700) CHARACTER SET latin1", ["t_p hash (x)", "t_w hash (w)"]),
        ],
    ),
]  # fmt: skip


@pytest.mark.parametrize("course", [course for _, course in COURSES], ids=[name for name, _ in COURSES])
def test_indexes_follow_ddl_and_a_restart_changes_nothing(bench: Bench, course: list[tuple[str, list[str]]]) -> None:
    applier = bench.open()
    applier.sql("CREATE DATABASE shop")
    for sql, expected in course:
        applier.sql(sql)
        assert bench.indexes("t") == expected, sql
        oids = bench.place.query("SELECT array_agg(indexrelid ORDER BY 1) FROM pg_index")
        Bench(bench.place).open().target.close()
        assert bench.place.query("SELECT array_agg(indexrelid ORDER BY 1) FROM pg_index") == oids, sql
        applier = bench.open()


def test_values_that_fill_a_wide_column_are_stored(bench: Bench) -> None:
    applier = bench.open()
    applier.sql("CREATE DATABASE shop", "CREATE TABLE t (id INT PRIMARY KEY, w LONGTEXT, b LONGBLOB, KEY (w(9)), "
                "KEY (id, w(99), b(99)), UNIQUE (b(20)))")  # fmt: skip
    table = layout("shop.t", ["id int", "w longtext", "b longblob"], ["id"])
    text = "".join(chr(0x4E00 + number * 7919 % 20000) for number in range(50_000))
    row = (1, text, text.encode())
    applier.rows(net(table, inserts=[row]))
    assert bench.place.read(table) == [row]


def test_renamed_and_copied_tables_have_indexes_under_their_names(bench: Bench) -> None:
    applier = bench.with_users()
    applier.sql("CREATE TABLE fresh LIKE users")
    applier.sql("RENAME TABLE users TO old, fresh TO users")
    assert bench.indexes("old") == ["old_mail UNIQUE (mail) DEFERRABLE", "old_n btree (name)"]
    applier.sql("DROP TABLE old")
    applier.target.close()
    bench.open()
    assert bench.indexes() == [UNIQUE, PLAIN]


def test_long_names_are_shortened_to_different_ones(bench: Bench) -> None:
    applier = bench.open()
    long = "t" * 60
    keys = "KEY first (a), KEY second (a)"
    applier.sql("CREATE DATABASE shop", f"CREATE TABLE {long} (id INT PRIMARY KEY, a INT, {keys})")
    names = [one.split()[0] for one in bench.indexes(long)]
    assert len(names) == 2
    assert all(name.startswith("t" * 54) and len(name) == 63 for name in names)


def test_name_of_another_relation_is_not_taken(bench: Bench) -> None:
    applier = bench.open()
    applier.sql("CREATE DATABASE shop")
    bench.place.run("CREATE VIEW shop.users_mail AS SELECT 1")
    applier.sql(CREATE)
    assert bench.indexes() == ["users_mail_1 UNIQUE (mail) DEFERRABLE", PLAIN]


def test_excluded_table_keeps_the_indexes_it_has(bench: Bench) -> None:
    applier = bench.with_users()
    entry = Excluded(since=Seqno(1), at=0, by="me", reason="why")
    applier.target.exclude({USERS.name: entry})
    applier.commit()
    applier.sql("ALTER TABLE users DROP INDEX mail")
    applier.target.close()
    bench.open()
    assert bench.indexes() == [UNIQUE, PLAIN]


def test_column_of_quotes_is_compared_with_the_catalog(bench: Bench) -> None:
    applier = bench.open()
    columns = 'id INT PRIMARY KEY, `a"b` LONGTEXT, `left` INT, KEY k (id, `a"b`(5), `left`)'
    applier.sql("CREATE DATABASE shop", f"CREATE TABLE t ({columns})")
    before = bench.place.query("SELECT array_agg(indexrelid ORDER BY 1) FROM pg_index")
    bench.open()
    assert bench.place.query("SELECT array_agg(indexrelid ORDER BY 1) FROM pg_index") == before


@pytest.mark.parametrize("restart", [False, True])
def test_name_of_a_constraint_is_not_taken(bench: Bench, restart: bool) -> None:
    applier = bench.with_users()
    bench.place.run("ALTER TABLE shop.users ADD CONSTRAINT users_own CHECK (id > 0)")
    if restart:  # an applier that was killed has left an index that is no constraint yet
        bench.place.run(
            "ALTER TABLE shop.users DROP CONSTRAINT users_mail; CREATE UNIQUE INDEX users_own ON shop.users (mail); "
            "COMMENT ON INDEX shop.users_own IS 'thl: made by target.indexes'"
        )
        applier.target.close()
        applier = bench.open()
        assert bench.indexes() == [UNIQUE, PLAIN]
        return
    applier.sql("ALTER TABLE users ADD UNIQUE KEY own (name, mail)")
    assert "users_own_1 UNIQUE (name, mail) DEFERRABLE" in bench.indexes()
    applier.rows(net(USERS, inserts=[(1, "a", "x"), (2, "b", "y")]))
    applier.rows(net(USERS, updates=[(1, "b", "y"), (2, "a", "x")]))
    assert bench.users() == [(1, "b", "y"), (2, "a", "x")]


@pytest.mark.parametrize(
    ("found", "meanwhile"),
    [
        (
            "ALTER TABLE shop.users DROP CONSTRAINT users_mail; CREATE UNIQUE INDEX users_mail ON shop.users (mail); "
            "COMMENT ON INDEX shop.users_mail IS 'thl: made by target.indexes'",
            "ALTER TABLE shop.users ADD CONSTRAINT users_mail UNIQUE USING INDEX users_mail "
            "DEFERRABLE INITIALLY IMMEDIATE",
        ),
        (
            "ALTER TABLE shop.users ADD CONSTRAINT old UNIQUE (name) DEFERRABLE INITIALLY IMMEDIATE; "
            "COMMENT ON INDEX shop.old IS 'thl: made by target.indexes'",
            "ALTER TABLE shop.users DROP CONSTRAINT old",
        ),
    ],
    ids=["add", "drop"],
)
def test_change_that_a_killed_applier_s_server_process_ends_later_is_looked_up_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, found: str, meanwhile: str
) -> None:
    bench.with_users().target.close()
    bench.place.run(found)
    read, left = IndexBuilder._read, [meanwhile]

    def read_before(self: IndexBuilder) -> object:
        existing = read(self)
        while left:
            bench.place.run(left.pop())
        return existing

    monkeypatch.setattr(IndexBuilder, "kept", True, raising=False)
    monkeypatch.setattr(IndexBuilder, "_read", read_before)
    bench.open()
    assert bench.indexes() == [UNIQUE, PLAIN]


def test_index_that_may_not_be_renamed_is_warned_of_and_rows_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    applier = bench.with_users()

    def refuse(*_: object) -> str:
        raise psycopg.errors.InsufficientPrivilege("permission denied for schema shop")

    monkeypatch.setattr(IndexBuilder, "_renamed", refuse)
    with caplog.at_level(logging.WARNING):
        applier.sql("ALTER TABLE users RENAME INDEX mail TO post")
    assert any("users" in str(record.__dict__.get("table")) for record in caplog.records)
    applier.rows(net(USERS, inserts=[(1, "a", "x")]))
    assert bench.users() == [(1, "a", "x")]


@pytest.mark.parametrize("sizes", [[161] * 15 + [185], [159] * 15 + [167], [2672], [2000, 664], [300] * 16], ids=str)
def test_values_that_fill_an_entry_are_stored(bench: Bench, sizes: list[int]) -> None:
    applier = bench.open()
    columns = ", ".join(f"c{number} VARBINARY({size})" for number, size in enumerate(sizes))
    parts = ", ".join(f"c{number}" for number in range(len(sizes)))
    applier.sql("CREATE DATABASE shop", f"CREATE TABLE t (id INT PRIMARY KEY, {columns}, UNIQUE KEY u ({parts}))")
    table = layout("shop.t", ["id int", *(f"c{n} varbinary({size})" for n, size in enumerate(sizes))], ["id"])
    rows = [(number, *(os.urandom(size) for size in sizes)) for number in range(10)]
    applier.rows(net(table, inserts=rows))
    assert bench.place.read(table) == rows


def test_commit_of_rows_alone_does_not_read_the_catalog(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    applier = bench.with_users()
    read: list[IndexBuilder] = []
    monkeypatch.setattr(IndexBuilder, "_read", lambda builder: read.append(builder) or {})
    applier.rows(net(USERS, inserts=[(1, "a", "x")]))
    assert not read
    applier.sql("ALTER TABLE users ADD KEY both (name, mail)")
    assert read
