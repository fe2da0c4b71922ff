"""Readers beside several writers: by the applier's snapshots they see whole transactions, plainly not."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg import sql
from pydantic import SecretStr

from connector.clock import SystemClock
from connector.errors import PreflightError
from connector.log.compact.history import HistoryTables
from connector.log.compact.metadata_columns import MetadataColumns
from connector.targets.postgres import divided_commit
from connector.targets.postgres import snapshots as snapshots_module
from connector.targets.postgres.snapshots import SnapshotExporter
from connector.targets.postgres.target import PostgresTarget
from connector.targets.postgres.writer import Writer
from connector.verify import postgres as verify_module
from connector.verify.postgres import PostgresReader
from connector.verify.values import ComparedColumn, ValueForm
from tests.contract.target_again import ORDERS
from tests.contract.target_suite import Applier
from tests.contract.test_target_postgres import PostgresPlace, database  # noqa: F401
from tests.contract.test_target_postgres_writers import CREATE_ORDERS, Crash, Crashes, WritersPlace, crashes
from tests.support.clock import PATIENCE
from tests.support.net import net

__all__ = ["crashes"]

Found = TypeVar("Found")

INTERVAL = 0.05
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
ROWS = [(number, "first") for number in range(40)]
AGAIN = [(number, "again") for number in range(40)]


class SnapshotsPlace(WritersPlace):
    interval = INTERVAL

    def open(
        self, *, audit: bool = False, columns: MetadataColumns | None = None, history: HistoryTables | None = None
    ) -> PostgresTarget:
        made = PostgresTarget(
            SecretStr(self.url),
            SystemClock(),
            audit=audit,
            columns=columns,
            history=history,
            writers=self.writers,
            snapshot_interval=self.interval,
        )
        self.opened.append(made)
        return made


@pytest.fixture
def place(database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SnapshotsPlace]:  # noqa: F811
    monkeypatch.setattr(divided_commit, "DIVIDED_ROWS", 1)
    monkeypatch.setattr(snapshots_module, "RETRY_SECONDS", 0.1)
    made = SnapshotsPlace(database)
    yield made
    made.close()
    made.reader.execute("DROP SCHEMA IF EXISTS shop, thl CASCADE")
    made.reader.close()


@pytest.fixture
def orders(place: SnapshotsPlace) -> Applier:
    made = Applier(place.open(audit=True))
    made.sql("CREATE DATABASE shop", CREATE_ORDERS)
    made.rows(net(ORDERS, inserts=ROWS))
    return made


def snapshot(place: PostgresPlace) -> tuple[str, int] | None:
    """The snapshot to read by, and its event."""
    query = "SELECT snapshot, snapshot_seqno FROM thl.thl_progress WHERE service = 'shop' AND snapshot IS NOT NULL"
    found = place.query(query)
    return (str(found[0][0]), int(str(found[0][1]))) if found else None


def until(look: Callable[[], Found], what: str) -> Found:
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found


def snapshot_of(place: PostgresPlace, seqno: int) -> str:
    return until(lambda: (one := snapshot(place)) is not None and one[1] == seqno and one[0], f"a snapshot of {seqno}")


def values(place: PostgresPlace, by: str | None) -> set[str]:
    """The values of all rows in a transaction that begins by a snapshot, or plainly."""
    with psycopg.connect(place.url, autocommit=True) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if by is not None:
            reader.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(by))
        return {v for (v,) in reader.execute("SELECT v FROM shop.orders").fetchall()}


class Between:
    """Looks at the target once a writer has committed its part and the others have not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.look: Callable[[], None] | None = None
        self._committed = Writer.commit

        def commit(writer: Writer) -> None:
            self._commit(writer)

        monkeypatch.setattr(Writer, "commit", commit)

    def _commit(self, writer: Writer) -> None:
        name = writer.session.info.parameter_status("application_name") or ""
        if name.endswith(" 1"):
            self._committed(writer)
            try:
                if self.look is not None:
                    self.look()
            finally:
                self.look = None
        else:
            until(lambda: self.look is None, "the first writer's commit")
            self._committed(writer)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Between:
    return Between(monkeypatch)


