"""The database `thl` of a MySQL target: the applier's tables, and views for readers of the target.

`claim` creates what is missing. Names are compared by their bytes, as the log's are. Other targets do not have:

- `thl_ddl`: one row per service: the number of its last DDL statement, and, while that may have been executed or not,
  the event, the statement, and the tables that it changes as they were before (`once`).
- `thl_unused`: tables of marks that no load needs any more, until they are dropped.
"""

from __future__ import annotations

import logging
from typing import Final

import pymysql

from connector.log.transaction.layout import TableName
from connector.targets import bookkeeping
from connector.targets.commit_statements import SqlDialect
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.errors import DENIED, code_of
from connector.targets.mysql.sql.literals import literal
from connector.targets.mysql.sql.names import text_literal
from connector.targets.position import INCONSISTENT_BECAUSE
from connector.targets.table import Table, from_json
from connector.targets.target_schema import Excluded, Loading

LOG: Final = logging.getLogger(__name__)

DIALECT: Final = SqlDialect(literal, "thl.", " ON DUPLICATE KEY UPDATE because = because")

_NAME: Final = "VARCHAR(200) NOT NULL"
_WORD: Final = "VARCHAR(64) NOT NULL"
# MySQL's TEXT has no default but an expression.
_TABLES: Final = {
    "thl_position": f"""service {_NAME} PRIMARY KEY, log_id VARCHAR(64) NOT NULL DEFAULT '',
  seqno BIGINT NOT NULL DEFAULT -1, epoch BIGINT NOT NULL DEFAULT 0, source_id VARCHAR(255) NOT NULL DEFAULT '',
  event_id VARCHAR(255) NOT NULL DEFAULT '', gtid_set LONGTEXT, offsets LONGTEXT NOT NULL DEFAULT ('{{}}'),
  consistent TINYINT NOT NULL DEFAULT 1, commit_time BIGINT NOT NULL DEFAULT 0, token BIGINT NOT NULL,
  applied_at BIGINT NOT NULL DEFAULT 0, schema_version INT NOT NULL DEFAULT 1""",
    "thl_tables": f"""service {_NAME}, schema_name {_WORD}, table_name {_WORD},
  target_name VARCHAR(200) NOT NULL UNIQUE, definition LONGTEXT NOT NULL,
  PRIMARY KEY (service, schema_name, table_name)""",
    "thl_applied": f"""service {_NAME}, seqno BIGINT NOT NULL, epoch BIGINT NOT NULL, event_id VARCHAR(255) NOT NULL,
  commit_time BIGINT NOT NULL, applied_at BIGINT NOT NULL, token BIGINT NOT NULL, `rows` BIGINT NOT NULL,
  PRIMARY KEY (service, seqno)""",
    "thl_requests": f"""service {_NAME} PRIMARY KEY, asked_at BIGINT NOT NULL, asked_by TEXT NOT NULL,
  because LONGTEXT NOT NULL, offline_at BIGINT, seqno BIGINT""",
    "thl_skipped": f"""service {_NAME}, seqno BIGINT NOT NULL, epoch BIGINT NOT NULL, event_id VARCHAR(255) NOT NULL,
  skipped_at BIGINT NOT NULL, skipped_by TEXT NOT NULL, because LONGTEXT NOT NULL, tables LONGTEXT NOT NULL,
  PRIMARY KEY (service, seqno)""",
    "thl_inconsistent": f"""service {_NAME}, schema_name {_WORD}, table_name {_WORD}, since_seqno BIGINT NOT NULL,
  because LONGTEXT NOT NULL, PRIMARY KEY (service, schema_name, table_name)""",
    "thl_excluded": f"""service {_NAME}, schema_name {_WORD}, table_name {_WORD}, since_seqno BIGINT NOT NULL,
  excluded_at BIGINT NOT NULL, excluded_by TEXT NOT NULL, because LONGTEXT NOT NULL, changes BIGINT NOT NULL,
  PRIMARY KEY (service, schema_name, table_name)""",
    "thl_loading": f"""service {_NAME}, schema_name {_WORD}, table_name {_WORD}, load_id VARCHAR(255) NOT NULL,
  since_seqno BIGINT NOT NULL, began_at BIGINT NOT NULL, state VARCHAR(64) NOT NULL, marks VARCHAR(64) NOT NULL,
  consistent TINYINT NOT NULL, PRIMARY KEY (service, schema_name, table_name)""",
    "thl_identity": f"service {_NAME} PRIMARY KEY, identity VARCHAR(64) NOT NULL",
    "thl_claim": f"service {_NAME} PRIMARY KEY, token BIGINT NOT NULL, mark VARCHAR(64) NOT NULL",
    "thl_rewound": f"service {_NAME} PRIMARY KEY, head BIGINT NOT NULL",
    "thl_ddl": f"""service {_NAME} PRIMARY KEY, number BIGINT NOT NULL, seqno BIGINT, step INT,
  statement LONGTEXT, states LONGTEXT""",
    "thl_unused": f"service {_NAME}, name {_WORD}, PRIMARY KEY (service, name)",
}

