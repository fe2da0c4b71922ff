"""The applier's tables and views in a DuckDB target: those of PostgreSQL, for one writer."""

from __future__ import annotations

from connector.targets.commit_statements import SqlDialect
from connector.targets.duckdb.file import FileSession
from connector.targets.duckdb.literals import literal
from connector.targets.position import INCONSISTENT_BECAUSE

_TABLES = """
thl_position (
  service VARCHAR PRIMARY KEY, log_id VARCHAR NOT NULL DEFAULT '', seqno BIGINT NOT NULL DEFAULT -1,
  epoch BIGINT NOT NULL DEFAULT 0, source_id VARCHAR NOT NULL DEFAULT '', event_id VARCHAR NOT NULL DEFAULT '',
  gtid_set VARCHAR, offsets VARCHAR NOT NULL DEFAULT '{}', consistent BOOLEAN NOT NULL DEFAULT TRUE,
  commit_time BIGINT NOT NULL DEFAULT 0, token BIGINT NOT NULL, applied_at BIGINT NOT NULL DEFAULT 0,
  schema_version INTEGER NOT NULL DEFAULT 1)
thl_tables (
  service VARCHAR NOT NULL, schema_name VARCHAR NOT NULL, table_name VARCHAR NOT NULL, target_name VARCHAR NOT NULL,
  definition VARCHAR NOT NULL, PRIMARY KEY (service, schema_name, table_name))
thl_applied (
  service VARCHAR NOT NULL, seqno BIGINT NOT NULL, epoch BIGINT NOT NULL, event_id VARCHAR NOT NULL,
  commit_time BIGINT NOT NULL, applied_at BIGINT NOT NULL, token BIGINT NOT NULL, "rows" BIGINT NOT NULL,
  PRIMARY KEY (service, seqno))
thl_requests (
  service VARCHAR PRIMARY KEY, asked_at BIGINT NOT NULL, asked_by VARCHAR NOT NULL, because VARCHAR NOT NULL,
  offline_at BIGINT, seqno BIGINT)
thl_skipped (
  service VARCHAR NOT NULL, seqno BIGINT NOT NULL, epoch BIGINT NOT NULL, event_id VARCHAR NOT NULL,
  skipped_at BIGINT NOT NULL, skipped_by VARCHAR NOT NULL, because VARCHAR NOT NULL, tables VARCHAR NOT NULL,
  PRIMARY KEY (service, seqno))
thl_inconsistent (
  service VARCHAR NOT NULL, schema_name VARCHAR NOT NULL, table_name VARCHAR NOT NULL, since_seqno BIGINT NOT NULL,
  because VARCHAR NOT NULL, PRIMARY KEY (service, schema_name, table_name))
thl_excluded (
  service VARCHAR NOT NULL, schema_name VARCHAR NOT NULL, table_name VARCHAR NOT NULL, since_seqno BIGINT NOT NULL,
  excluded_at BIGINT NOT NULL, excluded_by VARCHAR NOT NULL, because VARCHAR NOT NULL, changes BIGINT NOT NULL,
  PRIMARY KEY (service, schema_name, table_name))
thl_loading (
  service VARCHAR NOT NULL, schema_name VARCHAR NOT NULL, table_name VARCHAR NOT NULL, load_id VARCHAR NOT NULL,
  since_seqno BIGINT NOT NULL, began_at BIGINT NOT NULL, state VARCHAR NOT NULL, marks VARCHAR NOT NULL,
  consistent BOOLEAN NOT NULL, PRIMARY KEY (service, schema_name, table_name))
thl_identity (service VARCHAR PRIMARY KEY, identity VARCHAR NOT NULL)
thl_claim (service VARCHAR PRIMARY KEY, token BIGINT NOT NULL, mark VARCHAR NOT NULL)
thl_rewound (service VARCHAR PRIMARY KEY, head BIGINT NOT NULL)
"""
# The names in views have no schema: the file may be renamed, and then the catalogue is, too.
_PROGRESS = """thl_progress AS SELECT
  service, log_id, seqno, epoch, source_id, event_id, gtid_set, consistent,
  make_timestamp(nullif(commit_time, 0)) AS commit_time, make_timestamp(nullif(applied_at, 0)) AS applied_at,
  (nullif(applied_at, 0) - nullif(commit_time, 0)) / 1e6 AS latency
FROM thl_position"""


def create(session: FileSession) -> None:
    """Create the tables and views that are missing."""
    prefix = session.bookkeeping
    session.run(f"CREATE SCHEMA IF NOT EXISTS {prefix[:-1]}")
    for table in _TABLES.strip().split("\nthl_"):
        session.run(f"CREATE TABLE IF NOT EXISTS {prefix}thl_{table.removeprefix('thl_')}")
    session.run(f"CREATE VIEW IF NOT EXISTS {prefix}{_PROGRESS}")
    because = INCONSISTENT_BECAUSE.format("")
    session.run(f"CREATE VIEW IF NOT EXISTS {prefix}thl_inconsistent_because AS {because}")


def dialect(session: FileSession) -> SqlDialect:
    """The dialect of the statements of a commit."""
    return SqlDialect(literal, session.bookkeeping, " ON CONFLICT DO NOTHING")
