"""The contract of a target on PostgreSQL with several writers: every commit of rows is divided, however small.

Of what only plans, or is loaded, the tests of random transactions are here, and the others in the rest, which is long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.config.secret_files import SecretFile
from connector.errors import (
    ConfigError,
    ConnectorError,
    Fenced,
    LogDamaged,
    PreflightError,
    TargetDiffers,
    TargetUnavailable,
)
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.log.compact.net_changes import NetChanges
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName
from connector.targets.postgres import connection as connection_module
from connector.targets.postgres import divided_commit
from connector.targets.postgres import writer as writer_module
from connector.targets.postgres.merge import Step
from connector.targets.postgres.target import PostgresTarget
from connector.targets.postgres.writer import Writer
from connector.targets.postgres.writer_shares import divide
from tests.contract.target_again import *  # noqa: F403
from tests.contract.target_again import ORDERS, random_records
from tests.contract.target_history import (  # noqa: F401
    staged,
    test_history_has_each_change_once_and_at_once_with_its_table,
    test_history_of_an_applier_killed_again_and_again_has_each_change_once,
)
from tests.contract.target_load import TestRepair, test_loaded_table_equals_the_source_after_crashes  # noqa: F401
from tests.contract.target_partial import *  # noqa: F403
from tests.contract.target_suite import *  # noqa: F403
from tests.contract.target_suite import LOOSE, USERS, Applier
from tests.contract.target_transactions import (  # noqa: F401
    test_each_row_has_the_transaction_that_wrote_it_last,
    test_equal_rows_taken_back_have_no_later_metadata,
    test_replayed_rows_keep_their_metadata,
    test_rows_taken_back_have_null_metadata_until_written,
)
from tests.contract.test_target_postgres import PostgresPlace, database  # noqa: F401
from tests.support.long import long
from tests.support.net import layout, net
from tests.unit.applier.test_core import Rig, history, log, table

WRITERS = 3
CREATE_ORDERS = "CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(100))"


class WritersPlace(PostgresPlace):
    writers = WRITERS
    kills = ("before_intent:3", "after_intent:2", "after_channel:4", "before_channel:5", "after_commit:3")

    def open(
        self, *, audit: bool = False, columns: MetadataColumns | None = None, history: HistoryTables | None = None
    ) -> PostgresTarget:
        made = PostgresTarget(
            SecretStr(self.url), SystemClock(), audit=audit, columns=columns, history=history, writers=self.writers
        )
        self.opened.append(made)
        return made

    @property
    def options(self) -> dict[str, Any]:
        return {"url": self.url, "writers": self.writers}

    def open_for_undo(self, *, columns: MetadataColumns | None = None) -> PostgresTarget:
        self.opened.append(PostgresTarget(SecretStr(self.url), SystemClock(), audit=True, columns=columns))
        return self.opened[-1]

    def close(self) -> None:
        """End the sessions of all targets, as a crash does."""
        while self.opened:
            self.opened.pop().close()


@pytest.fixture
def place(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WritersPlace]:  # noqa: F811
    monkeypatch.setattr(divided_commit, "DIVIDED_ROWS", 1)
    made = WritersPlace(database)
    yield made
    made.close()
    for (schema,) in made.query("SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^(pg_|information_)'"):
        made.reader.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    made.reader.close()


@pytest.fixture
def orders(place: WritersPlace) -> Applier:
    made = Applier(place.open(audit=True))
    made.sql("CREATE DATABASE shop", CREATE_ORDERS)
    return made


class Crash(BaseException):
    """The end of the process."""


class Crashes:
    """Ends the process at a writer's COMMIT: before it, or after it and before the applier knows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.before: set[int] = set()
        self.after: set[int] = set()
        self.later = 0  # commits of each writer before that
        monkeypatch.setattr(Writer, "commit", self._commit(Writer.commit))

    def _commit(self, commit: object) -> object:
        counts: dict[Writer, int] = {}

        def crashing(writer: Writer) -> None:
            number = int(writer.session.info.parameter_status("application_name").rpartition(" ")[2]) - 1
            counts[writer] = counts.get(writer, 0) + 1
            if counts[writer] <= self.later:
                commit(writer)  # type: ignore[operator]
                return
            if number in self.before:
                raise Crash
            commit(writer)  # type: ignore[operator]
            if number in self.after:
                raise Crash

        return crashing


