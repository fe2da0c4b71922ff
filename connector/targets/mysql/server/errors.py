"""MySQL's errors as the connector's, by number, with those that a retry may solve."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pymysql
from pymysql.constants import CR, ER

from connector.errors import (
    ConnectorError,
    MissingPrivilege,
    PreflightError,
    TargetDiffers,
    TargetUnavailable,
    Unsupported,
    ValueNotRepresentable,
)

LOST: Final = frozenset(
    {
        -1,  # no number: pymysql's own, of an answer that it cannot read
        0,  # pymysql: the connection object is closed
        ER.SERVER_SHUTDOWN,
        ER.NORMAL_SHUTDOWN,
        1317,  # ER_QUERY_INTERRUPTED
        1927,  # MariaDB's ER_CONNECTION_KILLED
        3169,  # ER_SESSION_WAS_KILLED
        4031,  # ER_CLIENT_INTERACTION_TIMEOUT
        CR.CR_SERVER_GONE_ERROR,
        CR.CR_SERVER_LOST,
    }
)
"""The session has ended, or is about to."""

LACKS_PRIVILEGE: Final = ER.SPECIFIC_ACCESS_DENIED_ERROR
"""The user lacks a privilege on the server."""

DENIED: Final = frozenset(
    {
        ER.DBACCESS_DENIED_ERROR,
        ER.TABLEACCESS_DENIED_ERROR,
        ER.COLUMNACCESS_DENIED_ERROR,
        LACKS_PRIVILEGE,
        1370,  # ER_PROCACCESS_DENIED_ERROR
    }
)
"""The user lacks a privilege: on the server, a database, a table, columns, or a routine."""

NO_SUCH_TABLE: Final = frozenset({ER.NO_SUCH_TABLE, ER.BAD_DB_ERROR})
"""There is no such table, or no such database."""

DUPLICATES: Final = frozenset({ER.DUP_ENTRY, ER.DUP_UNIQUE, 1586})  # ER_DUP_ENTRY_WITH_KEY_NAME
"""A unique index has the value already."""

NO_LOCAL_FILES: Final = frozenset({1148, 3948})
"""The server takes no LOAD DATA LOCAL: ER_NOT_ALLOWED_COMMAND, ER_CLIENT_LOCAL_FILES_DISABLED."""

TRUNCATED: Final = ER.WARN_DATA_TRUNCATED
"""A value is truncated: a label that an ENUM lacks."""

NOT_ROLLED_BACK: Final = 1196
"""The warning ER_WARNING_NOT_COMPLETE_ROLLBACK: rows of a table without transactions stay."""

_PASSING: Final = frozenset(
    {
        ER.CON_COUNT_ERROR,
        ER.LOCK_WAIT_TIMEOUT,
        ER.LOCK_DEADLOCK,
        ER.DISK_FULL,
        3,  # EE_WRITE: a temporary file on a full disk
        1026,  # ER_ERROR_ON_WRITE
        1047,  # ER_UNKNOWN_COM_ERROR: a node of a Galera cluster that has no quorum
        1114,  # ER_RECORD_FILE_FULL
        1203,  # ER_TOO_MANY_USER_CONNECTIONS
        1226,  # ER_USER_LIMIT_REACHED
        1637,  # ER_TOO_MANY_CONCURRENT_TRXS
        1878,  # ER_TEMP_FILE_WRITE_FAILURE
        3101,  # ER_TRANSACTION_ROLLBACK_DURING_COMMIT: another server of the group has changed the same rows
        CR.CR_CONNECTION_ERROR,
        CR.CR_CONN_HOST_ERROR,
    }
)
_REFUSED: Final = frozenset({ER.ACCESS_DENIED_ERROR, 1698, 1820, 3118})
_READ_ONLY: Final = frozenset({1290, 1792, 1836})
_VALUES: Final = frozenset(
    {
        1264,  # out of range
        TRUNCATED,
        1292,  # incorrect datetime
        1366,  # incorrect string
        1406,  # too long
        1416,  # no geometry
        1367,  # illegal value
        3140,  # invalid JSON
        4025,  # MariaDB's CONSTRAINT failed: its JSON is a CHECK
        6138,  # no vector
    }
)
_UNKNOWN_HERE: Final = frozenset(
    {
        1064,  # syntax
        1115,  # unknown character set
        1235,  # not supported yet
        1273,  # unknown collation
        1286,  # unknown storage engine
        1305,  # unknown function
        4161,  # MariaDB: unknown data type
    }
)
_OF_CERTIFICATE: Final = re.compile("_ALERT_.*(UNKNOWN_CA|CERTIFICATE)")


@contextmanager
def translated() -> Iterator[None]:
    """Raise what pymysql raises as an error of `connector.errors`."""
    try:
        yield
    except (pymysql.MySQLError, OSError) as error:
        raise connector_error(error) from error


def code_of(error: BaseException) -> int:
    """MySQL's number of an error; -1 if it has none."""
    found = error.args[0] if error.args else -1
    return found if isinstance(found, int) and not isinstance(error, OSError) else -1


def is_lost(error: BaseException | None) -> bool:
    """True if the session of this error has ended."""
    return isinstance(error, OSError | pymysql.InterfaceError) or (
        isinstance(error, pymysql.MySQLError) and code_of(error) in LOST
    )


def connector_error(error: pymysql.MySQLError | OSError) -> ConnectorError:
    """The equivalent error of `connector.errors`."""
    code = code_of(error)
    text = f"MySQL: {error.args[1] if len(error.args) > 1 else error}"
    where: dict[str, Any] = {"code": code} if code > 0 else {}
    if isinstance(getattr(error, "original_exception", None), ssl.SSLCertVerificationError):
        hint = "append ssl_ca=FILE with the server's authority to target.url, or correct the host's name"
        return PreflightError(f"the target cannot be trusted: {text}", hint=hint, **where)
    alert = error.__context__  # with TLS 1.3 the server looks at the certificate after the client's last step
    if isinstance(alert, ssl.SSLError) and _OF_CERTIFICATE.search(alert.reason or ""):
        hint = "ssl_cert in target.url: is it valid, and does the server's ssl_ca hold the authority that signed it?"
        return PreflightError(f"the target refuses the client's certificate: {alert.reason}", hint=hint, **where)
    if is_lost(error) or code in _PASSING:
        return TargetUnavailable(text, **where)
    if code in _REFUSED:
        return PreflightError(text, hint="correct user and password in target.url", **where)
    if code in DENIED or code == ER.KILL_DENIED_ERROR:
        hint = "GRANT what docs/security.md lists for such a target to the user in target.url"
        return MissingPrivilege(text, hint=hint, **where)
    if code in _READ_ONLY:
        hint = "is the server of target.url a replica? Name another there; else SET GLOBAL read_only = OFF on it"
        return PreflightError(text, hint=hint, **where)
    if code in _VALUES:
        return ValueNotRepresentable(text, **where)
    if code in _UNKNOWN_HERE:
        return Unsupported(text, hint="the target's product or version lacks what the source's has", **where)
    if code == 1153:  # ER_NET_PACKET_TOO_LARGE
        hint = "SET GLOBAL max_allowed_packet = 1073741824 on the target, and in its option file"
        return PreflightError(text, hint=hint, **where)
    return TargetDiffers(text, **where)
