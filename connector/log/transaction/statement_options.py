"""The options of a statement that are values it was executed with: without them it does something else.

A statement is replayed by setting its options in their order, then executing its text. Those of the session
(`sql_mode`, `time_zone` …) come first, and one that is missing had its default: MySQL logs `auto_increment_*`,
`lc_time_names` and `time_zone` only where they differ from it or were used. A user variable is called `@name`, its
value an expression that gives exactly that type, character set and collation. A file that LOAD DATA reads comes before
the statement in blocks, each a statement of its own whose text is a comment. A text that holds bytes without meaning in
`character_set_client`, other than in comments, is shown with `\\xe9` for such a byte; `text_base64` is what to execute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

LAST_INSERT_ID: Final = "last_insert_id"
INSERT_ID: Final = "insert_id"
RAND_SEED1: Final = "rand_seed1"
RAND_SEED2: Final = "rand_seed2"
PSEUDO_THREAD_ID: Final = "pseudo_thread_id"
VARIABLE: Final = "@"
LOAD_FILE: Final = "load_data_file"  # which file: of a block, and of the statement that reads it
LOAD_BLOCK: Final = "load_data_block"  # the block's bytes in base64
LOAD_FROM: Final = "load_data_from"  # the characters of the text that name the file
LOAD_TO: Final = "load_data_to"
LOAD_DUPLICATES: Final = "load_data_duplicates"  # error | ignore | replace
TEXT: Final = "text_base64"  # its text's bytes, where some mean nothing in its character set and are shown as \xe9
DIALECT: Final = "dialect"  # of a definition: whose DDL it is, where that is not MySQL's
MARIADB_DIALECT: Final = "mariadb"

# Statements that mark a place in a transaction and change nothing, as MySQL logs them.
SAVEPOINTS: Final = ("SAVEPOINT ", "RELEASE SAVEPOINT ")

_VALUES: Final = frozenset({LAST_INSERT_ID, INSERT_ID, RAND_SEED1, RAND_SEED2, LOAD_BLOCK})


def values(options: Mapping[str, str]) -> str:
    """Those values, joined: what a digest of a statement has to cover beside its text."""
    return "".join(value for name, value in options.items() if name in _VALUES or name.startswith(VARIABLE))