@pytest.fixture
def crashes(monkeypatch: pytest.MonkeyPatch) -> Crashes:
    return Crashes(monkeypatch)


def leave_open(place: WritersPlace, applier: Applier, crashes: Crashes, *changes: NetChanges) -> None:
    """Die within a commit of which the second of three writers alone has made its share."""
    crashes.before = {0, 2}
    with pytest.raises(Crash):
        applier.rows(*changes)
    place.close()
    crashes.before = set()


def causes(place: WritersPlace) -> list[str]:
    return [str(one) for (one,) in place.query("SELECT because FROM thl.thl_inconsistent_because ORDER BY 1")]


def consistent(place: WritersPlace) -> bool:
    return place.query("SELECT consistent FROM thl.thl_position WHERE service = 'shop'") == [(True,)]


def schema_version(place: WritersPlace) -> int:
    ((version,),) = place.query("SELECT schema_version FROM thl.thl_position WHERE service = 'shop'")
    return int(str(version))


ROWS = [(number, f"v{number}") for number in range(40)]


def test_rows_are_divided_among_all_writers(place: WritersPlace, orders: Applier) -> None:
    orders.rows(net(ORDERS, inserts=ROWS))
    assert place.read(ORDERS) == ROWS
    moved = place.query("SELECT channel, seqno FROM thl.thl_channels ORDER BY 1")
    assert moved == [(number, orders.position.seqno) for number in range(WRITERS)]
    # by the transactions that wrote the rows
    assert len(place.query("SELECT DISTINCT xmin::text FROM shop.orders")) == WRITERS
    assert (causes(place), consistent(place)) == ([], True)
    assert place.query("SELECT * FROM thl.thl_intent") == []


@pytest.mark.parametrize("committed", [{0}, {1}, {2}, {0, 2}, {1, 2}])
@pytest.mark.parametrize("writers", [1, 2, 5])
def test_a_commit_that_was_made_in_part_is_made_whole(
    place: WritersPlace, orders: Applier, crashes: Crashes, committed: set[int], writers: int
) -> None:
    before = orders.position
    crashes.before = set(range(WRITERS)) - committed
    with pytest.raises(Crash):
        orders.rows(net(ORDERS, inserts=ROWS))
    place.close()
    crashes.before = set()
    assert place.read(ORDERS) not in ([], ROWS)
    assert (causes(place), consistent(place), schema_version(place)) == (["channels"], False, 2)
    place.writers = writers
    again = Applier(place.open(audit=True))
    intent = again.position.intent
    assert intent is not None
    assert (intent.first, intent.last, intent.writers, intent.committed) == (
        before.seqno + 1,
        before.seqno + 1,
        WRITERS,
        committed,
    )
    assert (again.position.seqno, again.position.consistent) == (before.seqno, True)
    again.rows(net(ORDERS, inserts=ROWS))
    assert place.read(ORDERS) == ROWS
    assert (causes(place), consistent(place), schema_version(place)) == ([], True, 1)
    place.close()
    last = Applier(place.open(audit=True))
    assert last.position == again.position
    last.rows(net(ORDERS, deletes=ROWS[3:]))
    assert place.read(ORDERS) == ROWS[:3]
    assert [seqno for seqno, _ in place.applied()] == list(range(last.position.seqno + 1))


