"""The applier's tables and views in a SQLite target: those of PostgreSQL, for one writer."""

from __future__ import annotations

from typing import Final

from connector.targets.commit_statements import SqlDialect
from connector.targets.operations import Value
from connector.targets.position import INCONSISTENT_BECAUSE

STATEMENTS: Final = (
    """CREATE TABLE IF NOT EXISTS thl_position (
  service TEXT PRIMARY KEY, log_id TEXT NOT NULL DEFAULT '', seqno INTEGER NOT NULL DEFAULT -1,
  epoch INTEGER NOT NULL DEFAULT 0, source_id TEXT NOT NULL DEFAULT '', event_id TEXT NOT NULL DEFAULT '',
  gtid_set TEXT, offsets TEXT NOT NULL DEFAULT '{}', consistent INTEGER NOT NULL DEFAULT 1,
  commit_time INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL, applied_at INTEGER NOT NULL DEFAULT 0,
  schema_version INTEGER NOT NULL DEFAULT 1) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_tables (
  service TEXT NOT NULL, schema_name TEXT NOT NULL, table_name TEXT NOT NULL, target_name TEXT NOT NULL UNIQUE,
  definition TEXT NOT NULL, PRIMARY KEY (service, schema_name, table_name)) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_applied (
  service TEXT NOT NULL, seqno INTEGER NOT NULL, epoch INTEGER NOT NULL, event_id TEXT NOT NULL,
  commit_time INTEGER NOT NULL, applied_at INTEGER NOT NULL, token INTEGER NOT NULL, "rows" INTEGER NOT NULL,
  PRIMARY KEY (service, seqno)) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_requests (
  service TEXT PRIMARY KEY, asked_at INTEGER NOT NULL, asked_by TEXT NOT NULL, because TEXT NOT NULL,
  offline_at INTEGER, seqno INTEGER) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_skipped (
  service TEXT NOT NULL, seqno INTEGER NOT NULL, epoch INTEGER NOT NULL, event_id TEXT NOT NULL,
  skipped_at INTEGER NOT NULL, skipped_by TEXT NOT NULL, because TEXT NOT NULL, tables TEXT NOT NULL,
  PRIMARY KEY (service, seqno)) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_inconsistent (
  service TEXT NOT NULL, schema_name TEXT NOT NULL, table_name TEXT NOT NULL, since_seqno INTEGER NOT NULL,
  because TEXT NOT NULL, PRIMARY KEY (service, schema_name, table_name)) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_excluded (
  service TEXT NOT NULL, schema_name TEXT NOT NULL, table_name TEXT NOT NULL, since_seqno INTEGER NOT NULL,
  excluded_at INTEGER NOT NULL, excluded_by TEXT NOT NULL, because TEXT NOT NULL, changes INTEGER NOT NULL,
  PRIMARY KEY (service, schema_name, table_name)) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_loading (
  service TEXT NOT NULL, schema_name TEXT NOT NULL, table_name TEXT NOT NULL, load_id TEXT NOT NULL,
  since_seqno INTEGER NOT NULL, began_at INTEGER NOT NULL, state TEXT NOT NULL, marks TEXT NOT NULL,
  consistent INTEGER NOT NULL, PRIMARY KEY (service, schema_name, table_name)) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_identity (service TEXT PRIMARY KEY, identity TEXT NOT NULL) STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_claim (service TEXT PRIMARY KEY, token INTEGER NOT NULL, mark TEXT NOT NULL)
  STRICT""",
    """CREATE TABLE IF NOT EXISTS thl_rewound (service TEXT PRIMARY KEY, head INTEGER NOT NULL) STRICT""",
    """CREATE VIEW IF NOT EXISTS thl_progress AS SELECT
  service, log_id, seqno, epoch, source_id, event_id, gtid_set, consistent,
  strftime('%Y-%m-%d %H:%M:%S', nullif(commit_time, 0) / 1000000, 'unixepoch')
    || printf('.%06d', commit_time % 1000000) AS commit_time,
  strftime('%Y-%m-%d %H:%M:%S', nullif(applied_at, 0) / 1000000, 'unixepoch')
    || printf('.%06d', applied_at % 1000000) AS applied_at,
  (nullif(applied_at, 0) - nullif(commit_time, 0)) / 1e6 AS latency
FROM thl_position""",
    f"CREATE VIEW IF NOT EXISTS thl_inconsistent_because AS {INCONSISTENT_BECAUSE.format('')}",
)
"""Each statement creates one table or view if it is missing."""


def _literal(value: Value) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if not isinstance(value, str):
        return repr(int(value)) if isinstance(value, bool) else repr(value)
    if "\0" in value:  # which would end the statement
        return f"CAST(x'{value.encode().hex()}' AS TEXT)"
    return "'" + value.replace("'", "''") + "'"


DIALECT: Final = SqlDialect(_literal, "", " ON CONFLICT DO NOTHING")
