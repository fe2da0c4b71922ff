"""The schema `thl` of a PostgreSQL target: the applier's tables, and views and functions for readers of the target.

`claim` creates what is missing. The tables of `_NEEDED` are required. If the account may not create one of the others,
the applier logs a warning and goes on; commands that need it report it.

`thl_wait_for_gtid` compares GTIDs as `log.gtid.mysql` and `log.gtid.mariadb` do; a test compares both. The forms are
those of MySQL's manual, "GTID Sets", and of MariaDB's `gtid_binlog_pos`.
"""

from __future__ import annotations

import logging
from typing import Final, LiteralString

import psycopg
from psycopg import errors
from psycopg.rows import TupleRow

from connector.log.transaction.layout import TableName
from connector.targets.bookkeeping import BASE_VERSION, EXCLUDED, LOADING, excluded_from, loading_from
from connector.targets.table import Table, from_json
from connector.targets.target_schema import Excluded, Loading

LOG: Final = logging.getLogger(__name__)

_NEEDED: Final = """
CREATE TABLE thl.thl_position (
  service text PRIMARY KEY, log_id text NOT NULL DEFAULT '', seqno bigint NOT NULL DEFAULT -1,
  epoch bigint NOT NULL DEFAULT 0, source_id text NOT NULL DEFAULT '', event_id text NOT NULL DEFAULT '',
  gtid_set text, offsets text NOT NULL DEFAULT '{}', consistent boolean NOT NULL DEFAULT true,
  commit_time bigint NOT NULL DEFAULT 0, token bigint NOT NULL, applied_at bigint NOT NULL DEFAULT 0,
  schema_version integer NOT NULL DEFAULT 1);
CREATE TABLE thl.thl_tables (
  service text, schema_name text, table_name text, target_name text NOT NULL UNIQUE, definition text NOT NULL,
  PRIMARY KEY (service, schema_name, table_name));
CREATE TABLE thl.thl_applied (
  service text, seqno bigint, epoch bigint NOT NULL, event_id text NOT NULL, commit_time bigint NOT NULL,
  applied_at bigint NOT NULL, token bigint NOT NULL, "rows" bigint NOT NULL, PRIMARY KEY (service, seqno));
"""

_SCHEMA_VERSION: Final = "ALTER TABLE thl.thl_position ADD COLUMN schema_version integer NOT NULL DEFAULT 1"

# The newest snapshot of each service. The transaction that exported it holds the advisory lock `lock_key`: a snapshot
# ends with that transaction, however the applier ends.
_SNAPSHOTS: Final = """
CREATE TABLE thl.thl_snapshots (
  service text PRIMARY KEY, snapshot text NOT NULL, seqno bigint NOT NULL, gtid_set text, exported_at bigint NOT NULL,
  lock_key bigint NOT NULL)
"""

_LIVING_SNAPSHOTS: Final = """
CREATE VIEW thl.thl_living_snapshots AS SELECT s.service, s.snapshot, s.seqno, s.gtid_set,
  timestamptz 'epoch' + s.exported_at * interval '1 microsecond' AS exported_at
FROM thl.thl_snapshots s WHERE EXISTS (
  SELECT FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
  AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
  AND (l.classid::bigint << 32) + l.objid::bigint = s.lock_key)
"""

# Subqueries, which a reader of the other columns does not pay for.
_PROGRESS: Final = """
CREATE OR REPLACE VIEW thl.thl_progress AS SELECT p.service, log_id, seqno, epoch, source_id, event_id, gtid_set,
  consistent, timestamptz 'epoch' + nullif(commit_time, 0) * interval '1 microsecond' AS commit_time,
  timestamptz 'epoch' + nullif(applied_at, 0) * interval '1 microsecond' AS applied_at,
  (nullif(applied_at, 0) - nullif(commit_time, 0)) * interval '1 microsecond' AS latency,
  (SELECT s.snapshot FROM thl.thl_living_snapshots s WHERE s.service = p.service) AS snapshot,
  (SELECT s.seqno FROM thl.thl_living_snapshots s WHERE s.service = p.service) AS snapshot_seqno,
  (SELECT s.gtid_set FROM thl.thl_living_snapshots s WHERE s.service = p.service) AS snapshot_gtid_set
FROM thl.thl_position p
"""

