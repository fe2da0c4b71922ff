"""Executes changes that were logged as statements, in the transaction of the commit (`target.statements`).

A statement's text does not tell for certain which tables it reads and changes: triggers, foreign keys, views and
functions add some. So the server is asked: a transaction holds a metadata lock on each of them until its end. If it has
one of a table that the applier does not keep equal to the source, the statement is refused, and with the session all of
its changes are rolled back. What cannot be rolled back is a change of a table without transactions; so a server with
such tables is refused at the claim.
"""

from __future__ import annotations

import base64
import tempfile
from itertools import pairwise
from typing import BinaryIO, Final, cast

import pymysql

from connector.ddl.syntax.tokens import Lexeme, readings
from connector.errors import PreflightError, TargetDiffers, Unsupported
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableName
from connector.targets.logged_statements import check_statement, names_database
from connector.targets.mysql.server.catalog_checks import triggers_of
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.errors import DENIED, NO_LOCAL_FILES, code_of
from connector.targets.mysql.sql.names import MySqlNames
from connector.targets.mysql.statement_session import settings_of, text_of, variables_of
from connector.targets.target_schema import TargetSchema

_LOCKS: Final = (
    "SELECT object_type, object_schema, object_name FROM performance_schema.metadata_locks WHERE owner_thread_id = "
    "ps_current_thread_id() AND object_type IN ('TABLE', 'FUNCTION', 'PROCEDURE') AND NOT (object_schema = "
    "'performance_schema' AND object_name = 'metadata_locks')"
)
_OF_SERVER: Final = "'mysql', 'sys', 'performance_schema', 'information_schema'"
_WITHOUT_TRANSACTIONS: Final = (
    "SELECT concat_ws('.', table_schema, table_name) FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
    f"AND engine <> 'InnoDB' AND table_schema NOT IN ({_OF_SERVER}) ORDER BY 1 LIMIT 5"
)
_IN_MEMORY: Final = 1 << 20  # bytes of a file; more of it are in a temporary file
_CHECKED: Final = ("TABLE", "thl", "thl_position")
"""The lock that every transaction of the applier has, from its first statement on (`OpenTransaction`)."""

_WORDS: Final = {"error": "", "ignore": " IGNORE", "replace": " REPLACE"}

Lock = tuple[str, str, str]


