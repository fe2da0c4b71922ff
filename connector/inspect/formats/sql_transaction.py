"""Formats a transaction of a binary log file as SQL for MySQL's client: `mysql --binary-mode --comments`.

A statement is preceded by the settings of its session that the log has, and keeps its bytes and their character set.
Rows are BINLOG statements (`connector.mysql.binlog.events.binlog_statement`). Numbers of modes and collations are
executed as such, because servers differ in names; the names follow in comments.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from connector import private_files as private
from connector.errors import ConfigError, Unsupported, escaped
from connector.inspect.formats.tungsten import time_of
from connector.log.gtid.source_gtids import of_mariadb
from connector.log.ids import Kind, Outcome, Seqno
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.xa import XID
from connector.mysql.values.charsets import UTF8, decode_leniently, shown
from connector.mysql.values.session_names import COLLATION_OPTIONS, named_option

GTID_NEXT: Final = b"SET @@session.gtid_next = '%s'"
# After a format description a MySQL expects a replica's GTID events, and takes what has none for anonymous.
DESCRIBED: Final = b"/*!50700 " + GTID_NEXT % b"AUTOMATIC" + b"*/"
# What ends a statement. Its command is in lower case, as the client has it: after `\C binary` it knows no other.
DELIMITER: Final = b"/*!*/;"
BEFORE: Final = b"""# SQL of binary log files, from thl binlog. Execute it with: mysql --binary-mode --comments
# (with --local-infile for LOAD DATA), or with MariaDB's client. The user needs BINLOG_ADMIN for rows, and
# SESSION_VARIABLES_ADMIN; with MariaDB BINLOG REPLAY and BINLOG ADMIN.
# Where a statement used the time zone SYSTEM, the zone is that of the server that executes it.
/*!50530 SET @@session.pseudo_slave_mode = 1*/;
delimiter /*!*/;
"""
AFTER: Final = b"""delimiter ;
/*!50530 SET @@session.pseudo_slave_mode = 0*/;
"""
# Settings that stay until another statement has others: the server version since which a server knows them.
SETTINGS: Final[Mapping[str, int]] = {
    "foreign_key_checks": 0, "unique_checks": 0, "sql_auto_is_null": 0, "sql_mode": 0, "auto_increment_increment": 0,
    "auto_increment_offset": 0, "character_set_client": 0, "collation_connection": 0, "collation_server": 0,
    "collation_database": 0, "lc_time_names": 0, "time_zone": 0, "explicit_defaults_for_timestamp": 0,
    "default_collation_for_utf8mb4": 80011, "sql_require_primary_key": 80013, "default_table_encryption": 80016,
    "character_set_collations": 0, replay.PSEUDO_THREAD_ID: 0,
}  # fmt: skip
# What the log omits has these values.
DEFAULTS: Final = {
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
    "lc_time_names": "0",
    "collation_database": "DEFAULT",
    "character_set_client": "utf8mb4",
}
QUOTED: Final = frozenset({"time_zone", "character_set_collations"})
# Values for one statement.
ONCE: Final = ("timestamp", replay.LAST_INSERT_ID, replay.INSERT_ID, replay.RAND_SEED1, replay.RAND_SEED2)
SCHEMAS: Final = re.compile(r"\b(?:DATABASE|SCHEMA)\b", re.IGNORECASE)
WORDS: Final = {"error": "", "ignore": " IGNORE", "replace": " REPLACE"}


@dataclass(slots=True)
class PrintedSession:
    """The state of the session that executes the printed SQL, after the last printed transaction."""

    settings: dict[str, str] = field(default_factory=dict)
    schema: str | None = None
    described: str = ""


class SqlPrinter:
    """Formats transactions: a `connector.inspect.transactions.Formatter`.

    Args:
        folder: for the files that LOAD DATA reads; None: a log with such a file is refused.
        gtids: transactions keep their GTIDs where they are executed; False: they get new ones.
    """

    def __init__(self, folder: Path | None = None, *, gtids: bool = True) -> None:
        self._folder = folder
        self._gtids = gtids
        self._automatic = b""  # what lets the session give GTIDs by itself again; empty: it does
        self._printed = PrintedSession()
        self._session = PrintedSession()
        self._begin: TransactionStart | None = None
        self._statements = 0
        self._files: list[Path] = []  # of the transaction
        self._ending = b""
        self._begun = False

    def begin(self, begin: TransactionStart) -> None:
        """Begin a transaction; the last one, if it was not printed, has set nothing."""
        self._forget()
        self._begin, self._statements = begin, 0

    def batch(self, seqno: Seqno, batch: TransactionBatch, xa: str = "") -> bytes:
        """The statements of a batch."""
        del xa
        return b"".join(part for change in batch.changes for part in self._change(seqno, change))

    def header(self, seqno: Seqno, ending: TransactionEnd, xa: str = "") -> bytes:
        """A comment about the transaction, and its beginning."""
        del seqno
        begin = self._begin
        if begin is None:
            raise ValueError("a transaction ends that has not begun")
        found = [] if self._begun else [BEFORE]
        self._begun = True
        about = f"# {begin.start} to {ending.end.offset} server_id={begin.server_id} {time_of(ending.commit_time)}"
        about += f" gtid={begin.gtid}" if begin.gtid else ""
        found.append(f"{escaped(about)}\n".encode())
        if self._session.described != self._printed.described:
            found += self._next_gtid(None)  # a description is no transaction
            found.append(_ended(f"BINLOG '\n{self._session.described}\n'".encode()))
            self._automatic = DESCRIBED
        found += self._next_gtid(begin.gtid if self._gtids else None)
        opening, self._ending = self._bounds(begin, ending, xa)
        return b"".join((*found, *map(_ended, opening)))

    def footer(self) -> bytes:
        """The end of the transaction. From here on the session has its settings."""
        self._printed = replace(self._session, settings=dict(self._session.settings))
        self._files.clear()
        return self._ending

    def end(self) -> bytes:
        """The SQL that follows the last transaction."""
        self._forget()
        return b"".join((*self._next_gtid(None), AFTER)) if self._begun else b""

    def _forget(self) -> None:
        self._session = replace(self._printed, settings=dict(self._printed.settings))
        for file in self._files:
            file.unlink(missing_ok=True)
        self._files.clear()

    def _next_gtid(self, gtid: str | None) -> Iterator[bytes]:
        """Sets the GTID of the next transaction; None: the server gives one if it has GTIDs."""
        if gtid is None:
            if self._automatic:
                yield _ended(self._automatic)
            self._automatic = b""
        elif of_mariadb(gtid):
            domain, server_id, number = gtid.split("-")
            self._automatic = _mariadb_gtid("@@global.gtid_domain_id", "@@global.server_id")
            yield _ended(_mariadb_gtid(domain, server_id))
            # Not in one statement: the number is checked against the domain that the session has before it.
            yield _ended(f"SET @@session.gtid_seq_no = {number}".encode())
        else:
            self._automatic = GTID_NEXT % b"AUTOMATIC"
            yield _ended(GTID_NEXT % gtid.encode())

    def _bounds(self, begin: TransactionStart, ending: TransactionEnd, xa: str) -> tuple[list[bytes], bytes]:
        xid = begin.metadata.get(XID, "").encode()
        if xa == "prepared":
            return [b"XA START " + xid], _ended(b"XA END " + xid) + _ended(b"XA PREPARE " + xid)
        if xa:
            return [f"XA {xa.upper()} ".encode() + xid], b""
        if begin.kind is Kind.DDL and self._statements == 1:
            return [], b""  # a definition commits by itself
        if begin.kind is Kind.DDL and self._gtids and begin.gtid and of_mariadb(begin.gtid):
            raise Unsupported(
                "a MariaDB executes a definition and its rows (CREATE TABLE … SELECT) as two transactions: their GTID "
                "cannot be kept",
                hint="--skip-gtids",
                gtid=begin.gtid,
                at=begin.start,
            )
        return [b"BEGIN"], _ended(b"COMMIT" if ending.outcome is Outcome.COMMIT else b"ROLLBACK")

    def _change(self, seqno: Seqno, change: Rows | Statement) -> Iterator[bytes]:
        if isinstance(change, Rows):
            raise TypeError("rows that are no BINLOG statement: the reader's filter does not say `replays`")
        options = change.options
        if replay.LOAD_BLOCK in options:
            with private.open_to_append(self._file(seqno, options[replay.LOAD_FILE])) as file:
                file.write(base64.b64decode(options[replay.LOAD_BLOCK], validate=True))
            return
        self._statements += 1
        if replay.BINLOG_FORMAT in options:
            self._session.described = options[replay.BINLOG_FORMAT]
            yield _ended(change.sql.encode())
            return
        if options.get("error_code", "0") != "0":
            yield f"# It failed on the source with error {options['error_code']}, so it may fail here.\n".encode()
        if replay.LOAD_NOT_LOGGED in options:
            yield b"# The log does not hold the file that this statement reads.\n"
        text, charset = _text(change)
        yield from self._settings({**DEFAULTS, **options, "character_set_client": charset})
        if change.schema not in {"", self._session.schema} and "suppress_use" not in options:
            yield from _in_utf8(f"USE `{change.schema.replace('`', '``')}`", charset)
            self._session.schema = change.schema
        elif not change.schema and self._session.schema:
            yield b"# The session of this statement had no default schema; here it has the last one.\n"
        yield _ended(text if replay.LOAD_FROM not in options else self._loading(seqno, change, text, charset))
        if SCHEMAS.search(change.sql):
            self._session.schema = None  # the default schema may be gone

    def _settings(self, options: Mapping[str, str]) -> Iterator[bytes]:
        """Sets what differs from the session, and the values of the next statement alone."""
        settings = self._session.settings
        mariadb = options.get(replay.DIALECT) == replay.MARIADB_DIALECT
        for name, version in SETTINGS.items():
            if name not in options or settings.get(name) == options[name]:
                continue
            value = settings[name] = options[name]
            if name == "character_set_client":
                yield _ended(f"/*!\\C {value} */".encode())
            setting, comment = _setting(name, value, mariadb=mariadb)
            text = f"SET @@session.{name} = {setting}"
            # The comment stands outside: the client does not count comments within comments.
            yield _ended(((f"/*!{version} {text}*/" if version else text) + comment).encode())
        for name in ONCE:
            if name in options:
                yield _ended(f"SET @@session.{name} = {options[name]}".encode())
        for name, value in options.items():
            if name.startswith(replay.VARIABLE):
                variable = f"SET @`{name[1:].replace('`', '``')}` = {value}"
                yield from _in_utf8(variable, options["character_set_client"])

    def _loading(self, seqno: Seqno, change: Statement, text: bytes, charset: str) -> bytes:
        """LOAD DATA that reads the file from the folder."""
        options = change.options
        file = self._file(seqno, options[replay.LOAD_FILE])
        private.open_to_append(file).close()  # an empty file has no blocks
        word = WORDS[options[replay.LOAD_DUPLICATES]]
        start, end = (
            _bytes_of(text, charset, int(options[name])) for name in (replay.LOAD_FROM, replay.LOAD_TO)
        )  # fmt: skip
        name = str(file).replace("'", "''")
        return text[:start] + f" LOCAL INFILE '{name}'{word} INTO".encode() + text[end:]

    def _file(self, seqno: Seqno, number: str) -> Path:
        if self._folder is None:
            raise ConfigError(
                "LOAD DATA reads a file that the log holds, and SQL can only name it",
                hint="--load-folder FOLDER: where to write such files",
            )
        file = self._folder.absolute() / f"load-{seqno}-{number}.data"
        if "\\" in str(file):
            raise ConfigError("--load-folder has a backslash in its path", folder=self._folder)
        if file not in self._files:
            file.unlink(missing_ok=True)
            self._files.append(file)
        return file


def _mariadb_gtid(domain: str, server_id: str) -> bytes:
    return f"SET @@session.gtid_domain_id = {domain}, @@session.server_id = {server_id}".encode()


def _text(statement: Statement) -> tuple[bytes, str]:
    """The statement's bytes and their character set."""
    charset = statement.options.get("character_set_client", "")
    if replay.TEXT in statement.options and charset:
        text = base64.b64decode(statement.options[replay.TEXT], validate=True)
        if shown(decode_leniently(text, charset)) == shown(statement.sql):
            return text, charset
    return statement.sql.encode(), charset if charset in {*UTF8, "binary"} else "utf8mb4"


