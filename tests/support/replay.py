"""Executes the output of `thl binlog` on a MySQL: statements with their options, rows by their images."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from connector.log.transaction import statement_options as replay

# What a session takes as a number, or as a word that needs no quotes.
PLAIN = frozenset(
    {
        "auto_increment_increment", "auto_increment_offset", "collation_connection",
        "collation_server", "default_collation_for_utf8mb4", "explicit_defaults_for_timestamp", "foreign_key_checks",
        "lc_time_names", "sql_auto_is_null", "sql_mode", "timestamp", "unique_checks", "sql_require_primary_key",
        replay.INSERT_ID, replay.LAST_INSERT_ID, replay.PSEUDO_THREAD_ID, replay.RAND_SEED1, replay.RAND_SEED2,
    }
)  # fmt: skip
QUOTED = frozenset({"character_set_client", "time_zone"})
# Facts about the statement, and those that the transaction's own BEGIN and COMMIT express.
TOLD = frozenset(
    {
        "autocommit",
        "catalog",
        "collation_database",
        "default_table_encryption",
        "error_code",
        "invoker",
        "suppress_use",
        replay.CHARSET_ID,
    }
)
# What a statement does not tell it had by default.
DEFAULTS = "SET auto_increment_increment = 1, auto_increment_offset = 1, lc_time_names = 0, time_zone = DEFAULT"
CODECS = {"latin1": "cp1252"}


class Replay:
    """A session that replays.

    Args:
        connection: pymysql's, which may read local files.
        schema: stands for the transactions' own.
        folder: for the files of LOAD DATA.
    """

    def __init__(self, connection: Any, schema: str, folder: Path) -> None:
        self._connection = connection
        self._schema = schema
        self._folder = folder
        self._encoding = "utf-8"

    def transactions(self, found: Iterable[dict[str, Any]]) -> None:
        for transaction in found:
            self._do(f"USE `{self._schema}`")
            if transaction["kind"] == "transaction":
                self._do("BEGIN")
            for change in transaction["changes"]:
                if "sql" in change:
                    self._statement(change)
                else:
                    self._rows(change)
            self._do(transaction.get("outcome", "commit"))

    def _statement(self, change: dict[str, Any]) -> None:
        options = change["options"]
        if replay.LOAD_BLOCK in options:
            with (self._folder / options[replay.LOAD_FILE]).open("ab") as file:
                file.write(base64.b64decode(options[replay.LOAD_BLOCK], validate=True))
            return
        self._do(DEFAULTS)
        for name, value in options.items():
            if name.startswith(replay.VARIABLE):
                self._do(f"SET @`{name[1:].replace('`', '``')}` = {value}")
            elif name in PLAIN:
                self._do(f"SET {name} = {value}")
            elif name in QUOTED:
                self._do(f"SET {name} = '{value}'")
            else:
                assert name in TOLD or name == replay.TEXT or name.startswith("load_data_"), name
        self._encoding = CODECS.get(options.get("character_set_client", ""), "utf-8")
        sql = change["sql"]
        if replay.LOAD_FROM in options:
            word = {"error": "", "ignore": " IGNORE", "replace": " REPLACE"}[options[replay.LOAD_DUPLICATES]]
            name = f" LOCAL INFILE '{self._folder / options[replay.LOAD_FILE]}'{word} INTO"
            sql = sql[: int(options[replay.LOAD_FROM])] + name + sql[int(options[replay.LOAD_TO]) :]
        if replay.TEXT in options:
            with self._connection.cursor():
                self._connection.query(base64.b64decode(options[replay.TEXT], validate=True))
            return
        self._do(sql)

    def _rows(self, change: dict[str, Any]) -> None:
        """Executes changes of rows from images as MySQL prints them; a row is found by its first column."""
        table = change["table"]
        with self._connection.cursor() as cursor:
            cursor.execute(
                "SET timestamp = DEFAULT, time_zone = '+00:00', sql_mode = '', character_set_client = utf8mb4"
            )
            for row in change["rows"]:
                if row["before"] is not None:
                    name, value = next(iter(row["before"].items()))
                    assert cursor.execute(f"DELETE FROM `{table}` WHERE `{name}` = %s", [value]) == 1
                if row["after"] is not None:
                    names = ", ".join(f"`{name}`" for name in row["after"])
                    marks = ", ".join(["%s"] * len(row["after"]))
                    sql = f"INSERT INTO `{table}` ({names}) VALUES ({marks})"
                    cursor.execute(sql, list(row["after"].values()))

    def _do(self, sql: str) -> None:
        with self._connection.cursor() as cursor:
            self._connection.query(sql.encode(self._encoding))
            del cursor