_REQUESTS: Final = """
CREATE TABLE thl.thl_requests (
  service text PRIMARY KEY, asked_at bigint NOT NULL, asked_by text NOT NULL, because text NOT NULL,
  offline_at bigint, seqno bigint)
"""

_SKIPPED: Final = """
CREATE TABLE thl.thl_skipped (
  service text, seqno bigint, epoch bigint NOT NULL, event_id text NOT NULL, skipped_at bigint NOT NULL,
  skipped_by text NOT NULL, because text NOT NULL, tables text NOT NULL, PRIMARY KEY (service, seqno))
"""

_INCONSISTENT: Final = """
CREATE TABLE thl.thl_inconsistent (
  service text, schema_name text, table_name text, since_seqno bigint NOT NULL, because text NOT NULL,
  PRIMARY KEY (service, schema_name, table_name))
"""

_EXCLUDED: Final = """
CREATE TABLE thl.thl_excluded (
  service text, schema_name text, table_name text, since_seqno bigint NOT NULL, excluded_at bigint NOT NULL,
  excluded_by text NOT NULL, because text NOT NULL, changes bigint NOT NULL,
  PRIMARY KEY (service, schema_name, table_name))
"""

_LOADING: Final = """
CREATE TABLE thl.thl_loading (
  service text, schema_name text, table_name text, load_id text NOT NULL, since_seqno bigint NOT NULL,
  began_at bigint NOT NULL, state text NOT NULL, marks text NOT NULL, consistent boolean NOT NULL,
  PRIMARY KEY (service, schema_name, table_name))
"""

_CLAIM: Final = "CREATE TABLE thl.thl_claim (service text PRIMARY KEY, token bigint NOT NULL, mark text NOT NULL)"

_INTENT: Final = """
CREATE TABLE thl.thl_intent (
  service text PRIMARY KEY, log_id text NOT NULL, first_seqno bigint NOT NULL, last_seqno bigint NOT NULL,
  epoch bigint NOT NULL, offsets text NOT NULL, consistent boolean NOT NULL, writers integer NOT NULL,
  hash_version integer NOT NULL, undivided text NOT NULL)
"""

_CHANNELS: Final = """
CREATE TABLE thl.thl_channels (
  service text, channel integer, seqno bigint NOT NULL, token bigint NOT NULL, PRIMARY KEY (service, channel))
"""

# One row for each reason for which readers may see what the source never showed: the rows of a commit in part, a
# load, events that are applied again, tables that are excluded, or from which an event was left out.
_INCONSISTENT_BECAUSE: Final = """
CREATE VIEW thl.thl_inconsistent_because AS
  SELECT service, 'channels' AS because FROM thl.thl_intent
  UNION ALL SELECT service, 'rewind' FROM thl.thl_rewound
  UNION ALL SELECT p.service, 'load' FROM thl.thl_position p
    LEFT JOIN thl.thl_intent i USING (service) LEFT JOIN thl.thl_rewound r USING (service)
    WHERE NOT coalesce(i.consistent, p.consistent) AND r.service IS NULL
  UNION ALL SELECT DISTINCT service, 'quarantine' FROM thl.thl_excluded
  UNION ALL SELECT DISTINCT service, 'skipped' FROM thl.thl_inconsistent
"""