def _in_utf8(text: str, charset: str) -> Iterator[bytes]:
    """A statement that this module adds, in a session whose client's character set may lack its names' characters."""
    if text.isascii() or charset in UTF8:
        yield _ended(text.encode())
        return
    yield _ended(b"SET @@session.character_set_client = utf8mb4")
    yield _ended(text.encode())
    yield _ended(f"SET @@session.character_set_client = {charset}".encode())


def _bytes_of(text: bytes, charset: str, characters: int) -> int:
    """The bytes of a text's first characters, counted as they are shown."""
    size = characters
    while len(shown(decode_leniently(text[:size], charset))) != characters and size <= len(text):
        size += 1
    return size


def _setting(name: str, value: str, *, mariadb: bool) -> tuple[str, str]:
    """A value as SQL, and a comment that says what its number means."""
    if name == "sql_mode" or (name in COLLATION_OPTIONS and value.isdecimal()):
        names = named_option(name, value, mariadb=mariadb)
        return value, "" if names in {"", value} else f" /* {names} */"
    if name in QUOTED:
        return "'" + named_option(name, value, mariadb=mariadb).replace("'", "''") + "'", ""
    return value, ""


def _ended(text: bytes) -> bytes:
    """A statement with its delimiter, which is not part of its text."""
    if DELIMITER not in text:
        return text + b"\n" + DELIMITER + b"\n"
    number = 0
    while (other := b"/*%d*/;" % number) in text:
        number += 1
    return b"delimiter " + other + b"\n" + text + b"\n" + other + b"\ndelimiter " + DELIMITER + b"\n"
