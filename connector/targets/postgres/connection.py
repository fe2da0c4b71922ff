"""Sessions with PostgreSQL that detect a lost server or network."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from connector.addresses import on_this_machine
from connector.errors import ConfigError
from connector.targets.postgres.names import POSTGRES_NAME_BYTES

# Detects it within a minute, both while waiting for an answer and while sending (COPY). Without tcp_user_timeout the
# kernel would resend for about 15 minutes.
WATCHED = "keepalives_idle=30 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=60000"

IDLE_SECONDS = 10
LOCK_SECONDS = 60

_SESSION = f"""
SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET intervalstyle = 'postgres'; SET extra_float_digits = 1;
SET standard_conforming_strings = on; SET client_min_messages = 'warning'; SET statement_timeout = 0;
SET synchronous_commit = on; SET temp_buffers = '64MB';
SET lock_timeout = '{LOCK_SECONDS}s'; SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s';
SET default_transaction_isolation = 'read committed'; SET search_path = pg_catalog;
SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN ('idle_session_timeout', 'transaction_timeout')
"""


def connect(url: str, name: str, patience: int = 10) -> psycopg.Connection:
    """Open a session in autocommit that speaks UTF-8. Other parameters of the URL take precedence over those here.

    Args:
        url: a URL of libpq.
        name: the `application_name`.
        patience: seconds for each server of the URL to answer.

    Raises:
        ConfigError: the URL is malformed.
        psycopg.Error: the server does not answer, or refuses the connection.
    """
    given = {**conninfo_to_dict(WATCHED), "connect_timeout": patience, "application_name": name, **parts_of(url)}
    given["client_encoding"] = "utf8"  # COPY sends UTF-8, whatever the database, the role or PGCLIENTENCODING prefer
    conninfo = make_conninfo("", **{key: str(value) for key, value in given.items() if value is not None})
    return psycopg.connect(conninfo, autocommit=True)


def open_session(url: str, name: str) -> psycopg.Connection:
    """Open a session of an applier, with the settings that its statements need; see `connect`."""
    session = connect(url, name)
    session.execute(_SESSION)
    return session


def applier_name(service: str) -> str:
    """The `application_name` of the applier's session, cut as PostgreSQL cuts it."""
    return f"thl {service}".encode()[:POSTGRES_NAME_BYTES].decode(errors="ignore")


def applier_connected(connection: psycopg.Connection, service: str) -> bool:
    """True if an applier of a service has a session with the database.

    Raises:
        psycopg.Error: the server does not answer.
    """
    sql = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s"
    return connection.execute(sql, (applier_name(service),)).fetchone() is not None


def parts_of(url: str) -> dict[str, str | int | None]:
    """The parameters in a URL, by libpq's names.

    Raises:
        ConfigError: the URL is malformed. The message is not libpq's, which may repeat a part of the password.
    """
    try:
        return dict(conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        known = {one.keyword.decode() for one in pq.Conninfo.get_defaults()}
        given = (name for name in re.findall(r"[?&]([^=&]+)=", url) if name not in known)
        meant = next((near[0] for name in given if (near := get_close_matches(name, known, 1))), "")
        raise ConfigError.of_fields(  # without text of the URL, which may be a part of the password
            "target.url has a parameter that libpq does not know" if meant else "target.url is not a URL of PostgreSQL",
            {"target.url": None},
            hint="postgresql://user:password@host:port/database?…",
            meant=meant or None,
        ) from None


def server_of(url: str) -> str:
    """The hosts and ports in a URL as `host:port`, or libpq's defaults for what it leaves out.

    Raises:
        ConfigError: the URL is malformed.
    """
    known = _known(url)
    return f"{known.get('host') or known.get('hostaddr') or 'localhost'}:{known['port']}"


def unverified(url: str) -> str:
    """The reason why others can read the password on its way, as a sentence; "" if they cannot or there is none."""
    known = _known(url)
    hosts = known.get("hostaddr") or known.get("host", "")
    if not _has_password(known) or all(on_this_machine(host) for host in hosts.split(",")):
        return ""
    mode = known.get("sslmode", "prefer")
    authority = known.get("sslrootcert", "")  # with one, `require` verifies, too; `system` requires it
    if mode in {"verify-ca", "verify-full"} or (mode == "require" and authority) or authority == "system":
        return ""
    return (
        f"the password for the target at {hosts} is sent without verifying the server: sslmode is {mode}; append "
        "?sslmode=verify-full&sslrootcert=system, or a file with the authority, to target.url"
    )


def _has_password(known: dict[str, str]) -> bool:
    """True if libpq has a password to send, or may find one in a password file."""
    return bool(known.get("password") or known.get("passfile")) or Path("~/.pgpass").expanduser().is_file()


def _known(url: str) -> dict[str, str]:
    """The parameters in a URL over libpq's defaults, with PGPASSWORD and the like."""
    defaults = {one.keyword.decode(): one.val for one in pq.Conninfo.get_defaults()}
    known = {name: value.decode() for name, value in defaults.items() if value}
    return known | {name: str(value) for name, value in parts_of(url).items() if value is not None}