_MYSQL_NUMBERS: Final = r"""
CREATE FUNCTION thl.thl_gtid_numbers(gtids text) RETURNS TABLE (source text, numbers int8multirange)
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog AS $$
DECLARE
  part text; word text; words text[]; place text; tagged boolean; ends bigint[];
  sources text[] := '{}'; spans int8range[] := '{}';
BEGIN
  FOREACH part IN ARRAY string_to_array(lower(regexp_replace(gtids, '\s', '', 'g')), ',') LOOP
    CONTINUE WHEN part = '';
    words := string_to_array(part, ':');
    IF words[1] !~ '^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$' OR cardinality(words) < 2 THEN
      RAISE EXCEPTION 'not GTIDs of MySQL or MariaDB: %', left(gtids, 200) USING ERRCODE = '22023';
    END IF;
    words[1] := words[1]::uuid::text;
    place := words[1];
    tagged := false;
    FOREACH word IN ARRAY words[2:] LOOP
      IF word ~ '^[0-9]{1,19}(-[0-9]{1,19})?$' THEN
        ends := string_to_array(word, '-')::bigint[];
        IF ends[1] < 1 OR greatest(ends[1], ends[2]) > 9223372036854775806 THEN
          RAISE EXCEPTION 'not GTIDs of MySQL: %', left(gtids, 200) USING ERRCODE = '22023';
        END IF;
        IF ends[1] <= coalesce(ends[2], ends[1]) THEN  -- MySQL takes 5-3 for no number at all
          sources := sources || place;
          spans := spans || int8range(ends[1], coalesce(ends[2], ends[1]), '[]');
        END IF;
        tagged := false;
      ELSIF word ~ '^[a-z_][a-z0-9_]{0,31}$' AND NOT tagged THEN
        place := words[1] || ':' || word;
        tagged := true;
      ELSE
        RAISE EXCEPTION 'not GTIDs of MySQL: %', left(gtids, 200) USING ERRCODE = '22023';
      END IF;
    END LOOP;
    IF tagged THEN
      RAISE EXCEPTION 'a tag without numbers: %', left(gtids, 200) USING ERRCODE = '22023';
    END IF;
  END LOOP;
  RETURN QUERY SELECT one.s, range_agg(one.r) FROM unnest(sources, spans) AS one (s, r) GROUP BY one.s;
END $$
"""

_MARIADB_NUMBERS: Final = r"""
CREATE FUNCTION thl.thl_domain_numbers(gtids text) RETURNS TABLE (domain numeric, server numeric, number numeric)
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog AS $$
DECLARE part text;
BEGIN
  FOREACH part IN ARRAY string_to_array(regexp_replace(gtids, '\s', '', 'g'), ',') LOOP
    CONTINUE WHEN part = '';
    IF part !~ '^[0-9]{1,10}-[0-9]{1,10}-[0-9]{1,20}$' THEN
      RAISE EXCEPTION 'not GTIDs of MariaDB: %', left(gtids, 200) USING ERRCODE = '22023';
    END IF;
    domain := split_part(part, '-', 1)::numeric;
    server := split_part(part, '-', 2)::numeric;
    number := split_part(part, '-', 3)::numeric;
    RETURN NEXT;
  END LOOP;
END $$
"""

_HAS: Final = r"""
CREATE FUNCTION thl.thl_has_gtid(applied text, wanted text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog AS $$
DECLARE of_mariadb CONSTANT text := '^\s*\d+-\d+-\d+\s*(,.*)?$';
BEGIN
  IF wanted ~ of_mariadb AND applied ~ of_mariadb THEN
    RETURN (SELECT coalesce(bool_and(w.number = 0 OR coalesce(
        (SELECT w.number <= max(a.number) FROM thl.thl_domain_numbers(applied) a
          WHERE a.domain = w.domain AND a.server = w.server),
        (SELECT w.number < max(a.number) FROM thl.thl_domain_numbers(applied) a WHERE a.domain = w.domain),
        false)), true) FROM thl.thl_domain_numbers(wanted) w);
  END IF;
  IF wanted ~ of_mariadb THEN
    RETURN NOT EXISTS (SELECT FROM thl.thl_domain_numbers(wanted) w WHERE w.number > 0);
  END IF;
  IF applied ~ of_mariadb THEN
    RETURN NOT EXISTS (SELECT FROM thl.thl_gtid_numbers(wanted));
  END IF;
  RETURN NOT EXISTS (SELECT FROM thl.thl_gtid_numbers(wanted) w
    LEFT JOIN thl.thl_gtid_numbers(applied) a ON a.source = w.source WHERE (a.numbers @> w.numbers) IS NOT TRUE);
END $$
"""