_PROGRESS: Final = """CREATE OR REPLACE SQL SECURITY INVOKER VIEW thl.thl_progress AS SELECT
  service, log_id, seqno, epoch, source_id, event_id, gtid_set, consistent,
  TIMESTAMP '1970-01-01 00:00:00' + INTERVAL nullif(commit_time, 0) MICROSECOND AS commit_time,
  TIMESTAMP '1970-01-01 00:00:00' + INTERVAL nullif(applied_at, 0) MICROSECOND AS applied_at,
  (nullif(applied_at, 0) - nullif(commit_time, 0)) / 1e6 AS latency
FROM thl.thl_position"""

_BECAUSE: Final = "CREATE OR REPLACE SQL SECURITY INVOKER VIEW thl.thl_inconsistent_because AS " + (
    INCONSISTENT_BECAUSE.format("thl.")
)


def ensure_bookkeeping(session: ServerSession) -> None:
    """Create what is missing.

    Raises:
        pymysql.MySQLError: a table cannot be created.
    """
    collation = "utf8mb4_nopad_bin" if session.mariadb else "utf8mb4_0900_bin"
    found = {
        str(name).lower()
        for (name,) in session.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'thl'")
    }
    if not found:
        session.query(f"CREATE DATABASE IF NOT EXISTS thl CHARACTER SET utf8mb4 COLLATE {collation}")
    for name, columns in _TABLES.items():
        if name not in found:
            session.query(
                f"CREATE TABLE IF NOT EXISTS thl.{name} ({columns}) ENGINE = InnoDB ROW_FORMAT = DYNAMIC "
                f"CHARACTER SET utf8mb4 COLLATE {collation}"
            )
    for name, statement in (("thl_progress", _PROGRESS), ("thl_inconsistent_because", _BECAUSE)):
        if name not in found:
            _optional(session, name, statement)


def _optional(session: ServerSession, name: str, statement: str) -> None:
    """Create something that only readers need; log a warning if the account may not."""
    try:
        session.query(statement)
    except pymysql.MySQLError as error:
        if code_of(error) not in DENIED:
            raise
        fields = {"missing": f"thl.{name}", "hint": "GRANT CREATE VIEW ON thl.* TO …", "why": str(error)}
        LOG.warning("the target's bookkeeping is incomplete: the user lacks a privilege", extra=fields)


def schema_version(session: ServerSession, service: str) -> int:
    """The `schema_version` of a service; adds the column if an earlier version made the table."""
    columns = "SELECT 1 FROM information_schema.columns WHERE table_schema = 'thl' AND table_name = 'thl_position'"
    if not session.rows(f"{columns} AND column_name = 'schema_version'"):
        session.query("ALTER TABLE thl.thl_position ADD COLUMN schema_version INT NOT NULL DEFAULT 1")
    found = session.rows(f"SELECT schema_version FROM thl.thl_position WHERE service = {text_literal(service)}")
    return int(found[0][0]) if found else bookkeeping.BASE_VERSION


def applied_tables(session: ServerSession, service: str) -> list[Table]:
    """The tables that the applier created."""
    query = "SELECT schema_name, table_name, definition FROM thl.thl_tables WHERE service = "
    return [
        from_json(TableName(str(schema), str(table)), str(definition))
        for schema, table, definition in session.rows(query + literal(service))
    ]


def excluded_tables(session: ServerSession, service: str) -> dict[TableName, Excluded]:
    """The excluded tables."""
    query = f"SELECT {bookkeeping.EXCLUDED} FROM thl.thl_excluded WHERE service = {literal(service)}"
    return bookkeeping.excluded_from(session.rows(query))


def loading_tables(session: ServerSession, service: str) -> dict[TableName, Loading]:
    """The tables that are being loaded."""
    query = f"SELECT {bookkeeping.LOADING} FROM thl.thl_loading WHERE service = {literal(service)}"
    return bookkeeping.loading_from(session.rows(query))
