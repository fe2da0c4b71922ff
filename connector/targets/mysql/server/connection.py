"""Sessions with a MySQL or MariaDB that is a target. They share nothing with the sessions with a source."""

from __future__ import annotations

import re
import socket
import ssl
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import pymysql
from pymysql.constants import CLIENT, CR, ER, SERVER_STATUS

from connector.addresses import on_this_machine
from connector.config.target_url import mysql_address, tls_attempts
from connector.errors import PreflightError, TargetDiffers, Unsupported
from connector.targets.mysql.server.errors import NOT_ROLLED_BACK, code_of, translated
from connector.targets.mysql.server.file_connection import File, FileConnection
from connector.targets.mysql.server.grants import Granted, granted_to
from connector.targets.mysql.sql.names import BOOKKEEPING

OLDEST: Final = (8, 0, 19)  # atomic DDL, and aliases of inserted rows
OLDEST_MARIADB: Final = (10, 6)  # atomic DDL
LOCK_SECONDS: Final = 60
# A dead server is noticed after a minute; the time of an answer is not limited.
_KEEPALIVE: Final = {
    socket.TCP_KEEPIDLE: 30,
    socket.TCP_KEEPINTVL: 10,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 60_000,
}

# Values are stored as they come: dates that are none, 0 in a column with AUTO_INCREMENT. Others are an error.
SQL_MODE: Final = "STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
LENIENT_MODE: Final = SQL_MODE.replace("STRICT_ALL_TABLES,", "")
_SESSION: Final = (
    f"SET SESSION sql_mode = '{SQL_MODE}', time_zone = '+00:00', foreign_key_checks = 0, unique_checks = 1,"
    " lc_messages = 'en_US', sql_notes = 1, sql_big_selects = 1, sql_safe_updates = 0, sql_select_limit = DEFAULT,"
    " group_concat_max_len = 1048576, completion_type = NO_CHAIN, default_storage_engine = InnoDB,"
    " default_tmp_storage_engine = InnoDB,"
    f" innodb_lock_wait_timeout = {LOCK_SECONDS}, lock_wait_timeout = {LOCK_SECONDS}, wait_timeout = 28800"
)
# The server's words on the rows of a statement, in the language that `_SESSION` asks for.
_MATCHED: Final = re.compile(rb"Rows matched: (\d+)")
_LOADED: Final = re.compile(rb"Records: (\d+)  Deleted: (\d+)  Skipped: (\d+)  Warnings: (\d+)")
_DUPLICATES: Final = re.compile(rb"Records: \d+  Duplicates: (\d+)")
_OF_KEYS: Final = "'sql_require_primary_key', 'sql_generate_invisible_primary_key', 'restrict_fk_on_non_standard_key'"
_ISOLATION: Final = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
# Lists of thousands of keys are looked up in the index, however long they are.
_OF_PRODUCT: Final = {
    False: ", range_optimizer_max_mem_size = 0, max_execution_time = 0",
    True: ", in_predicate_conversion_threshold = 0, max_statement_time = 0, idle_transaction_timeout = 0, "
    "idle_write_transaction_timeout = 0, check_constraint_checks = 0, alter_algorithm = 'DEFAULT'",
}


def unverified(url: str) -> str:
    """The reason why others can read the password on its way, as a sentence; "" if they cannot or there is none."""
    address = mysql_address(url)
    if not address.password or on_this_machine(address.host) or address.tls.startswith("verify"):
        return ""
    return (
        f"the password for the target at {address.host} is sent without verifying the server: ssl_mode is "
        f"{address.tls}; append ?ssl_mode=verify_identity to target.url, and ssl_ca=FILE for an authority of your own"
    )


@dataclass(frozen=True, slots=True)
class Loaded:
    """The server's counts of a LOAD DATA statement.

    Args:
        records: the number of rows that it read.
        deleted: the number of rows that these replaced.
        skipped: the number of those that it left out.
        warnings: how often it stored another value, or none.
    """

    records: int
    deleted: int = 0
    skipped: int = 0
    warnings: int = 0