def test_readers_by_a_snapshot_see_whole_transactions_where_plain_ones_do_not(
    place: SnapshotsPlace, orders: Applier, between: Between, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot_of(place, orders.position.seqno)
    seen: list[Any] = []
    rounds = 0
    export = SnapshotExporter._export

    def counted(exporter: SnapshotExporter) -> float | None:
        nonlocal rounds
        found = export(exporter)
        rounds += 1
        return found

    monkeypatch.setattr(SnapshotExporter, "_export", counted)

    def look() -> None:
        begun = rounds
        until(lambda: rounds >= begun + 3, "further rounds of the exporter")  # one may have begun before
        by, seqno = snapshot(place) or (None, None)
        seen.append((values(place, None), values(place, by), seqno))

    between.look = look
    before = orders.position.seqno
    orders.rows(net(ORDERS, updates=AGAIN))
    assert seen == [({"first", "again"}, {"first"}, before)]
    assert values(place, snapshot_of(place, before + 1)) == {"again"}


def test_three_snapshots_are_kept_alive(place: SnapshotsPlace, orders: Applier) -> None:
    del orders
    seen: list[str] = []

    def five() -> bool:
        if (one := snapshot(place)) is not None and one[0] not in seen:
            seen.append(one[0])
        return len(seen) >= 5

    place.close()
    place.interval = 1.0
    Applier(place.open())
    until(five, "five snapshots")
    for one in seen[-snapshots_module.ALIVE :]:
        values(place, one)
    with pytest.raises((psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject)):
        values(place, seen[0])


@pytest.mark.parametrize("ddl", ["ALTER TABLE orders MODIFY id BIGINT", "RENAME TABLE orders TO old, fresh TO orders"])
def test_a_commit_with_ddl_ends_the_snapshots_before_it(place: SnapshotsPlace, ddl: str) -> None:
    """By an older one a rewritten table would be empty, and a renamed one another."""
    place.interval = PATIENCE
    orders = Applier(place.open())
    orders.sql("CREATE DATABASE shop", CREATE_ORDERS, CREATE_ORDERS.replace("orders", "fresh"))
    orders.target.close()
    orders = Applier(place.open())
    orders.rows(net(ORDERS, inserts=ROWS))
    orders.target.close()
    orders = Applier(place.open())
    older = snapshot_of(place, orders.position.seqno)
    assert values(place, older) == {"first"}
    orders.sql(ddl)
    assert snapshot(place) is None
    with pytest.raises((psycopg.errors.InvalidParameterValue, psycopg.errors.UndefinedObject)):
        values(place, older)


def test_without_a_living_applier_there_is_none(place: SnapshotsPlace, orders: Applier) -> None:
    snapshot_of(place, orders.position.seqno)
    orders.target.close()
    assert snapshot(place) is None
    assert place.query("SELECT count(*)::int FROM thl.thl_snapshots") == [(1,)]


@pytest.mark.parametrize(("interval", "seconds"), [(1.0, "30s"), (60.0, "10min")])
def test_snapshots_of_a_stopped_applier_end_after_several_intervals(
    place: SnapshotsPlace, orders: Applier, interval: float, seconds: str
) -> None:
    """Not sooner, or those of a living one would end, too; not never, because vacuum waits for them."""
    place.close()
    place.interval = 0.0
    newer = place.open()
    newer.claim("shop")
    sessions: list[psycopg.Connection] = []

    def opened() -> psycopg.Connection:
        sessions.append(psycopg.connect(place.url, autocommit=True))
        return sessions[-1]

    exporter = SnapshotExporter(opened, interval)
    exporter.start("shop", newer.token)
    try:
        snapshot_of(place, orders.position.seqno)
        shown = [one.execute("SHOW idle_in_transaction_session_timeout").fetchone() for one in sessions]
    finally:
        exporter.close()
    assert shown == [(seconds,)] * (snapshots_module.ALIVE + 1)


def test_lost_sessions_of_the_exporter_are_replaced(
    place: SnapshotsPlace, orders: Applier, caplog: pytest.LogCaptureFixture
) -> None:
    gone = snapshot_of(place, orders.position.seqno)
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'thl shop snapshot'"
    place.query(ended)
    until(lambda: (one := snapshot(place)) is not None and one[0] != gone, "another snapshot")
    assert "readers get no snapshot of the target" in caplog.text


def test_a_newer_claim_ends_the_older_applier_s_snapshots(place: SnapshotsPlace, orders: Applier) -> None:
    snapshot_of(place, orders.position.seqno)
    newer = place.open()
    newer.claim("shop")
    counted = "SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'thl shop snapshot'"
    until(lambda: place.query(counted) == [(snapshots_module.ALIVE + 1,)], "the end of the older one's sessions")
    until(lambda: snapshot(place), "a snapshot of the newer one")


def test_an_initial_load_has_no_snapshot_and_holds_none(place: SnapshotsPlace, orders: Applier) -> None:
    snapshot_of(place, orders.position.seqno)
    sessions = "SELECT pid FROM pg_stat_activity WHERE application_name = 'thl shop snapshot' ORDER BY pid"
    before = place.query(sessions)
    orders.commit(consistent=False)
    until(lambda: snapshot(place) is None, "the end of the last snapshot")
    held = "SELECT count(*)::int FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND application_name ~ 'snapshot'"
    until(lambda: place.query(held) == [(0,)], "no session that holds vacuum back")
    assert place.query(sessions) == before  # it was the exporter that let go, not the server, for idle sessions
    orders.commit()
    snapshot_of(place, orders.position.seqno)


def test_one_writer_exports_none(place: SnapshotsPlace) -> None:
    place.writers = 1
    Applier(place.open()).sql("CREATE DATABASE shop", CREATE_ORDERS)
    assert place.query("SELECT count(*)::int FROM pg_stat_activity WHERE application_name ~ 'snapshot'") == [(0,)]
    assert place.query("SELECT snapshot, seqno FROM thl.thl_progress") == [(None, 0)]


def test_a_reader_waits_for_a_snapshot_that_has_its_write(place: SnapshotsPlace, orders: Applier) -> None:
    """Not for the position alone: it would read by a snapshot of before."""
    place.close()
    place.interval = 3600.0
    applier = Applier(place.open())
    snapshot_of(place, applier.position.seqno)
    wait = "SELECT thl.thl_wait_for_gtid(%s, %s)"
    place.run(f"UPDATE thl.thl_snapshots SET gtid_set = '{UUID}:1-4'")
    assert place.reader.execute(wait, (f"{UUID}:4", "0 s")).fetchone() == (True,)
    assert place.reader.execute(wait, (f"{UUID}:5", "0.05 s")).fetchone() == (False,)
    place.close()  # then the position counts
    assert place.reader.execute(wait, (f"{UUID}:5", "0 s")).fetchone() == (True,)
    assert place.reader.execute(wait, (f"{UUID}:6", "0.05 s")).fetchone() == (False,)


ROW = [ComparedColumn("id", ValueForm.NUMBER), ComparedColumn("v", ValueForm.TEXT)]


def compared(place: PostgresPlace) -> tuple[int, bool, set[bytes]]:
    """What `thl verify` reads: the event, whether it is consistent, and the values."""
    reader = PostgresReader(place.url)
    try:
        with reader.view("shop") as state:
            found = {bytes(row[1]) for row in reader.rows(("shop", "orders"), ROW)}
            return state.seqno, state.consistent, found
    finally:
        reader.close()


def test_verify_reads_by_the_snapshot(place: SnapshotsPlace, orders: Applier, between: Between) -> None:
    snapshot_of(place, orders.position.seqno)
    seen: list[Any] = []
    between.look = lambda: seen.append(compared(place))
    before = orders.position.seqno
    orders.rows(net(ORDERS, updates=AGAIN))
    assert seen == [(before, True, {b"first"})]


def test_verify_without_snapshots_waits_for_the_end_of_a_commit(
    place: SnapshotsPlace, orders: Applier, crashes: Crashes, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.close()
    place.interval = 0.0
    orders = Applier(place.open(audit=True))
    crashes.before = {1, 2}
    with pytest.raises(Crash):
        orders.rows(net(ORDERS, updates=AGAIN))
    place.close()
    monkeypatch.setattr(verify_module, "ATTEMPTS", 3)
    assert compared(place) == (orders.position.seqno, False, {b"first", b"again"})


def documented() -> dict[str, Any]:
    """What the page defines."""
    page = (Path(__file__).parents[2] / "docs" / "target.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102
    return names


@pytest.mark.parametrize("interval", [None, 0.0])
def test_table_that_is_rewritten_keeps_its_rows_for_a_documented_reader(
    place: SnapshotsPlace, orders: Applier, interval: float | None
) -> None:
    if interval is None:
        snapshot_of(place, orders.position.seqno)
    else:
        place.close()
        place.interval = interval
        orders = Applier(place.open(audit=True))
    count = "SELECT count(*) FROM shop.orders"
    with psycopg.connect(place.url, autocommit=True) as reader, ThreadPoolExecutor() as pool:
        documented()["begin_whole"](reader, "shop", ["shop.orders"])
        rewritten = pool.submit(orders.sql, "ALTER TABLE orders MODIFY id BIGINT NOT NULL")
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'shop.orders'::regclass"
        while place.query(waits) != [(1,)] and not rewritten.done():
            pass
        before = reader.execute(count).fetchall()
        reader.execute("ROLLBACK")
        rewritten.result()
        assert before == place.query(count) != [(0,)]


def test_documented_loop_begins_at_a_state_between_two_transactions(
    place: SnapshotsPlace, orders: Applier, between: Between
) -> None:
    snapshot_of(place, orders.position.seqno)
    names = documented()
    seen: list[Any] = []

    def look() -> None:
        with psycopg.connect(place.url, autocommit=True) as reader:
            names["begin_whole"](reader, "shop", ["shop.orders"])
            seen.append({v for (v,) in reader.execute("SELECT v FROM shop.orders").fetchall()})

    between.look = look
    orders.rows(net(ORDERS, updates=AGAIN))
    place.close()  # there is none any more
    look()
    assert seen == [{"first"}, {"again"}]
    # One that ends between the two statements: the view shows it, and the server does not have it.
    place.run(
        "CREATE OR REPLACE VIEW thl.thl_living_snapshots AS SELECT service, snapshot, seqno, gtid_set, "
        "timestamptz 'epoch' AS exported_at FROM thl.thl_snapshots"
    )
    names["time"] = Sleeping(lambda: place.run("DELETE FROM thl.thl_snapshots"))
    look()
    assert seen[2:] == [{"again"}]


class Sleeping:
    """Stands for `time`: calls something instead."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def sleep(self, seconds: float) -> None:
        del seconds
        self._call()


OLD_PROGRESS = """
CREATE VIEW thl.thl_progress AS SELECT service, log_id, seqno, epoch, source_id, event_id, gtid_set, consistent,
  timestamptz 'epoch' + nullif(commit_time, 0) * interval '1 microsecond' AS commit_time,
  timestamptz 'epoch' + nullif(applied_at, 0) * interval '1 microsecond' AS applied_at,
  (nullif(applied_at, 0) - nullif(commit_time, 0)) * interval '1 microsecond' AS latency
FROM thl.thl_position
"""


def made_by_an_earlier_version(place: SnapshotsPlace) -> None:
    place.run("DROP VIEW thl.thl_progress; DROP VIEW thl.thl_living_snapshots; DROP TABLE thl.thl_snapshots")
    place.run(OLD_PROGRESS)
    place.run(
        "CREATE OR REPLACE FUNCTION "
        "thl.thl_wait_for_gtid(gtid text, timeout interval DEFAULT '10 seconds', service text DEFAULT NULL) "
        "RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN false; END'"
    )


def test_views_and_functions_of_an_earlier_version_are_replaced(place: SnapshotsPlace, orders: Applier) -> None:
    orders.target.close()
    made_by_an_earlier_version(place)
    place.run("DROP ROLE IF EXISTS thl_reader; CREATE ROLE thl_reader; GRANT SELECT ON thl.thl_progress TO thl_reader")
    try:
        Applier(place.open())
        snapshot_of(place, orders.position.seqno)
        assert place.query(f"SELECT thl.thl_wait_for_gtid('{UUID}:5')") == [(True,)]
        assert place.query("SELECT has_table_privilege('thl_reader', 'thl.thl_progress', 'SELECT')") == [(True,)]
    finally:
        place.run("DROP OWNED BY thl_reader; DROP ROLE thl_reader")


def test_an_account_that_may_not_replace_the_view_gets_the_remedy(place: SnapshotsPlace, orders: Applier) -> None:
    orders.target.close()
    made_by_an_earlier_version(place)
    place.run("DROP ROLE IF EXISTS thl_plain; CREATE ROLE thl_plain LOGIN PASSWORD 'x'")
    place.run("GRANT ALL ON SCHEMA thl, shop TO thl_plain; GRANT ALL ON ALL TABLES IN SCHEMA thl TO thl_plain")
    url, place.url = place.url, psycopg.conninfo.make_conninfo(place.url, user="thl_plain", password="x")
    try:
        with pytest.raises(PreflightError) as refused:
            Applier(place.open())
        assert "thl.thl_progress" in refused.value.message
        assert "target.snapshot_interval: 0" in refused.value.hint
        place.close()
        place.interval = 0.0
        Applier(place.open())
        place.close()
    finally:
        place.url = url
        place.run("DROP OWNED BY thl_plain; DROP ROLE thl_plain")
