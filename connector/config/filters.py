"""The section `source.filters`: the tables, rows and columns that are captured, and how they are changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field, SecretStr, SerializerFunctionWrapHandler, model_serializer, model_validator

from connector.config.section import Section
from connector.patterns import glob

MIN_HASH_KEY: Final = 16  # characters
Action = Literal["insert", "update", "delete", "ddl"]
# MySQL's names have at most 64 characters and no space at the end.
ExactColumn = Annotated[str, Field(pattern=r"^[^*?\x00]+$", max_length=64)]
NewColumn = Annotated[str, Field(pattern=r"^[^\x00]*[^\x00\s]$", max_length=64)]


class Mask(Section):
    """The value that replaces a column's. Set exactly one field."""

    fixed: str | int | float | None = Field(
        None, description="The same value in every row; `null`: NULL. Text for a text column, a number for a number."
    )
    hash: Annotated[int, Field(ge=16, le=64)] | None = Field(
        None,
        description="That many hexadecimal digits of HMAC-SHA256 with `source.filters.hash_key`: equal texts give "
        "equal hashes. For text columns long enough to hold them.",
    )
    truncate: Annotated[int, Field(ge=0)] | None = Field(
        None, description="That many characters from the start of a text."
    )

    @model_validator(mode="after")
    def _sets_one_field(self) -> Mask:
        given = self.model_fields_set
        if len(given) != 1 or (given != {"fixed"} and self.hash is None and self.truncate is None):
            raise ValueError("set one of fixed, hash and truncate")
        return self

    @property
    def gives_null(self) -> bool:
        """True if the value is NULL in every row."""
        return self.hash is None and self.truncate is None and self.fixed is None

    @model_serializer(mode="wrap")
    def _keeps_null(self, serialize: SerializerFunctionWrapHandler) -> dict[str, object]:
        """Keep `fixed: null`, which differs from no `fixed`, where defaults are left out."""
        kept: dict[str, object] = serialize(self)
        return kept | {"fixed": self.fixed} if "fixed" in self.model_fields_set else kept


class TableRule(Section):
    """A rule for some tables. The first rule that matches a table applies to it, and no other."""

    match: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="Patterns of the tables: `schema.table` or `schema`, with `*` and `?`."
    )
    actions: tuple[Action, ...] = Field(
        ("insert", "update", "delete", "ddl"),
        description="Changes that are published; `ddl`: table definitions. TRUNCATE counts as delete, the initial load "
        "as insert. A transaction without any published change is no event.",
    )
    drop: tuple[str, ...] = Field(
        (), description="Patterns of columns removed from rows and definitions. Key columns cannot be dropped."
    )
    mask: dict[str, Mask] = Field(
        default_factory=dict,
        description="Column pattern → mask for its values. Key columns can be hashed only. Column defaults in "
        "definitions are not masked.",
    )
    zero_dates: tuple[str, ...] = Field(
        (),
        description="Patterns of columns in which the date 0000-00-00 becomes NULL, and which "
        "definitions allow to be NULL; key columns keep it.",
    )
    rename: dict[ExactColumn, NewColumn] = Field(
        default_factory=dict,
        description="Column → its published name, in rows and definitions, key columns included. No `*` and `?`. The "
        "other fields of a rule use the source's names.",
    )
    publish_as: str = Field(
        "",
        pattern=r"^$|^[^.]+(\.[^.]+)?$",
        description="Published name of the tables: `schema.table` if match is one table without `*` and `?`; `schema` "
        "if match is whole schemas without `*` and `?`.",
    )

    @model_validator(mode="after")
    def _publishes_one_name(self) -> TableRule:
        dots = self.publish_as.count(".")
        names = [pattern for pattern in self.match if pattern.count(".") == dots and not set("*?") & set(pattern)]
        if self.publish_as and (len(names) != len(self.match) or (dots and len(names) > 1)):
            raise ValueError("publish_as: match must be one table, or whole schemas, without `*` and `?`")
        return self

    @model_validator(mode="after")
    def _renames_to_distinct_columns(self) -> TableRule:
        for names in (list(self.rename), list(self.rename.values())):
            folded = [name.lower() for name in names]
            if twice := [name for name, low in zip(names, folded, strict=True) if folded.count(low) > 1]:
                raise ValueError(f"rename: {' and '.join(twice)} is the same column name, given twice")
        if dropped := [name for name in self.rename if finds_column(self.drop, name)]:
            raise ValueError(f"rename: {', '.join(dropped)} is dropped by the same rule")
        return self

    @property
    def transforms_rows(self) -> bool:
        """True if the rule changes the content of rows."""
        return bool(self.drop or self.mask or self.zero_dates)


def finds_column(patterns: tuple[str, ...], column: str) -> bool:
    """Match a column against a rule's patterns. Column names have no case."""
    return any(glob(pattern.lower()).fullmatch(column.lower()) for pattern in patterns)


class Filters(Section):
    """The tables that are captured. Patterns are `schema.table` or `schema`, with `*` and `?`."""

    do: tuple[str, ...] = Field(
        (),
        description="Capture only tables that match one of these patterns; empty: all. Tables of `mysql`, `sys`, "
        "`information_schema` and `performance_schema` are never captured. A captured table that is renamed to an "
        "uncaptured one is dropped in the log; a rename the other way stops the producer, as the log lacks its rows.",
    )
    ignore: tuple[str, ...] = Field(
        (), description="Do not capture tables that match one of these patterns; takes precedence over do."
    )
    tables: tuple[TableRule, ...] = Field((), description="Rules that filter, mask or rename parts of some tables.")
    unknown_ddl: tuple[str, ...] = Field(
        (),
        description="Patterns (`*`, `?`, any case) of whole DDL statements that are skipped if not understood: "
        "`DROP GHOST *`. Any other DDL that is not understood stops the producer if some tables are not captured "
        "(the tables it changes are unknown), and is published if all are.",
    )
    hash_key: SecretStr = Field(
        SecretStr(""), description="Key of masks that hash: at least 16 characters, best from the environment."
    )
    hash_key_file: Path | None = Field(None, description="File that holds hash_key.")

    @model_validator(mode="after")
    def _has_key(self) -> Filters:
        hashes = any(mask.hash is not None for rule in self.tables for mask in rule.mask.values())
        if self.hash_key.get_secret_value() and self.hash_key_file:
            raise ValueError("hash_key and hash_key_file: set only one of them")
        if hashes and not self.hash_key_file and len(self.hash_key.get_secret_value()) < MIN_HASH_KEY:
            raise ValueError(f"a mask that hashes needs a hash_key of at least {MIN_HASH_KEY} characters")
        return self
