"""A MariaDB with binlog_row_image FULL_NODUP replicates to an equal target; other images are refused."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.applier import open_commit
from connector.clock import SystemClock
from connector.config.apply import Target
from connector.config.model import Config
from connector.errors import PreflightError, Unsupported
from connector.log.ids import Epoch, LogId, Seqno
from connector.log.transaction.batch import Rows, TransactionBatch
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import AfterGtids, PositionRecord, SourcePosition
from connector.mysql.preflight.preflight import preflight
from connector.mysql.server.connection import session
from connector.mysql.server.source_state import gtid_executed
from connector.mysql.transforms.filters import Filter
from connector.producer.records.completion import EventCompleter
from connector.producer.sources.files import FileSource
from connector.records.database import Database
from connector.records.versions import Versions
from connector.targets.open import open_target
from tests.integration.applier.test_row_images import TABLES, Source, apply, churn, ended
from tests.support.binlog import changes, images, read_from
from tests.support.loading import a_database, load_into
from tests.support.servers.environment import SqlServer

IMAGES = ["FULL_NODUP", "FULL_NODUP", "FULL"]


@pytest.fixture
def source(mariadb_server: SqlServer, tmp_path: Path) -> Iterator[Source]:
    with a_database(mariadb_server, "row_images") as (configured, name):
        target = Target(url=f"sqlite:///{tmp_path}/target.db")
        made = Source(mariadb_server, Config(service=name, source=configured, target=target), name)
        yield made
        made.connection.close()


def rows_of(path: Path) -> dict[str, list[Any]]:
    with sqlite3.connect(path) as db:
        names = db.execute("SELECT table_name, target_name FROM thl_tables").fetchall()
        return {table: sorted(db.execute(f'SELECT * FROM "{name}"').fetchall(), key=repr) for table, name in names}


def test_random_changes_are_applied_under_partial_row_images(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 200_000)
    draw = random.Random(5)
    source.run(*(sql.replace("VIRTUAL", "STORED") for sql in TABLES))
    churn(source, draw, 300, IMAGES, json=False)
    source.run(
        "SET SESSION binlog_row_image = FULL_NODUP",
        "CREATE TABLE uk (a INT NOT NULL, b TEXT, c VARCHAR(9) DEFAULT 'z', UNIQUE KEY (a))",
        "INSERT INTO uk (a) VALUES (1), (2), (3)",
        "UPDATE uk SET b = 'text' WHERE a < 3",
        "UPDATE uk SET a = 9 WHERE a = 1",
        "DELETE FROM uk WHERE a = 2",
        "CREATE TABLE d (id INT PRIMARY KEY, u UUID DEFAULT uuid(), t TEXT COMPRESSED, n INT DEFAULT (1 + 1))",
        "INSERT INTO d (id) VALUES (1), (2), (3)",
        "UPDATE d SET t = repeat('x', 300) WHERE id > 1",
        "UPDATE d SET u = NULL WHERE id > 2",
        "ALTER TABLE k ADD COLUMN late VARCHAR(9) NOT NULL DEFAULT 'late'",
        "INSERT INTO k (id) VALUES (-7)",
        "UPDATE k SET late = 'x' WHERE id < 5",
    )

    apply(source.config, source.pieces(), draw, source.start)

    again = source.config.model_copy(update={"target": Target(url=f"sqlite:///{tmp_path}/loaded.db")})
    target = open_target(again.target, SystemClock())
    load_into(target, again.source)
    target.close()
    found, expected = rows_of(tmp_path / "target.db"), rows_of(tmp_path / "loaded.db")
    assert {table: len(rows) > 2 for table, rows in expected.items()} | {"the_end": True} == dict.fromkeys(
        ["k", "c", "n", "large", "uk", "d", "the_end"], True
    ) | {"uk": False, "large": False}
    for table, rows in expected.items():
        assert found[table] == rows, table


@pytest.mark.parametrize(
    ("definition", "stops"),
    [("ALTER TABLE v ADD w INT AS (a + 1)", True), ("ALTER TABLE v ADD w INT GENERATED ALWAYS AS (a) STORED", False)],
)
def test_virtual_column_missing_from_images_is_refused(source: Source, definition: str, stops: bool) -> None:
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT)", "INSERT INTO v VALUES (1, 1)", definition)
    source.run("UPDATE v SET a = 2", "SET SESSION binlog_row_image = FULL_NODUP", "UPDATE v SET a = 3")
    if not stops:
        assert [image[1] for change in changes(source.pieces()) if isinstance(change, Rows) for image in images(change)]
        return
    with pytest.raises(Unsupported) as caught:
        source.pieces()
    assert caught.value.where["definition"] == definition


def refusal(server: SqlServer, source: Source, image: str) -> str:
    server.run_sql(f"SET GLOBAL binlog_row_image = {image}")
    try:
        with session(source.config.source) as connection:
            preflight(connection, source.config.source, snapshot=False)
    except PreflightError as error:
        return str(error)
    finally:
        server.run_sql("SET GLOBAL binlog_row_image = FULL")
    return ""


def test_insufficient_row_images_are_refused(source: Source, mariadb_server: SqlServer) -> None:
    assert "REPLACE does not log" in refusal(mariadb_server, source, "MINIMAL")
    assert "REPLACE does not log" in refusal(mariadb_server, source, "NOBLOB")
    assert refusal(mariadb_server, source, "FULL_NODUP") == ""
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT, w INT AS (a + 1) VIRTUAL)")
    assert f"{source.config.service}.v.w" in refusal(mariadb_server, source, "FULL_NODUP")
    assert refusal(mariadb_server, source, "FULL") == ""


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_update_of_a_session_with_minimal_images_is_refused(source: Source, image: str) -> None:
    """It may be a REPLACE, which does not log the columns that it resets. A server that does may be let in."""
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT, b TEXT)", "INSERT INTO v VALUES (1, 1, 'b')")
    source.run(f"SET SESSION binlog_row_image = {image}", "REPLACE INTO v (id, a) VALUES (1, 2)")
    with pytest.raises(Unsupported) as caught:
        source.pieces()
    assert caught.value.where["table"] == TableName(source.config.service, "v")
    shown = Filter(source.config.source.filters, shows=True)
    last = [one for one in changes(read_from(source.server, AfterGtids(source.start), ended, filters=shown))
            if isinstance(one, Rows)][-1]  # fmt: skip
    assert last.action.name == "UPDATE"
    assert last.after
    assert not last.after[0] & 4  # that of b, which is NULL now


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_inserts_and_deletes_of_a_session_with_minimal_images_are_right(source: Source, image: str) -> None:
    source.run(
        "CREATE TABLE v (id INT PRIMARY KEY, a INT DEFAULT 4, b TEXT)",
        f"SET SESSION binlog_row_image = {image}",
        "INSERT INTO v (id) VALUES (1), (2)",
        "REPLACE INTO v (id, a) VALUES (3, 2)",
        "DELETE FROM v WHERE id = 2",
    )
    apply(source.config, source.pieces(), random.Random(3), source.start)
    found = rows_of(Path(source.config.target.url.get_secret_value().removeprefix("sqlite:///")))
    assert found["v"] == [(1, 4, None), (3, 2, None)]


def test_virtual_column_of_an_older_table_missing_from_a_sessions_images_is_refused(source: Source) -> None:
    """The stream has not seen its definition, and preflight only the global image."""
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT, w INT AS (a + 1) VIRTUAL)")
    source.run("INSERT INTO v (id, a) VALUES (1, 1)")
    with session(source.config.source) as beside:
        source.start = gtid_executed(beside) or ""
        facts = preflight(beside, source.config.source, snapshot=False)
    source.run("SET SESSION binlog_row_image = FULL_NODUP", "UPDATE v SET a = 3", "CREATE TABLE the_end (a INT)")
    filters = Filter.of(source.config.source, virtual_tables=facts.virtual_tables)
    with pytest.raises(Unsupported, match="VIRTUAL") as caught:
        read_from(source.server, AfterGtids(source.start), ended, filters=filters)
    assert caught.value.where["table"] == TableName(source.config.service, "v")


@pytest.mark.parametrize(
    "definition",
    ["RENAME TABLE v TO w", "ALTER TABLE v RENAME TO w", "CREATE TABLE w LIKE v; INSERT INTO w (id, a) VALUES (1, 1)"],
)
def test_virtual_column_of_a_table_that_is_renamed_or_copied_is_refused(source: Source, definition: str) -> None:
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT, w INT AS (a + 1) VIRTUAL)")
    source.run("INSERT INTO v (id, a) VALUES (1, 1)")
    with session(source.config.source) as beside:
        source.start = gtid_executed(beside) or ""
        facts = preflight(beside, source.config.source, snapshot=False)
    source.run(*definition.split("; "), "SET SESSION binlog_row_image = FULL_NODUP", "UPDATE w SET a = 3")
    source.run("CREATE TABLE the_end (a INT)")
    filters = Filter.of(source.config.source, virtual_tables=facts.virtual_tables)
    with pytest.raises(Unsupported, match="VIRTUAL") as caught:
        read_from(source.server, AfterGtids(source.start), ended, filters=filters)
    assert caught.value.where["definition"] == definition.partition(";")[0]


@pytest.mark.parametrize(
    "renames",
    [
        ["RENAME TABLE v TO w"],
        ["ALTER TABLE v RENAME TO w"],
        ["RENAME TABLE v TO passing", "RENAME TABLE passing TO w"],
        ["CREATE TABLE other (a INT)", "RENAME TABLE v TO w, other TO v"],
    ],
)
def test_partial_images_of_a_virtual_columns_table_that_was_renamed_since_are_refused_at_the_renaming(
    source: Source, renames: list[str]
) -> None:
    """The producer was not running: the server tells of the columns by the table's new name."""
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT, w INT AS (a + 1) VIRTUAL)")
    source.run("INSERT INTO v (id, a) VALUES (1, 1)")
    with session(source.config.source) as beside:
        source.start = gtid_executed(beside) or ""
    source.run("SET SESSION binlog_row_image = FULL_NODUP", "UPDATE v SET a = 3", *renames)
    with session(source.config.source) as beside:
        facts = preflight(beside, source.config.source, snapshot=False)
    source.run("CREATE TABLE the_end (a INT)")
    filters = Filter.of(source.config.source, virtual_tables=facts.virtual_tables)
    with pytest.raises(Unsupported, match="VIRTUAL") as caught:
        read_from(source.server, AfterGtids(source.start), ended, filters=filters)
    assert caught.value.where["renamed"] == TableName(source.config.service, "w")
    assert "source.filters.ignore" in caught.value.hint


