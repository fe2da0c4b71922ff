"""A definition that gives a captured table a cascading key whose changes are not logged is refused."""

from __future__ import annotations

import dataclasses
from typing import cast

import pytest

from connector.config.filters import Filters
from connector.errors import PreflightError, Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.position import PositionRecord, SourcePosition
from connector.mysql.binlog.events.column_names import RefusingResolver
from connector.mysql.binlog.events.query import Query
from connector.mysql.preflight import cascades
from connector.mysql.preflight.cascades import CascadeGuard
from connector.mysql.server.connection import Connection
from connector.mysql.server.source_facts import SourceFacts
from connector.mysql.transforms.filters import Filter

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
MARIADB = SourceFacts(
    server_uuid="mariadb-1", server_id=1, version="11.4.5-MariaDB", release=(11, 4, 5), gtid_mode="ON",
    lower_case_table_names=0, expire_seconds=0, log_bin=True, binlog_format="ROW", binlog_row_image="FULL",
    binlog_row_metadata="FULL", binlog_row_value_options="", binlog_checksum="CRC32", sync_binlog=1,
    flush_log_at_commit=1, cascades_logged=False, mariadb=True,
)  # fmt: skip
MYSQL_8 = dataclasses.replace(MARIADB, version="8.0.43", release=(8, 0, 43), mariadb=False)
MYSQL_9 = dataclasses.replace(MARIADB, version="9.3.0", release=(9, 3, 0), mariadb=False)
POSITION = PositionRecord(
    finished=None, resume=SourcePosition("bin.000002", 1000), gtid_set=f"{UUID}:1-5", open=None, tails={0: -1}
)
CASCADE = "REFERENCES p (id) ON DELETE CASCADE"
CREATE = f"CREATE TABLE c (p INT, FOREIGN KEY (p) {CASCADE})"
INLINE = f"CREATE TABLE c (p INT {CASCADE})"


def read(
    sql: str, *, facts: SourceFacts = MARIADB, schema: str = "shop", gtid: str | None = f"{UUID}:6", **options: str
) -> bool:
    naming = CascadeGuard(RefusingResolver(), Filter(Filters(do=("shop",), ignore=("shop.not",))), facts, POSITION)
    query = Query(Statement(schema, sql, options), "", (), "utf8mb4")
    return naming.follow(query, gtid, SourcePosition("bin.000002", 2000))


@pytest.mark.parametrize(
    "sql",
    [
        CREATE,
        INLINE,
        f"ALTER TABLE shop.c ADD CONSTRAINT k FOREIGN KEY (p) {CASCADE}",
        "ALTER TABLE c ADD q INT REFERENCES other.p (id) ON UPDATE SET NULL",
        f"ALTER TABLE other.c ADD FOREIGN KEY (p) {CASCADE}, RENAME TO shop.c",
        f"CREATE OR REPLACE TABLE c (p INT {CASCADE})",
        "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE whatever)",
    ],
)
def test_cascading_key_of_a_captured_table_is_refused(sql: str) -> None:
    with pytest.raises(Unsupported) as stopped:
        read(sql)
    assert "source.accept_unlogged_cascades=true" in stopped.value.hint
    assert "DROP FOREIGN KEY" in stopped.value.hint
    assert stopped.value.where["foreign_keys"]


def test_key_is_judged_by_its_tables_schema_not_the_default_schema() -> None:
    with pytest.raises(Unsupported) as stopped:
        read(CREATE.replace("TABLE c", "TABLE shop.c"), schema="other")
    assert stopped.value.where["foreign_keys"] == "shop.c (ON DELETE CASCADE)"
    assert not read(CREATE.replace("TABLE c", "TABLE other.c"))


@pytest.mark.parametrize(
    "sql",
    [
        CREATE.replace("TABLE c", "TABLE `not`"),
        "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))",
        "ALTER TABLE c DROP FOREIGN KEY k",
        f"CREATE PROCEDURE p() {CREATE}",
        "GRANT REFERENCES ON shop.* TO u",
        "CREATE TABLE n (s TEXT DEFAULT 'REFERENCES p (id) ON DELETE CASCADE')",
    ],
)
def test_definitions_without_cascading_keys_are_accepted(sql: str) -> None:
    assert not read(sql)


def test_definition_before_the_position_is_accepted() -> None:
    assert not read(CREATE, gtid=f"{UUID}:5")


def test_failed_definition_is_accepted() -> None:
    assert not read(CREATE, alter="start")
    assert not read(CREATE, error_code="1005")


def test_inline_key_is_ignored_before_mysql_9() -> None:
    assert not read(INLINE, facts=MYSQL_8)
    for facts, sql in ((MYSQL_8, CREATE), (MYSQL_9, INLINE)):
        with pytest.raises(Unsupported) as stopped:
            read(sql, facts=facts)
        assert stopped.value.where["foreign_keys"]


@pytest.mark.parametrize("other", ["d", "d`e"])
def test_a_name_that_hides_a_key_is_refused_with_its_table(monkeypatch: pytest.MonkeyPatch, other: str) -> None:
    created = (
        "CREATE TABLE `c` (\n  `p` int(11),\n  CONSTRAINT `a`b` FOREIGN KEY (`p`) REFERENCES `p` (`id`) "
        f"ON DELETE CASCADE,\n  CONSTRAINT `{other}` CHECK (`p` > 0)\n) ENGINE=InnoDB"
    )
    answers = iter([[{"s": "shop", "t": "c"}], [{"Create Table": created}]])
    monkeypatch.setattr(cascades, "query", lambda *_: next(answers))
    with pytest.raises(PreflightError) as refused:
        cascades.cascading_keys(cast(Connection, None), MARIADB, Filter(Filters(do=("shop",))))
    assert refused.value.where["table"] == "`shop`.`c`"
    assert cascades.ACCEPT in refused.value.hint