# With a living snapshot it is the snapshot that has to have the GTID: readers of several writers' commits read by it.
_WAIT: Final = r"""
CREATE OR REPLACE FUNCTION
thl.thl_wait_for_gtid(gtid text, timeout interval DEFAULT '10 seconds', service text DEFAULT NULL)
RETURNS boolean LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog AS $$
DECLARE
  given_up CONSTANT timestamptz := clock_timestamp() + timeout;
  pause double precision := 0.002;
BEGIN
  IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
    RAISE EXCEPTION 'thl_wait_for_gtid waits for ever in a transaction that sees one state: %',
      current_setting('transaction_isolation')
      USING ERRCODE = '25001', HINT = 'call it before that transaction, in READ COMMITTED';
  END IF;
  IF thl.thl_has_gtid('', gtid) IS NULL THEN  -- and what is no GTID is told at once
    RETURN NULL;
  END IF;
  LOOP
    IF EXISTS (SELECT FROM thl.thl_progress p WHERE p.service = coalesce(thl_wait_for_gtid.service, p.service)
        AND CASE WHEN p.snapshot IS NULL THEN p.consistent AND thl.thl_has_gtid(p.gtid_set, gtid)
          ELSE thl.thl_has_gtid(p.snapshot_gtid_set, gtid) END) THEN
      RETURN true;
    END IF;
    IF clock_timestamp() >= given_up THEN
      RETURN false;
    END IF;
    PERFORM pg_sleep(least(pause, greatest(extract(epoch FROM given_up - clock_timestamp()), 0)));
    pause := least(pause * 1.5, 0.05);
  END LOOP;
END $$
"""

_WITH_MULTIRANGES: Final = 140_000
_RELATION: Final = "SELECT to_regclass(%s)"
_COLUMN: Final = """
SELECT (SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = %s AND NOT attisdropped)
"""
_FUNCTION: Final = "SELECT to_regprocedure(%s)"
_BODY: Final = "SELECT (SELECT oid FROM pg_proc WHERE oid = to_regprocedure(%s) AND strpos(prosrc, %s) > 0)"

# What is optional: its name, a query that tells whether it is there, the query's values, and what creates it. Of what
# earlier versions created otherwise, the query looks for what is new.
_OPTIONAL: Final[tuple[tuple[str, LiteralString, tuple[str, ...], LiteralString], ...]] = (
    ("thl.thl_position.schema_version", _COLUMN, ("thl.thl_position", "schema_version"), _SCHEMA_VERSION),
    *(
        (name, _RELATION, (name,), statement)
        for name, statement in (
            ("thl.thl_snapshots", _SNAPSHOTS),
            ("thl.thl_living_snapshots", _LIVING_SNAPSHOTS),
            ("thl.thl_requests", _REQUESTS),
            ("thl.thl_skipped", _SKIPPED),
            ("thl.thl_inconsistent", _INCONSISTENT),
            ("thl.thl_excluded", _EXCLUDED),
            ("thl.thl_loading", _LOADING),
            ("thl.thl_identity", "CREATE TABLE thl.thl_identity (service text PRIMARY KEY, identity text NOT NULL)"),
            ("thl.thl_claim", _CLAIM),
            ("thl.thl_rewound", "CREATE TABLE thl.thl_rewound (service text PRIMARY KEY, head bigint NOT NULL)"),
            ("thl.thl_intent", _INTENT),
            ("thl.thl_channels", _CHANNELS),
            ("thl.thl_inconsistent_because", _INCONSISTENT_BECAUSE),
        )
    ),
    ("thl.thl_progress", _COLUMN, ("thl.thl_progress", "snapshot"), _PROGRESS),
)
_FUNCTIONS: Final[tuple[tuple[str, LiteralString, tuple[str, ...], LiteralString], ...]] = (
    *(
        (name, _FUNCTION, (name,), statement)
        for name, statement in (
            ("thl.thl_gtid_numbers(text)", _MYSQL_NUMBERS),
            ("thl.thl_domain_numbers(text)", _MARIADB_NUMBERS),
            ("thl.thl_has_gtid(text, text)", _HAS),
        )
    ),
    (
        "thl.thl_wait_for_gtid(text, interval, text)",
        _BODY,
        ("thl.thl_wait_for_gtid(text, interval, text)", "p.snapshot_gtid_set"),
        _WAIT,
    ),
)