class ServerSession:
    """A session in autocommit, whose settings are those that the applier's statements need.

    Args:
        url: of the target.
        name: for the server's list of sessions.
        patience: seconds for the server to answer.
        binary_log: false: what the session does is not written to the server's binary log.
        files: true if `load` may be called.

    Attributes:
        loads: true if the server takes rows by LOAD DATA LOCAL from the session (`load_data`).
        loaded: table → the definition by which its rows were loaded last, and the statement (`load_data`).
        taken_back: how often in a row it has not stored those of a table as they were (`load_data`).

    Raises:
        PreflightError: the server refuses the user, or lacks what a target needs.
        TargetUnavailable: it does not answer.
    """

    def __init__(
        self, url: str, name: str, patience: int = 10, *, binary_log: bool = True, files: bool = False
    ) -> None:
        self._address = mysql_address(url)
        self.loaded: dict[str, tuple[object, tuple[bytes, bytes] | None]] = {}
        self.taken_back: Counter[str] = Counter()
        self._flags = CLIENT.MULTI_STATEMENTS | (CLIENT.LOCAL_FILES if files else 0)
        with translated():
            self._db = self._connect(name, patience)
            try:
                self._read_facts()
                self._prepare(binary_log=binary_log)
            except BaseException:
                self._db.close()
                raise

    def _connect(self, name: str, patience: int) -> FileConnection:
        first, *others = tls_attempts(self._address)
        try:
            return self._attempt(name, patience, first)
        except pymysql.MySQLError as error:
            if not others or code_of(error) != CR.CR_SSL_CONNECTION_ERROR:
                raise
            return self._attempt(name, patience, others[0])  # the server offers no TLS

    def _attempt(self, name: str, patience: int, tls: ssl.SSLContext | None) -> FileConnection:
        address = self._address
        connection = FileConnection(
            host=address.host,
            port=address.port,
            user=address.user,
            password=address.password.encode(),  # pymysql encodes a str as Latin 1
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=patience,
            read_timeout=patience,
            client_flag=self._flags,
            program_name=name,
            ssl=tls,
            ssl_disabled=tls is None,
        )
        connection._read_timeout = None  # type: ignore[attr-defined]
        for option, value in _KEEPALIVE.items():
            connection._sock.setsockopt(socket.IPPROTO_TCP, option, value)  # type: ignore[attr-defined]
        return connection

    def _read_facts(self) -> None:
        ((version, packet, folds, log_bin, explicit, local_infile),) = self.rows(
            "SELECT @@version, @@max_allowed_packet, @@lower_case_table_names, @@log_bin, "
            "@@explicit_defaults_for_timestamp, @@local_infile"
        )
        self.version = str(version)
        self.mariadb = "mariadb" in self.version.lower()
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])
        self.product = f"{'MariaDB' if self.mariadb else 'MySQL'} {'.'.join(map(str, numbers))}"
        oldest = OLDEST_MARIADB if self.mariadb else OLDEST
        if numbers < oldest:
            raise Unsupported(
                f"the target is {self.product}: it executes DDL in several steps, which a crash may leave half done",
                hint=f"a target is MySQL {'.'.join(map(str, OLDEST))} or MariaDB "
                f"{'.'.join(map(str, OLDEST_MARIADB))} or later",
            )
        self.max_packet = int(str(packet))
        self.folds = bool(folds)
        self.logs = bool(log_bin)
        self.explicit_timestamps = bool(explicit)
        self.loads = bool(self._flags & CLIENT.LOCAL_FILES and local_infile and not self.mariadb)
        self.utf8mb4_collation: int | None = None  # the default collation of utf8mb4 where a session may have another
        if not self.mariadb:
            ((self.utf8mb4_collation,),) = self.rows(
                "SELECT id FROM information_schema.collations WHERE collation_name = @@default_collation_for_utf8mb4"
            )

    def _prepare(self, *, binary_log: bool) -> None:
        self.restore()
        self.query(_ISOLATION)
        # The source's definitions are as they are. Setting some needs a privilege, also to the value that they have.
        for name, _ in self.rows(f"SHOW VARIABLES WHERE value = 'ON' AND variable_name IN ({_OF_KEYS})"):
            self.query(f"SET SESSION {name} = OFF")
        if self.logs and not binary_log:
            self.query("SET SESSION sql_log_bin = 0")
        elif self.logs:
            ((form,),) = self.rows("SELECT @@binlog_format")
            if form != "ROW":
                self._log_rows(str(form))

    def restore(self) -> None:
        """Set the session's variables, after a statement that was run with those of its session at the source."""
        self.query(_SESSION + _OF_PRODUCT[self.mariadb])

    def _log_rows(self, form: str) -> None:
        try:
            self.query("SET SESSION binlog_format = 'ROW'")
        except pymysql.MySQLError as error:
            raise PreflightError(
                f"the target's binlog_format is {form}, in which the applier's statements would be logged",
                hint="SET GLOBAL binlog_format = 'ROW', or target.binary_log: false, or let the user of target.url set "
                "it (SESSION_VARIABLES_ADMIN; MariaDB: BINLOG ADMIN)",
            ) from error

    def query(self, sql: str | bytes) -> int:
        """Run one statement; return the number of its rows: changed, found, or matched by an update."""
        return self._matched(self._db.query(sql))

    def upsert(self, sql: bytes, rows: int) -> int:
        """Run an INSERT … ON DUPLICATE KEY UPDATE; return the number of its rows that were not there.

        Args:
            sql: the statement.
            rows: the number of rows that it has.
        """
        affected = int(self._db.query(sql))  # 1 for a new row, 2 for one that has changed, 0 for one that has not
        if rows == 1:
            return int(affected == 1)
        found = _DUPLICATES.search(self._message())
        if found is None:
            raise RuntimeError("an INSERT of several rows without their counts")
        return affected - 2 * int(found[1])

    def roll_back(self, savepoint: str = "") -> None:
        """Roll the transaction back, to a savepoint if there is one.

        Raises:
            TargetDiffers: rows stay in a table that others have given another storage engine.
        """
        self.query(f"ROLLBACK TO SAVEPOINT {savepoint}" if savepoint else "ROLLBACK")
        result = self._db._result
        if result is not None and result.warning_count:  # also of temporary tables, which are still there
            codes = {int(code) for _, code, _ in self.rows("SHOW WARNINGS")}
            if NOT_ROLLED_BACK in codes:
                raise TargetDiffers(
                    "a table of the target has a storage engine without transactions: the rows of a commit that did "
                    "not succeed are in it",
                    hint="ALTER TABLE … ENGINE = InnoDB, then thl load SCHEMA.TABLE",
                )

    def rows(self, sql: str | bytes) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        self._db.query(sql)
        result = self._db._result
        return list(result.rows or ()) if result is not None else []

    def many(self, statements: Sequence[str | bytes]) -> list[int]:
        """Run statements in one round trip; return the number of rows of each.

        An error ends them: those before it have taken effect.
        """
        joined = b";".join(one.encode() if isinstance(one, str) else one for one in statements)
        counts = [self._matched(self._db.query(joined))]
        while self._db._result is not None and self._db._result.has_next:
            counts.append(self._matched(self._db.next_result()))
        return counts

    def _matched(self, affected: int) -> int:
        """The number of rows of the last statement: an UPDATE affects only those that it changes."""
        found = _MATCHED.search(self._message())
        return int(affected) if found is None else int(found[1])

    def _message(self) -> bytes:
        """The server's message about the last statement; empty if it has none."""
        result = self._db._result
        return (result.message if result is not None else None) or b""

    def load(self, sql: bytes, file: File) -> Loaded | None:
        """Run a LOAD DATA LOCAL statement that reads a file, whatever name it has; see `FileConnection`.

        Returns:
            None: the server gives no counts. MySQL does not if a trigger gives NULL to a column that is NOT NULL.
        """
        self._db.file = file
        try:
            self._db.query(sql)
        finally:
            self._db.file = None
        found = _LOADED.search(self._message())
        return None if found is None else Loaded(*map(int, found.groups()))

    @property
    def in_transaction(self) -> bool:
        """True if a transaction was open when the server answered last."""
        return bool(self._db.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def enter(self, settings: Sequence[str], database: str) -> bool:
        """Make the session that of a statement of the source; return true if it is in the statement's database.

        Args:
            settings: assignments to its variables.
            database: its default database; names without one mean nothing if the target has none of this name.
        """
        found = bool(database)
        try:
            self._db.select_db(database or BOOKKEEPING)
        except pymysql.MySQLError as error:
            if code_of(error) != ER.BAD_DB_ERROR:
                raise
            self._db.select_db(BOOKKEEPING)
            found = False
        self.query(f"SET SESSION {', '.join(settings)}")
        return found

    def leave(self, settings: Sequence[str]) -> None:
        """Make it the applier's again, after `enter` with these settings."""
        self._db.select_db(BOOKKEEPING)
        self.query("SET NAMES utf8mb4")
        names = {setting.partition(" ")[0] for setting in settings} | {"timestamp", "collation_server"}
        names -= {"character_set_client", "collation_connection"}  # of SET NAMES
        self.query(f"SET SESSION {', '.join(f'{name} = DEFAULT' for name in sorted(names))}")
        self.restore()

    @cached_property
    def granted(self) -> Granted:
        """The user's privileges, as they were when they were asked for first."""
        literal = bool(self.rows("SHOW GLOBAL VARIABLES WHERE variable_name = 'partial_revokes' AND value = 'ON'"))
        return granted_to([str(line) for (line,) in self.rows("SHOW GRANTS")], literal=literal, folds=self.folds)

    def is_alive(self) -> bool:
        """False if the session has ended: a newer applier may have ended it."""
        try:
            self._db.ping(reconnect=False)
        except (pymysql.MySQLError, OSError):
            return False
        return True

    @property
    def number(self) -> int:
        """The server's number of the session."""
        return int(self._db.thread_id())  # type: ignore[no-untyped-call]

    def close(self) -> None:
        """End the session; an open transaction is rolled back. May be repeated."""
        if self._db.open:
            try:
                self._db.close()
            except (pymysql.MySQLError, OSError):  # it was gone
                self._db._force_close()  # type: ignore[attr-defined]
