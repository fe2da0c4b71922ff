"""The options of a statement: the session values with which it was executed.

To replay a statement, set its options in their order, then execute its text.

- Options of the session (`sql_mode`, `time_zone` …) come first. A missing one had its default: MySQL logs
  `auto_increment_*`, `lc_time_names` and `time_zone` only where they differ from the default or were used.
- A name that begins with `##` is no variable: `##character_set_client` is the collation's id of `character_set_client`.
- A user variable is named `@name`. Its value is an expression of exactly that type, character set and collation.
- A file that LOAD DATA reads comes in blocks before the statement. Each block is a statement whose text is a comment.
- Where the text, outside of comments, has bytes that `character_set_client` does not define, each such byte is shown as
  `\\xe9`; the statement to execute is `text_base64`.
- `##schema_character_set` is no value of the session either. CREATE TABLE has it if its text names no character set for
  the table, which then has the default of its schema: no log of a server has that default.
- `##table_existed` is none either: whether CREATE TABLE IF NOT EXISTS found a table or view ("1") and did nothing, or
  made a table ("0"). A server logs both alike. The option is missing where the producer did not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LAST_INSERT_ID: Final = "last_insert_id"
INSERT_ID: Final = "insert_id"
RAND_SEED1: Final = "rand_seed1"
RAND_SEED2: Final = "rand_seed2"
CHARSET: Final = "character_set_client"  # of the text, by its name
CHARSET_ID: Final = "##character_set_client"
SCHEMA_CHARSET: Final = "##schema_character_set"  # the default of the schema in which CREATE TABLE makes its table
TABLE_EXISTED: Final = "##table_existed"  # "1": CREATE TABLE IF NOT EXISTS had no effect; "0": it made the table
PSEUDO_THREAD_ID: Final = "pseudo_thread_id"
VARIABLE: Final = "@"
LOAD_FILE: Final = "load_data_file"  # the file of a block, and of the statement that reads it
LOAD_BLOCK: Final = "load_data_block"  # the block's bytes in base64
LOAD_FROM: Final = "load_data_from"  # the first of the text's characters that name the file
LOAD_TO: Final = "load_data_to"
LOAD_DUPLICATES: Final = "load_data_duplicates"  # error | ignore | replace
LOAD_NOT_LOGGED: Final = "load_data_not_logged"  # "1": the log does not hold the file (MySQL 3.23, and NEW_LOAD)
BINLOG_FORMAT: Final = "binlog_format_description"  # of a BINLOG statement: the one to execute before it, in base64
TEXT: Final = "text_base64"  # the text's bytes, where its character set does not define some of them
DIALECT: Final = "dialect"  # the dialect of a text, if it is not MySQL's
SYSTEM_ZONE: Final = "system_time_zone"  # the source's, of a change whose time_zone is SYSTEM
MARIADB_DIALECT: Final = "mariadb"

# Statements that mark a place in a transaction and change nothing, as MySQL logs them.
SAVEPOINTS: Final = ("SAVEPOINT ", "RELEASE SAVEPOINT ")

OF_NEXT: Final = frozenset({LAST_INSERT_ID, INSERT_ID, RAND_SEED1, RAND_SEED2})
"""Values that the next statement alone has."""

_VALUES: Final = OF_NEXT | {LOAD_BLOCK}


def values(options: Mapping[str, str]) -> str:
    """The options that change what the statement does, joined: a digest covers them beside the text."""
    return "".join(value for name, value in options.items() if name in _VALUES or name.startswith(VARIABLE))
