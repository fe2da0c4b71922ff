"""A CREATE TABLE in the log has the character set of its schema, if it names none.

`tests/integration/binlog/test_schema_charsets.py` compares the tables that are made of it with those of servers.
"""

from __future__ import annotations

from pathlib import Path

from connector.config.filters import Filters
from connector.log.transaction.batch import Statement, TransactionBatch
from connector.log.transaction.definition import Definitions
from connector.log.transaction.statement_options import SCHEMA_CHARSET
from connector.mysql.binlog.frames import EventFrames
from connector.mysql.binlog.reader import BinlogReader, FileBytes
from connector.mysql.schema_history.table_history import TableHistory
from connector.mysql.transforms.filters import Filter
from tests.support.binlog_writer import LogWriter

NAMES_NONE = "CREATE TABLE {} (v TEXT)"


def noted(folder: Path, *statements: str) -> list[str | None]:
    """What each statement of a log has as its schema's character set; the schema `s` begins with latin1."""
    log, path = LogWriter(), folder / "log.000001"
    for sql in statements:
        log.query(sql.encode())
    path.write_bytes(log.data)
    history = TableHistory(Definitions({}, {"s": "latin1"}), Filter(Filters()))
    source = FileBytes(path.open("rb", buffering=0))
    reader = BinlogReader(
        source, EventFrames(), filters=Filter(Filters()), service="test", batch_bytes=1 << 20, resolver=history
    )
    found = []
    while not reader.ended:
        found += reader.read()
    reader.close()
    batches = [one for one in found if isinstance(one, TransactionBatch)]
    changes = [change for batch in batches for change in batch.changes if isinstance(change, Statement)]
    assert [change.sql for change in changes] == [*statements]
    return [change.options.get(SCHEMA_CHARSET) for change in changes]


def test_a_created_table_has_what_its_schema_has_at_that_moment(tmp_path: Path) -> None:
    assert noted(
        tmp_path,
        NAMES_NONE.format("a"),
        "ALTER DATABASE s CHARACTER SET greek",
        NAMES_NONE.format("b"),
        "CREATE DATABASE other CHARACTER SET gbk",
        NAMES_NONE.format("other.c"),
    ) == ["latin1", None, "greek", None, "gbk"]


def test_a_statement_that_takes_no_character_set_of_a_schema_has_none(tmp_path: Path) -> None:
    assert (
        noted(
            tmp_path,
            "CREATE TABLE a (v TEXT) CHARACTER SET gbk",
            "ALTER TABLE a ADD w TEXT",
            "CREATE TABLE b LIKE a",
            NAMES_NONE.format("unknown.c"),
        )
        == [None] * 4
    )