class StatementExecutor:
    """Executes statements of one claimed target.

    Args:
        session: the applier's.
    """

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._names = MySqlNames(folds=session.folds)
        self._files: dict[str, BinaryIO] = {}
        self._fires: dict[TableName, list[str]] = {}  # the triggers of tables

    def check_server(self) -> None:
        """Check that the server tells which tables a statement is about, and can roll back what it does.

        Raises:
            PreflightError: it does not.
            Unsupported: it is a MariaDB, or has tables without transactions.
        """
        if self._session.mariadb:
            raise Unsupported("target.statements: execute is for a MySQL target; this server is a MariaDB")
        needed = "target.statements: execute"
        if self._session.rows("SELECT @@performance_schema") != [(1,)]:
            raise PreflightError(
                f"{needed} asks the server which tables a statement is about, and performance_schema is OFF",
                hint="performance_schema=ON in the option file of the target's server, and a restart",
            )
        try:
            self._session.query("DO (SELECT count(*) FROM (SELECT 1 FROM performance_schema.metadata_locks LIMIT 1) l)")
            enabled = self._session.rows(
                "SELECT enabled FROM performance_schema.setup_instruments WHERE name = 'wait/lock/metadata/sql/mdl'"
            )
        except pymysql.MySQLError as error:
            if code_of(error) not in DENIED:
                raise
            raise PreflightError(
                f"{needed} asks the server which tables a statement is about, and the user may not read that",
                hint="GRANT SELECT ON performance_schema.* TO the user in target.url",
            ) from error
        if enabled != [("YES",)]:
            raise PreflightError(
                f"{needed} asks the server which tables a statement is about, and it does not note metadata locks",
                hint="UPDATE performance_schema.setup_instruments SET enabled = 'YES' WHERE name = "
                "'wait/lock/metadata/sql/mdl'; and in the option file "
                "performance-schema-instrument='wait/lock/metadata/sql/mdl=ON'",
            )
        if plain := [str(name) for (name,) in self._session.rows(_WITHOUT_TRANSACTIONS)]:
            raise Unsupported(
                f"{needed}: a statement could change tables without transactions, which cannot be rolled back: "
                f"{', '.join(plain)}",
                hint="ALTER TABLE … ENGINE = InnoDB, or drop them, or use a server of its own for the target",
            )

    def add_block(self, statement: Statement) -> None:
        """Add a block of a file that a later statement reads."""
        name = statement.options[replay.LOAD_FILE]
        if name not in self._files:
            self._files[name] = _new_file()
        self._files[name].write(base64.b64decode(statement.options[replay.LOAD_BLOCK], validate=True))

    def execute(self, statement: Statement, schema: TargetSchema) -> None:
        """Execute a statement in the open transaction.

        Args:
            statement: the statement.
            schema: the target's tables.

        Raises:
            Unsupported: it cannot be known to have the same effect as at the source.
            TargetDiffers: it has ended the transaction.
            pymysql.MySQLError: the server refuses it.
        """
        check_statement(statement)
        session, reads = self._session, replay.LOAD_FROM in statement.options
        text = self._loading(statement) if reads else text_of(statement)
        settings = settings_of(statement, session)
        lost = self._lost_locks()  # before the locks: it takes one itself
        before = set(self._locks())
        if _CHECKED not in before:
            raise PreflightError(
                "the target's server does not note the metadata locks of the session, by which a statement's tables "
                "are known",
                hint="performance_schema_max_metadata_locks = -1, performance_schema_max_thread_instances = -1 and "
                "performance-schema-instrument='wait/lock/metadata/sql/mdl=ON' in its option file, and a restart",
            )
        if variables := variables_of(statement):
            session.query(f"SET {', '.join(variables)}")
        if not session.enter(settings, statement.schema) and names_database(statement):
            raise Unsupported(
                f"a statement with DATABASE() ran in the database {statement.schema or '(none)'}, and the target does "
                "not execute it there"
            )
        try:
            if reads:
                self._load(text, statement)
            else:
                session.query(text)
        except pymysql.MySQLError as error:
            if code_of(error) in NO_LOCAL_FILES:
                raise PreflightError(
                    "the target's server refuses LOAD DATA LOCAL", hint="SET GLOBAL local_infile = ON on the target"
                ) from error
            raise
        if not session.in_transaction:
            raise TargetDiffers("a statement has ended the transaction that it was executed in")
        session.leave([one for one in settings if one.partition(" ")[0] not in replay.OF_NEXT])
        self._check_tables(set(self._locks()), before, schema)
        if self._lost_locks() != lost:
            raise PreflightError(
                "the target's server has no room to note all metadata locks, by which a statement's tables are known",
                hint="performance_schema_max_metadata_locks = -1 in its option file, and a restart",
            )

    def _loading(self, statement: Statement) -> bytes:
        """The text of LOAD DATA that reads the applier's file; its LOCAL ignores duplicates unless it has REPLACE."""
        options, sql = statement.options, statement.sql
        word = _WORDS[options[replay.LOAD_DUPLICATES]]
        named = f" LOCAL INFILE 'thl'{word} INTO"
        return text_of(statement, sql[: int(options[replay.LOAD_FROM])] + named + sql[int(options[replay.LOAD_TO]) :])

    def _load(self, text: bytes, statement: Statement) -> None:
        options = statement.options
        with self._files.pop(options[replay.LOAD_FILE], None) or _new_file() as file:  # an empty file has no block
            if not _names_charset(statement) and not _is_ascii(file):
                raise Unsupported(
                    "LOAD DATA without CHARACTER SET reads a file in the character set of the source's database, which "
                    "the log does not have",
                    hint="name it in the statement: LOAD DATA … CHARACTER SET utf8mb4 …",
                )
            file.seek(0)
            loaded = self._session.load(text, file)
        if loaded is None:
            raise TargetDiffers("LOAD DATA was executed without the counts of its rows")
        if loaded.skipped and options[replay.LOAD_DUPLICATES] == "error":
            raise TargetDiffers(
                f"LOAD DATA left out {loaded.skipped} rows whose keys the target has, and the source had not"
            )

    def _locks(self) -> list[Lock]:
        return [(str(kind), str(schema), str(name)) for kind, schema, name in self._session.rows(_LOCKS)]

    def _lost_locks(self) -> int:
        """The number of metadata locks that the server could not note."""
        ((_, number),) = self._session.rows("SHOW GLOBAL STATUS LIKE 'Performance_schema_metadata_lock_lost'")
        return int(number)

    def _check_tables(self, locks: set[Lock], before: set[Lock], schema: TargetSchema) -> None:
        """Check that the applier keeps all tables that a statement has locked equal to the source.

        Args:
            locks: those of the transaction.
            before: those before the statement: what the applier itself has read; and its tables, where the statement
                may be about them, too.
            schema: the target's tables.

        Raises:
            Unsupported: it does not.
        """
        known = {self._names.table(table.name): table.name for table in schema}
        for lock in sorted(locks):
            kind, *parts = lock
            shown = ".".join(parts)
            if lock in before and tuple(parts) not in known:
                continue
            if kind != "TABLE":
                raise Unsupported(f"a statement calls {shown}, a stored {kind.lower()}, which is not replicated")
            name = known.get(tuple(parts))
            if name is None:
                raise Unsupported(
                    f"a statement is about {shown}, which is no table that the applier has created: a view, a table "
                    "that source.filters leave out, or another's"
                )
            if name in schema.excluded:
                raise Unsupported(
                    f"a statement is about {shown}, which the target goes on without", hint=f"thl load {name} first"
                )
            if name in schema.loading:
                raise Unsupported(
                    f"a statement is about {shown}, which is being loaded: its rows are those of several moments",
                    hint=f"thl apply --skip-seqno, then thl load {name} and the other tables that it changes; during a "
                    "load the source should log rows: SET GLOBAL binlog_format = 'ROW'",
                )

    def check_rows(self, name: TableName) -> None:
        """Check that rows of a table can be applied: its triggers would act on them, as they have at the source.

        Raises:
            Unsupported: it has triggers.
        """
        if name not in self._fires:
            self._fires[name] = triggers_of(self._session, TableName(*self._names.table(name)))
        if triggers := self._fires[name]:
            raise Unsupported(
                f"rows of a table were logged whose triggers would act on them again: {', '.join(triggers)}",
                hint="DROP TRIGGER on the target, and for later statements SET binlog_format = 'ROW' on the source",
                table=name,
            )

    def definitions_changed(self) -> None:
        """Forget what is known of tables."""
        self._fires.clear()

    def forget(self) -> None:
        """Forget the files of statements that do not come."""
        for file in self._files.values():
            file.close()
        self._files.clear()


def _new_file() -> BinaryIO:
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(_IN_MEMORY))


def _names_charset(statement: Statement) -> bool:
    """True if LOAD DATA names the character set of its file."""
    tokens = readings(statement.sql, statement.options["sql_mode"], whole=False)[0]
    words = [token.text.upper() if token.kind is Lexeme.WORD else "" for token in tokens]
    return "CHARSET" in words or ("CHARACTER", "SET") in pairwise(words)


def _is_ascii(file: BinaryIO) -> bool:
    file.seek(0)
    while block := file.read(1 << 16):
        if not block.isascii():
            return False
    return True