def test_a_commit_that_all_have_made_but_for_the_position_is_ended(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    crashes.after = {0}
    with pytest.raises(Crash):
        orders.rows(net(ORDERS, inserts=ROWS))
    place.close()
    crashes.after = set()
    assert place.read(ORDERS) == ROWS
    again = Applier(place.open(audit=True))
    assert again.position.intent is not None
    assert again.position.intent.committed == set(range(WRITERS))
    again.rows(net(ORDERS, inserts=ROWS))
    assert place.read(ORDERS) == ROWS


def test_a_commit_of_which_no_part_was_made_is_forgotten(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    before = orders.position
    crashes.before = set(range(WRITERS))
    with pytest.raises(Crash):
        orders.rows(net(ORDERS, inserts=ROWS))
    place.close()
    crashes.before = set()
    again = Applier(place.open())
    assert again.position == before
    assert schema_version(place) == 1
    assert (causes(place), consistent(place), place.read(ORDERS)) == ([], True, [])
    again.rows(net(ORDERS, inserts=ROWS[:5]))  # the log may have been cut otherwise
    assert place.read(ORDERS) == ROWS[:5]


def test_a_target_that_was_not_consistent_before_such_a_commit_is_not_after_it_is_forgotten(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    orders.commit(consistent=False)
    crashes.before = set(range(WRITERS))
    with pytest.raises(Crash):
        orders.rows(net(ORDERS, inserts=ROWS))
    place.close()
    crashes.before = set()
    again = Applier(place.open())
    assert again.position == orders.position
    assert (causes(place), consistent(place), again.position.consistent) == (["load"], False, False)


def test_a_writer_that_has_committed_before_has_not_committed_this(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    orders.rows(net(ORDERS, inserts=ROWS[:20]))
    leave_open(place, orders, crashes, net(ORDERS, inserts=ROWS[20:]))
    again = Applier(place.open())
    assert again.position.intent is not None
    assert again.position.intent.committed == {1}
    again.rows(net(ORDERS, inserts=ROWS[20:]))
    assert place.read(ORDERS) == ROWS


def test_a_deferred_constraint_that_one_writer_violates_leaves_nothing(place: WritersPlace, orders: Applier) -> None:
    """It is looked at before the intent: at COMMIT the commit could not be undone any more."""
    orders.rows(net(ORDERS, inserts=ROWS))
    place.run("ALTER TABLE shop.orders ADD UNIQUE (v) DEFERRABLE INITIALLY DEFERRED")
    with pytest.raises(TargetDiffers, match="duplicate key"):
        orders.rows(net(ORDERS, inserts=[(100, "same"), (101, "same")]))
    assert (causes(place), consistent(place), place.read(ORDERS)) == ([], True, ROWS)


def test_writers_that_wait_for_a_slow_one_keep_their_sessions(
    place: WritersPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends a session that is idle within its transaction."""
    assert f"'{connection_module.IDLE_SECONDS}s'" in connection_module._SESSION
    sooner = connection_module._SESSION.replace(f"'{connection_module.IDLE_SECONDS}s'", "'1500ms'")
    monkeypatch.setattr(connection_module, "_SESSION", sooner)
    monkeypatch.setattr(writer_module, "AWAKE_SECONDS", 0.1)
    merge = Writer.merge

    def slow(writer: Writer, first: Sequence[Step]) -> None:
        one = (writer.session.info.parameter_status("application_name") or "").endswith(" 1")
        merge(writer, [*first, Step("SELECT pg_sleep(3)")] if one else first)

    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", CREATE_ORDERS)
    monkeypatch.setattr(Writer, "merge", slow)
    applier.rows(net(ORDERS, inserts=ROWS))
    assert (place.read(ORDERS), causes(place)) == (ROWS, [])


def test_a_wrong_row_count_of_one_writer_leaves_nothing(place: WritersPlace, orders: Applier) -> None:
    orders.rows(net(ORDERS, inserts=ROWS))
    place.run("DELETE FROM shop.orders WHERE id = 7")
    with pytest.raises(TargetDiffers) as differs:
        orders.rows(net(ORDERS, updates=[(key, "new") for key, _ in ROWS]))
    assert differs.value.where["rows"] == "id=7"
    assert (causes(place), consistent(place)) == ([], True)
    assert {v for _, v in place.read(ORDERS) or ()} == {v for _, v in ROWS} - {"v7"}


def test_what_is_known_of_a_table_is_forgotten_with_rows_that_are_discarded(
    place: WritersPlace, orders: Applier
) -> None:
    """An index that others made before the rows are staged again counts."""
    orders.rows(net(ORDERS, inserts=ROWS[:20]))
    orders.target.stage([net(ORDERS, inserts=ROWS[20:])], last=True)
    orders.target.discard()
    place.run("CREATE UNIQUE INDEX ON shop.orders (v)")
    orders.rows(net(ORDERS, inserts=ROWS[20:]))
    assert len(place.query("SELECT DISTINCT xmin::text FROM shop.orders WHERE id >= 20")) == 1
    assert place.read(ORDERS) == ROWS


@pytest.mark.parametrize(
    "made",
    [
        "CREATE UNIQUE INDEX ON shop.orders (v)",
        "ALTER TABLE shop.orders ADD EXCLUDE (v WITH =)",
        "CREATE TABLE shop.child (id int REFERENCES shop.orders)",
        "CREATE TABLE shop.parent (id int PRIMARY KEY); INSERT INTO shop.parent SELECT generate_series(0, 99); "
        "ALTER TABLE shop.orders ADD FOREIGN KEY (id) REFERENCES shop.parent",
        "CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.f()",
        "CREATE RULE r AS ON DELETE TO shop.orders DO ALSO NOTIFY x",
        "CREATE TABLE shop.kin () INHERITS (shop.orders)",
        "ALTER TABLE shop.orders DROP CONSTRAINT orders_pkey, ADD PRIMARY KEY (v)",
    ],
    ids=["unique", "exclude", "referenced", "foreign key", "trigger", "rule", "inherits", "primary key"],
)
def test_a_table_with_more_than_a_primary_key_goes_by_one_writer(
    place: WritersPlace, orders: Applier, made: str
) -> None:
    orders.rows(net(ORDERS, inserts=ROWS[:20]))
    place.run(made)
    orders.rows(net(ORDERS, inserts=ROWS[20:]))
    assert len(place.query("SELECT DISTINCT xmin::text FROM ONLY shop.orders WHERE id >= 20")) == 1
    assert place.read(ORDERS) == ROWS


def test_an_index_that_keeps_a_commit_from_being_made_whole_is_named_with_the_way_out(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    """Two writers swap values: each waits for the other's, or is refused."""
    of_writer = [next(row for row in ROWS if list(divide(net(ORDERS, inserts=[row]), WRITERS))[n]) for n in range(3)]
    (first, v), (second, other), (third, another) = of_writer
    swap = net(ORDERS, updates=[(first, f"{v} again"), (second, another), (third, other)])
    orders.rows(net(ORDERS, inserts=ROWS))
    crashes.before = {1, 2}
    with pytest.raises(Crash):
        orders.rows(swap)
    place.close()
    crashes.before = set()
    place.run("CREATE UNIQUE INDEX of_a_report ON shop.orders (v)")
    again = Applier(place.open(audit=True))
    with pytest.raises(ConnectorError) as failed:
        again.rows(swap)
    place.close()
    assert "shop.orders has got index of_a_report: drop it on the target, run thl apply" in failed.value.hint
    place.run("DROP INDEX shop.of_a_report")
    Applier(place.open(audit=True)).rows(swap)
    assert dict(place.read(ORDERS) or ()) == dict(ROWS) | {first: f"{v} again", second: another, third: other}


def test_a_table_without_a_key_goes_by_one_writer(place: WritersPlace, applier: Applier) -> None:
    loose = [(number, "x", None, None) for number in range(20)]
    applier.rows(net(LOOSE, inserts=loose), net(USERS, inserts=[(n, "x", None) for n in range(20)]))
    assert len(place.query("SELECT DISTINCT xmin::text FROM shop.loose")) == 1
    assert len(place.query("SELECT DISTINCT xmin::text FROM shop.users")) == WRITERS


def test_a_trigger_that_writes_into_another_table_of_the_commit_is_named(
    place: WritersPlace, orders: Applier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "_SESSION", connection_module._SESSION.replace("'60s'", "'2s'"))
    orders.sql(CREATE_ORDERS.replace("orders", "items"))
    items = replace(ORDERS, name=TableName("shop", "items"))
    orders.rows(net(ORDERS, inserts=ROWS), net(items, inserts=ROWS))
    place.close()
    place.run(
        "CREATE FUNCTION shop.touched() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN UPDATE shop.items SET v = v WHERE id = NEW.id; RETURN NEW; END'; "
        "CREATE TRIGGER touches AFTER UPDATE ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.touched()"
    )
    updates = [(key, f"{value} again") for key, value in ROWS]
    with pytest.raises(TargetUnavailable) as failed:
        Applier(place.open()).rows(net(ORDERS, updates=updates), net(items, updates=updates))
    assert "shop.orders: trigger touches" in failed.value.hint
    assert "target.writers: 1" in failed.value.hint


def test_changes_that_cannot_have_been_divided_are_refused_by_the_table_s_name(
    place: WritersPlace, applier: Applier, crashes: Crashes
) -> None:
    users = net(USERS, inserts=[(n, "x", None) for n in range(20)])
    crashes.before = {0, 2}
    with pytest.raises(Crash):
        applier.rows(users)
    place.close()
    again = Applier(place.open(audit=True))
    with pytest.raises(LogDamaged) as refused:
        again.rows(users, net(LOOSE, inserts=[(1, "x", None, None)]))
    assert "shop.loose was divided, and now has rows without a key" in refused.value.message
    assert refused.value.hint


MOVES = net(ORDERS, changed=[({"v": "c"}, (0,))], moved=[({"id": 100 + key}, (key,)) for key in range(1, 9)])
MOVED = [(0, "c"), (9, "v9"), *((100 + key, f"v{key}") for key in range(1, 9))]


@pytest.mark.parametrize("committed", [None, {0}])
def test_rows_that_get_another_key_and_lack_columns_go_by_one_writer(
    place: WritersPlace, orders: Applier, crashes: Crashes, committed: set[int] | None
) -> None:
    orders.sql("CREATE TABLE others (id INT PRIMARY KEY)")
    others = net(layout("shop.others", ["id int"], ["id"]), inserts=[(key,) for key in range(30)])
    orders.rows(net(ORDERS, inserts=ROWS[:10]))
    if committed is not None:
        crashes.before = set(range(WRITERS)) - committed
        with pytest.raises(Crash):
            orders.rows(MOVES, others)
        place.close()
        crashes.before = set()
        orders = Applier(place.open(audit=True))
        assert orders.position.intent is not None
    orders.rows(MOVES, others)
    assert place.read(ORDERS) == sorted(MOVED)


def test_rows_that_get_another_key_after_their_table_was_divided(place: WritersPlace, orders: Applier) -> None:
    """Nothing is lost of what all writers had staged, and what follows comes after it."""
    orders.rows(net(ORDERS, inserts=ROWS[:10]))
    parts = [
        net(ORDERS, inserts=ROWS[20:], deletes=[(0, "v0")]),
        net(ORDERS, moved=[({"id": 100 + key}, (key,)) for key in (1, 2, 21, 22)]),
        net(ORDERS, inserts=[(0, "again")], deletes=[(23, "v23")]),
        net(ORDERS, inserts=[(23, "again")]),
    ]
    for part in parts:
        orders.target.stage([part], last=part is parts[-1])
    orders.commit()
    expected = {**dict(ROWS[:10]), **dict(ROWS[20:]), 0: "again", 23: "again"}
    for key in (1, 2, 21, 22):
        expected[100 + key] = expected.pop(key)
    assert place.read(ORDERS) == sorted(expected.items())
    assert len(place.query("SELECT DISTINCT xmin::text FROM shop.orders WHERE id NOT BETWEEN 3 AND 9")) == 1


def test_rows_before_those_that_get_another_key_come_behind_what_other_writers_had_staged(
    place: WritersPlace, orders: Applier
) -> None:
    """Rows that other writers delete first come back in the same changes as rows that get another key."""
    orders.rows(net(ORDERS, inserts=ROWS[:10]))
    orders.target.stage([net(ORDERS, inserts=ROWS[20:], deletes=ROWS[1:10])], last=False)
    again = [(key, "again") for key, _ in ROWS[1:10]]
    orders.target.stage([net(ORDERS, inserts=again), net(ORDERS, moved=[({"id": 100}, (0,))])], last=True)
    orders.commit()
    assert place.read(ORDERS) == [*again, *ROWS[20:], (100, "v0")]


def test_a_newer_applier_waits_for_writers_that_are_about_to_commit(
    place: WritersPlace, orders: Applier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the older one, which was stopped behind them, is fenced."""
    claims: list[object] = []
    with ThreadPoolExecutor(1) as pool:

        def claimed(name: str) -> None:
            if name == "target.before_intent" and not claims:
                claims.append(pool.submit(lambda: Applier(place.open(audit=True))))
                waiting = "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                while place.query(waiting) == [(0,)]:
                    pass

        monkeypatch.setattr(divided_commit.faults, "point", claimed)
        with suppress(Fenced):  # between the writers' commits and the position
            orders.rows(net(ORDERS, inserts=ROWS))
        newer: Applier = claims[0].result()  # type: ignore[attr-defined]
    if newer.position.intent is not None:
        newer.rows(net(ORDERS, inserts=ROWS))
    assert place.read(ORDERS) == ROWS
    assert newer.position.seqno == 1
    with pytest.raises(Fenced):
        orders.rows(net(ORDERS, deletes=ROWS))
    assert place.read(ORDERS) == ROWS


def test_a_writer_of_an_older_applier_is_fenced(place: WritersPlace, orders: Applier) -> None:
    orders.target.stage([net(ORDERS, inserts=ROWS)], last=True)
    newer = Applier(place.open(audit=True))
    with pytest.raises(Fenced):
        orders.commit()
    newer.rows(net(ORDERS, inserts=ROWS[:1]))
    assert place.read(ORDERS) == ROWS[:1]


def test_a_writer_whose_commit_is_rolled_back_has_not_committed(
    place: WritersPlace, orders: Applier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that was not looked at aborts a transaction: PostgreSQL then answers COMMIT with ROLLBACK."""
    commit = Writer.commit

    def aborted(writer: Writer) -> None:
        if (writer.session.info.parameter_status("application_name") or "").endswith(" 1"):
            with pytest.raises(psycopg.errors.DivisionByZero):
                writer.session.execute("SELECT 1/0")
        commit(writer)

    with monkeypatch.context() as patch:
        patch.setattr(Writer, "commit", aborted)
        with pytest.raises(TargetUnavailable, match="ROLLBACK"):
            orders.rows(net(ORDERS, inserts=ROWS))
    assert not consistent(place)
    orders.target.close()
    again = Applier(place.open(audit=True))
    assert again.position.intent is not None
    again.rows(net(ORDERS, inserts=ROWS))
    assert place.query("SELECT count(*)::int FROM shop.orders") == [(len(ROWS),)]
    assert consistent(place)


def test_channels_of_a_position_that_was_deleted_have_committed_nothing(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    orders.rows(net(ORDERS, inserts=ROWS))
    stood = orders.position.seqno
    orders.target.close()
    place.reader.execute("DROP SCHEMA shop CASCADE")
    for name in ("thl_tables", "thl_applied", "thl_position"):
        place.reader.execute(f"DELETE FROM thl.{name}".encode())
    again = Applier(place.open(audit=True))
    again.sql("CREATE DATABASE shop", CREATE_ORDERS)
    while again.position.seqno < stood - 1:
        again.sql(f"CREATE DATABASE more{again.position.seqno}")
    crashes.before = set(range(WRITERS))
    with pytest.raises(Crash):
        again.rows(net(ORDERS, inserts=ROWS))
    again.target.close()
    crashes.before = set()
    third = Applier(place.open(audit=True))
    assert third.position.intent is None
    assert third.position.seqno == stood - 1


def test_channels_one_event_ahead_of_a_position_have_committed_nothing(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    """The position and the rows were set back by hand; the next commit ends at the event where the channels stand."""
    orders.rows(net(ORDERS, inserts=ROWS))
    before = orders.position.seqno - 1
    place.close()
    place.run(f"DELETE FROM shop.orders; DELETE FROM thl.thl_applied WHERE seqno > {before}")
    place.run(f"UPDATE thl.thl_position SET seqno = {before}")
    crashes.before = set(range(WRITERS))
    again = Applier(place.open(audit=True))
    with pytest.raises(Crash):
        again.rows(net(ORDERS, inserts=ROWS))
    place.close()
    crashes.before = set()
    third = Applier(place.open(audit=True))
    assert (third.position.seqno, third.position.intent) == (before, None)
    third.rows(net(ORDERS, inserts=ROWS))
    assert place.read(ORDERS) == ROWS


def test_channels_have_committed_nothing_after_their_applier_has_gone_back(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    """Within one claim; the next commit ends at the event where the channels stood."""
    orders.rows(net(ORDERS, inserts=ROWS))
    back = replace(orders.position, seqno=Seqno(orders.position.seqno - 1))
    orders.target.commit(back, [])
    orders.position = back
    crashes.before = set(range(WRITERS))
    with pytest.raises(Crash):
        orders.rows(net(ORDERS, deletes=ROWS))
    place.close()
    crashes.before = set()
    again = Applier(place.open(audit=True))
    assert (again.position.seqno, again.position.intent) == (back.seqno, None)
    assert place.read(ORDERS) == ROWS


def test_an_open_commit_of_a_position_that_was_deleted_is_refused_with_the_way_out(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    """One writer's share of everything before it would be missing."""
    leave_open(place, orders, crashes, net(ORDERS, inserts=ROWS))
    place.run("DROP SCHEMA shop CASCADE; DELETE FROM thl.thl_tables; DELETE FROM thl.thl_position")
    with pytest.raises(ConfigError, match="follows event 0, and the target's position is -1") as refused:
        place.open().claim("shop")
    assert "DELETE FROM thl.thl_intent" in refused.value.hint
    place.close()
    place.run("DELETE FROM thl.thl_intent; DELETE FROM thl.thl_applied")
    again = Applier(place.open(audit=True))
    again.sql("CREATE DATABASE shop", CREATE_ORDERS)
    again.rows(net(ORDERS, inserts=ROWS))
    assert place.read(ORDERS) == ROWS


def test_a_commit_that_goes_back_is_not_divided(place: WritersPlace, orders: Applier) -> None:
    """An applier that finds it in part could not make it whole; `thl undo` opens its target with one writer."""
    orders.rows(net(ORDERS, inserts=ROWS))
    orders.target.stage([net(ORDERS, deletes=ROWS)], last=True)
    with pytest.raises(ValueError, match="not divided"):
        orders.target.commit(replace(orders.position, seqno=Seqno(0)), [])
    assert (place.read(ORDERS), causes(place)) == (ROWS, [])


def test_another_version_s_division_is_refused_by_name(place: WritersPlace, orders: Applier, crashes: Crashes) -> None:
    crashes.before = {1}
    with pytest.raises(Crash):
        orders.rows(net(ORDERS, inserts=ROWS))
    place.close()
    place.run("UPDATE thl.thl_intent SET hash_version = 99")
    with pytest.raises(ConfigError) as refused:
        Applier(place.open())
    assert (refused.value.where["hash_version"], refused.value.where["seqno"]) == (99, "1..1")


def test_an_account_that_may_not_create_the_tables_for_writers_gets_the_grant(place: WritersPlace) -> None:
    place.writers = 1
    Applier(place.open())
    place.close()
    place.reader.execute("DROP TABLE thl.thl_intent CASCADE; DROP ROLE IF EXISTS thl_plain")
    place.reader.execute("CREATE ROLE thl_plain LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA thl TO thl_plain")
    place.reader.execute("GRANT ALL ON ALL TABLES IN SCHEMA thl TO thl_plain")
    place.url = psycopg.conninfo.make_conninfo(place.url, user="thl_plain", password="x")
    try:
        Applier(place.open())
        place.close()
        place.writers = 2
        with pytest.raises(PreflightError) as refused:
            Applier(place.open())
        assert "GRANT CREATE, USAGE ON SCHEMA thl" in refused.value.hint
        place.close()
    finally:
        place.reader.execute("DROP OWNED BY thl_plain; DROP ROLE thl_plain")


def test_an_open_commit_without_its_channels_is_refused_though_one_writer_needs_none(
    place: WritersPlace, orders: Applier, crashes: Crashes
) -> None:
    leave_open(place, orders, crashes, net(ORDERS, inserts=ROWS))
    place.reader.execute("DROP TABLE thl.thl_channels CASCADE; DROP ROLE IF EXISTS thl_plain")
    place.reader.execute("CREATE ROLE thl_plain LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA thl, shop TO thl_plain")
    place.reader.execute("GRANT ALL ON ALL TABLES IN SCHEMA thl, shop TO thl_plain")
    owner, place.url = place.url, psycopg.conninfo.make_conninfo(place.url, user="thl_plain", password="x")
    place.writers = 1
    try:
        with pytest.raises(PreflightError, match=r"several writers need thl\.thl_channels"):
            place.open().claim("shop")
    finally:
        place.close()
        place.url = owner
        place.reader.execute("DROP OWNED BY thl_plain; DROP ROLE thl_plain")


@pytest.mark.parametrize("seed", [0, 1, 2, *long(*range(3, 8))])
def test_random_transactions_with_crashes_between_writers_converge(
    place: WritersPlace, crashes: Crashes, seed: int
) -> None:
    """Each attempt has another number of writers, and reads in other batches."""
    random = Random(seed)
    events = 80
    records, states, starts = random_records(random, events)
    values = log(*records)
    known = history([0], events - 1)
    ended = 0
    for _ in range(200):
        place.writers = random.choice([1, 2, 3, 6])
        target = place.open(audit=True)
        rig = Rig(target, known)
        intent = rig.core.position.intent
        at = rig.core.position.seqno
        some = set(random.sample(range(6), random.randrange(1, 6))) if ended < 8 else set()
        crashes.before, crashes.after = (some, set()) if random.random() < 0.7 else (set(), some)
        crashes.later = random.randrange(2)
        begin = 0 if at < 0 else starts[at + 1] if at + 1 < events else len(values)
        try:
            for _ in range(random.randint(1, 2)):
                if begin == len(values) or rig.core.done:
                    break
                end = min(len(values), begin + random.randint(1, 8))
                rig.accept(table(values[begin:end], offset=begin))
                begin = end
        except Crash:
            ended += 1
        position = rig.core.position
        place.close()
        assert intent is None or position.seqno in (at, intent.last)
        if consistent(place) and position.seqno >= 1:
            assert dict(place.read(ORDERS) or ()) == states[position.seqno]
        if position.seqno == events - 1:
            break
    else:
        pytest.fail("the end is not reached")
    assert ended > 1
    assert [seqno for seqno, _ in place.applied()] == list(range(events))
    assert place.staging() == 0


def test_writers_connect_with_the_present_password(place: WritersPlace, tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(make_conninfo(place.url, user="thl_rotated", password="old"))
    place.reader.execute(b"CREATE ROLE thl_rotated LOGIN SUPERUSER PASSWORD 'old'")
    try:
        made = PostgresTarget(SecretFile("url_file", file), SystemClock(), writers=WRITERS)
        place.opened.append(made)
        file.write_text(make_conninfo(place.url, user="thl_rotated", password="new"))
        place.reader.execute(b"ALTER ROLE thl_rotated PASSWORD 'new'")
        applier = Applier(made)
        applier.sql("CREATE DATABASE shop", CREATE_ORDERS)
        applier.rows(net(ORDERS, inserts=[(number, "x") for number in range(10)]))
    finally:
        place.close()
        place.reader.execute(b"DROP OWNED BY thl_rotated CASCADE; DROP ROLE thl_rotated")
