"""Checks that a change logged as a statement can be executed on a target with the same effect as at the source.

A statement says what the source was asked for, not what it did. So one is refused, by its reason, whose effect depends
on more than the tables and on the options that the log has. What no text tells is not refused: rows that a LIMIT
chooses, or the order in which an INSERT … SELECT numbers rows; the source warns of some of these (1592).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from connector.ddl.syntax.tokens import Lexeme, Token, readings, sql_modes
from connector.errors import Unsupported
from connector.log.transaction import statement_options as replay
from connector.log.transaction.batch import Statement

_CHANGES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD", "WITH"})
_REASONS: Final[Mapping[str, str]] = {
    "SELECT": "it calls a stored function, which is not replicated",
    "DO": "it calls a stored function, which is not replicated",
    "CALL": "it calls a stored procedure, which is not replicated",
    "ROLLBACK": "a part of its transaction was rolled back after it was logged, but for tables without transactions",
}
_UNSAFE: Final = frozenset(
    {
        "BENCHMARK", "CONNECTION_ID", "CURRENT_ROLE", "CURRENT_USER", "FOUND_ROWS", "GET_LOCK", "ICU_VERSION",
        "IS_FREE_LOCK", "IS_USED_LOCK", "LOAD_FILE", "MASTER_POS_WAIT", "PASSWORD", "PS_CURRENT_THREAD_ID",
        "PS_THREAD_ID", "RANDOM_BYTES", "RELEASE_ALL_LOCKS", "RELEASE_LOCK", "ROLES_GRAPHML", "ROW_COUNT",
        "SESSION_USER", "SLEEP", "SOURCE_POS_WAIT", "SYSDATE", "SYSTEM_USER", "USER", "UUID", "UUID_SHORT", "VERSION",
        "WAIT_FOR_EXECUTED_GTID_SET",
    }
)  # fmt: skip
"""Functions whose value is that of the server or of the session which executes them."""

_BEFORE_NAMES: Final = frozenset({"INTO", "INSERT", "REPLACE", "IGNORE", "DELAYED", "LOW_PRIORITY", "HIGH_PRIORITY"})
"""What the name of a table can follow that columns in parentheses come after."""

_NEEDED: Final = ("sql_mode", "timestamp", replay.CHARSET, "collation_connection", "foreign_key_checks")
"""Options that the log of every server since 5.0 has."""

SET_OPTIONS: Final = frozenset(
    {
        *_NEEDED, "auto_increment_increment", "auto_increment_offset", "collation_database", "collation_server",
        "default_collation_for_utf8mb4", "explicit_defaults_for_timestamp", "lc_time_names", "sql_auto_is_null",
        "time_zone", "unique_checks", *replay.OF_NEXT,
    }
)  # fmt: skip
"""Options that a target sets."""

_WITHOUT_EFFECT: Final = frozenset(
    {
        "autocommit", "catalog", "default_table_encryption", "error_code", "sql_require_primary_key", "suppress_use",
        replay.CHARSET_ID, replay.LOAD_DUPLICATES, replay.LOAD_FILE, replay.LOAD_FROM, replay.LOAD_TO,
        replay.SYSTEM_ZONE, replay.TEXT,
    }
)  # fmt: skip


def not_executed(statement: Statement, product: str) -> Unsupported:
    """The refusal of every statement, by a target that executes none.

    Args:
        statement: the statement.
        product: the target's.
    """
    return Unsupported(
        f"a change was logged as a statement, which a {product} target does not execute", sql=statement.sql[:200]
    )


def check_statement(statement: Statement) -> None:
    """Check that a target can execute a statement with the same effect as at the source.

    Args:
        statement: as the log has it; no block of a file.

    Raises:
        Unsupported: it cannot, or that is not known.
    """
    options = statement.options
    for reason in (*_of_options(options), *_of_text(statement)):
        raise Unsupported(f"a change that was logged as a statement cannot be executed again: {reason}")


def names_database(statement: Statement) -> bool:
    """True if a statement may depend on the name of its default database."""
    for tokens in readings(statement.sql, statement.options.get("sql_mode", ""), whole=False):
        words = [token.text.upper() for token in tokens]
        if any(word in ("DATABASE", "SCHEMA") and after == "(" for word, after in pairwise(words)):
            return True
    return False


def _of_options(options: Mapping[str, str]) -> Sequence[str]:
    """The reasons that a statement's options give."""
    found: list[str] = []
    if replay.DIALECT in options:
        found.append("the source is a MariaDB")
    if options.get("error_code", "0") != "0":
        found.append(f"it ended at the source with error {options['error_code']}, after some of its changes")
    if replay.LOAD_NOT_LOGGED in options:
        found.append("the log does not have the file that it reads")
    if replay.LOAD_FROM in options and "NO_BACKSLASH_ESCAPES" in sql_modes(options.get("sql_mode", "")):
        found.append("MySQL logs LOAD DATA with backslashes, which its sql_mode NO_BACKSLASH_ESCAPES does not read")
    if missing := [name for name in _NEEDED if name not in options]:
        found.append(f"the log does not have {', '.join(missing)} of its session")
    known = SET_OPTIONS | _WITHOUT_EFFECT | {replay.DIALECT, replay.PSEUDO_THREAD_ID, replay.LOAD_NOT_LOGGED}
    if unknown := [name for name in options if not name.startswith(replay.VARIABLE) and name not in known]:
        found.append(f"its session has options of unknown effect: {', '.join(unknown)}")
    return found


def _of_text(statement: Statement) -> Sequence[str]:
    """The reasons that a statement's text gives, in each of its readings."""
    found: list[str] = []
    for tokens in readings(statement.sql, statement.options.get("sql_mode", ""), whole=False):
        if any(token.kind is Lexeme.UNREAD for token in tokens):
            found.append("its text is not understood")
        first = next((token.text.upper() for token in tokens if token.kind is Lexeme.WORD), "")
        if replay.PSEUDO_THREAD_ID in statement.options and first != "DELETE":  # MySQL marks a DELETE with a join, too
            found.append("it is about a temporary table, or the number of its session")
        if first not in _CHANGES:
            found.append(_REASONS.get(first, "it is a definition among changes"))
        if any(token.kind is Lexeme.SIGN and token.text == ";" for token in tokens[:-2]):  # END is the last
            found.append("its text has several statements")
        found += (f"{name} has another value on the target" for name in _unsafe(tokens))
    return found


def _unsafe(tokens: Sequence[Token]) -> Sequence[str]:
    """The functions and variables of a statement whose value is that of the server or session."""
    found: list[str] = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        word = token.text.upper()
        if token.kind is Lexeme.SIGN and before is not None and before.text == token.text == "@":
            found.append(f"the variable @@{'' if after is None else after.text}")
        if token.kind is not Lexeme.WORD or word not in _UNSAFE or before is None:
            continue
        called = after is not None and after.text == "(" and after.kind is Lexeme.SIGN
        is_name = before.text == "." or before.text.upper() in (*_BEFORE_NAMES, "TABLE")
        if (called or word == "CURRENT_USER") and not is_name:
            found.append(f"{word}()")
    return found