def test_a_renaming_of_a_virtual_columns_table_with_whole_images_is_read(source: Source) -> None:
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT, w INT AS (a + 1) VIRTUAL)")
    source.run("INSERT INTO v (id, a) VALUES (1, 1)", "CREATE TABLE u (id INT PRIMARY KEY, a INT)")
    with session(source.config.source) as beside:
        source.start = gtid_executed(beside) or ""
    source.run("INSERT INTO u VALUES (1, 1)", "SET SESSION binlog_row_image = FULL_NODUP", "UPDATE u SET a = 3")
    source.run(
        "RENAME TABLE u TO x", "SET SESSION binlog_row_image = FULL", "UPDATE v SET a = 2", "RENAME TABLE v TO w"
    )
    with session(source.config.source) as beside:
        facts = preflight(beside, source.config.source, snapshot=False)
    source.run("CREATE TABLE the_end (a INT)")
    filters = Filter.of(source.config.source, virtual_tables=facts.virtual_tables)
    found = changes(read_from(source.server, AfterGtids(source.start), ended, filters=filters))
    assert [bool(one.after) for one in found if isinstance(one, Rows)] == [False, True, False]


REPLACED = [  # tables whose columns are all their key's, and a unique index by which a REPLACE finds rows
    ("a INT NOT NULL, b INT NOT NULL DEFAULT 7, PRIMARY KEY (a, b), UNIQUE KEY (a)", ""),
    ("a INT NOT NULL, b INT NOT NULL DEFAULT 7, PRIMARY KEY (a, b)", "ALTER TABLE w ADD UNIQUE KEY (a)"),
]