def ensure_bookkeeping(connection: psycopg.Connection) -> set[str]:
    """Create what is missing, inside the open transaction.

    Returns:
        The names of optional relations, columns and functions that are still missing.

    Raises:
        psycopg.Error: the required tables cannot be created.
    """
    if not _exists(connection, "SELECT to_regnamespace('thl')"):
        connection.execute("CREATE SCHEMA thl")
    if not _exists(connection, _RELATION, "thl.thl_position"):
        connection.execute(_NEEDED)
    wanted = _OPTIONAL
    if connection.info.server_version >= _WITH_MULTIRANGES:
        wanted += _FUNCTIONS
    return {
        name
        for name, query, values, statement in wanted
        if not _exists(connection, query, *values) and not _made(connection, name, statement)
    }


def _made(connection: psycopg.Connection, name: str, statement: LiteralString) -> bool:
    """Create something optional; return False if the account may not."""
    try:
        with connection.transaction():
            connection.execute(statement)
    except (errors.InsufficientPrivilege, errors.UndefinedTable):  # the latter for a view of what is missing
        fields = {"missing": name, "hint": "GRANT CREATE, USAGE ON SCHEMA thl TO …, or start once as the tables' owner"}
        LOG.warning("the account may not create a part of the bookkeeping", extra=fields)
        return False
    return True


def schema_version(connection: psycopg.Connection, service: str, missing: set[str]) -> int:
    """The `schema_version` of a service's position."""
    if "thl.thl_position.schema_version" in missing:
        return BASE_VERSION
    query = "SELECT schema_version FROM thl.thl_position WHERE service = %s"
    found = connection.execute(query, (service,)).fetchone()
    return found[0] if found else BASE_VERSION


def identity(connection: psycopg.Connection, service: str, missing: set[str]) -> str:
    """The target's random name for a service, made by its first claim; "" where it cannot be stored."""
    if "thl.thl_identity" in missing:
        return ""
    connection.execute(
        "INSERT INTO thl.thl_identity VALUES (%s, md5(random()::text || clock_timestamp()::text || pg_backend_pid())) "
        "ON CONFLICT DO NOTHING",
        (service,),
    )
    found = connection.execute("SELECT identity FROM thl.thl_identity WHERE service = %s", (service,)).fetchone()
    return str(found[0]) if found else ""


def last_claim(connection: psycopg.Connection, service: str, missing: set[str]) -> list[TupleRow]:
    """Token and mark of the last claim that had a mark; `missing`: what the bookkeeping lacks."""
    return _rows(connection, "token, mark", "thl.thl_claim", service, missing)


def write_claim(connection: psycopg.Connection, service: str, token: int, mark: str, missing: set[str]) -> None:
    """Write token and mark of a claim, if it has a mark, and the target the table for it."""
    if mark and "thl.thl_claim" not in missing:
        connection.execute(
            "INSERT INTO thl.thl_claim VALUES (%s, %s, %s) ON CONFLICT (service) "
            "DO UPDATE SET token = excluded.token, mark = excluded.mark",
            (service, token, mark),
        )


def applied_tables(connection: psycopg.Connection, service: str) -> list[Table]:
    """The tables that the applier of a service created."""
    query = "SELECT schema_name, table_name, definition FROM thl.thl_tables WHERE service = %s"
    return [
        from_json(TableName(schema, table), definition)
        for schema, table, definition in connection.execute(query, (service,))
    ]


def loading_tables(connection: psycopg.Connection, service: str, missing: set[str]) -> dict[TableName, Loading]:
    """The tables of a service that are being loaded; `missing`: what the bookkeeping lacks."""
    return loading_from(_rows(connection, LOADING, "thl.thl_loading", service, missing))


def excluded_tables(connection: psycopg.Connection, service: str, missing: set[str]) -> dict[TableName, Excluded]:
    """The excluded tables of a service; `missing`: what the bookkeeping lacks."""
    return excluded_from(_rows(connection, EXCLUDED, "thl.thl_excluded", service, missing))


def _rows(
    connection: psycopg.Connection, columns: LiteralString, table: LiteralString, service: str, missing: set[str]
) -> list[TupleRow]:
    """The rows of a service in an optional table; none if the bookkeeping lacks it."""
    if table in missing:
        return []
    return connection.execute(f"SELECT {columns} FROM {table} WHERE service = %s", (service,)).fetchall()


def _exists(connection: psycopg.Connection, query: LiteralString, *values: str) -> bool:
    return connection.execute(query, values or None).fetchone() != (None,)