@pytest.mark.parametrize(("columns", "later"), REPLACED)
def test_a_replace_that_looks_like_an_update_with_whole_before_images_is_refused(
    source: Source, columns: str, later: str
) -> None:
    """With MINIMAL its before image is whole, so nothing else tells that its after image lacks what it resets."""
    source.run(f"CREATE TABLE w ({columns})", "INSERT INTO w VALUES (1, 3)")
    with session(source.config.source) as beside:
        source.start = gtid_executed(beside) or ""
        facts = preflight(beside, source.config.source, snapshot=False)
    source.run(*[later] * bool(later), "SET SESSION binlog_row_image = MINIMAL", "REPLACE INTO w (a) VALUES (1)")
    source.run("CREATE TABLE the_end (a INT)")
    filters = Filter.of(source.config.source, unique_tables=facts.unique_tables)
    with pytest.raises(Unsupported, match="columns that it resets") as caught:
        read_from(source.server, AfterGtids(source.start), ended, filters=filters)
    assert caught.value.where["table"] == TableName(source.config.service, "w")


def test_a_replace_in_a_table_without_a_key_is_logged_whole(source: Source) -> None:
    source.run("CREATE TABLE w (a INT, b INT DEFAULT 7, UNIQUE KEY (a))", "INSERT INTO w VALUES (1, 3)")
    source.run("SET SESSION binlog_row_image = MINIMAL", "REPLACE INTO w (a) VALUES (1)")
    last = [one for one in changes(source.pieces()) if isinstance(one, Rows)][-1]
    assert images(last) == [([1, 3], [1, 7])]


def test_an_update_of_a_table_that_is_its_key_is_read_if_no_replace_can_find_its_rows(source: Source) -> None:
    source.run("CREATE TABLE w (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))", "INSERT INTO w VALUES (1, 3)")
    with session(source.config.source) as beside:
        facts = preflight(beside, source.config.source, snapshot=False)
    source.run("SET SESSION binlog_row_image = FULL_NODUP", "UPDATE w SET b = 4", "CREATE TABLE the_end (a INT)")
    filters = Filter.of(source.config.source, unique_tables=facts.unique_tables)
    found = changes(read_from(source.server, AfterGtids(source.start), ended, filters=filters))
    assert [bool(one.after) for one in found if isinstance(one, Rows)] == [False, True]


def test_partial_images_in_files_are_refused_because_nothing_tells_of_virtual_columns(source: Source) -> None:
    source.run("CREATE TABLE v (id INT PRIMARY KEY, a INT)", "INSERT INTO v VALUES (1, 1)", "FLUSH BINARY LOGS")
    file, *_ = source.server.run_sql("SHOW MASTER STATUS").splitlines()[1].split("\t")
    source.run("SET SESSION binlog_row_image = FULL_NODUP", "DELETE FROM v", "INSERT INTO v VALUES (2, 1)")
    source.run("UPDATE v SET a = 3", "FLUSH BINARY LOGS")
    data = Path(source.server.run_sql("SELECT @@datadir").splitlines()[1])
    if not data.is_dir():
        pytest.skip("the server's files are not on this machine")
    config = source.config.model_copy(update={"source": source.config.source.model_copy(update={"server_id": 4242})})
    start = SourcePosition(file, 4)
    begin = PositionRecord(finished=None, resume=start, gtid_set=None, open=None, tails={}, server_uuid="")
    stream = FileSource(config, [data / file], SystemClock()).after(begin, None)
    found = []
    with pytest.raises(Unsupported, match="files do not tell") as caught:
        while not stream.ended:
            found += stream.read(1)
    assert caught.value.where["table"] == TableName(source.config.service, "v")
    assert "without --from-files" in caught.value.hint
    assert [change.action.name for one in found if isinstance(one, TransactionBatch) for change in one.changes] == [
        "DELETE",
        "INSERT",
    ]


def test_completed_images_have_all_columns_and_give_equal_rows(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_commit, "STAGE_BYTES", 200_000)
    draw = random.Random(6)
    source.run(*(sql.replace("VIRTUAL", "STORED") for sql in TABLES))
    churn(source, draw, 300, IMAGES, json=False)
    source.run("SET SESSION binlog_row_image = FULL_NODUP", "REPLACE INTO k (id, a) VALUES (3, 9), (4, 9)")
    versions = Versions(
        Database(tmp_path / "records", cache_bytes=1 << 20), LogId("0" * 32), horizon=100_000, cache_bytes=1 << 20
    )
    completion = EventCompleter(versions, [f"{source.config.service}.n"])  # without a key
    pieces, seqno, lacked = [], 0, 0
    for piece in source.pieces():
        lacked += sum(bool(change.after) for change in piece.changes if isinstance(change, Rows))
        pieces.append(completion.complete(piece, Seqno(seqno), Epoch(1)))
        seqno += piece.ending is not None
    completion.close()

    apply(source.config, pieces, draw, source.start)

    keyed = [change for piece in pieces for change in piece.changes if isinstance(change, Rows) and change.layout.key]
    assert lacked > 30
    assert not any(change.before or change.after for change in keyed)
    again = source.config.model_copy(update={"target": Target(url=f"sqlite:///{tmp_path}/loaded.db")})
    target = open_target(again.target, SystemClock())
    load_into(target, again.source)
    target.close()
    found = rows_of(tmp_path / "target.db")
    for table, rows in rows_of(tmp_path / "loaded.db").items():
        assert found[table] == rows, table
