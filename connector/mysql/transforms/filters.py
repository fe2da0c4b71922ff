"""Filters of the configuration: captured schemas and tables, ignored servers, text that may be invalid.

Tables are named by the patterns of `connector.patterns`; the pattern of a column has its name after the last dot.
Ignore wins over do; no do pattern means all. MySQL's own schemas are not captured, except when a file is only
inspected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from connector.config.filters import Filters, TableRule
from connector.config.source import LARGEST_EVENT, Source
from connector.ddl.affected_tables import AffectedTables, affected_tables
from connector.ddl.captured import RULES_HINT, Captured, CaptureLevel
from connector.ddl.drop_columns import DropContext, drop_columns
from connector.ddl.nullable_columns import allow_nulls
from connector.ddl.plain_indexes import plain_indexes
from connector.ddl.rename_columns import RenameContext, rename_columns
from connector.ddl.rename_tables import rename_tables
from connector.errors import ConfigError, PreflightError, Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import Finished
from connector.mysql.transforms.table_rules import (
    RuledColumns,
    called,
    hash_key,
    hash_key_digest,
    idle,
    published_name,
    repeats_values,
    row_transform,
)
from connector.mysql.values.row_transform import RowTransform
from connector.patterns import TablePattern, glob, table_pattern

SYSTEM_SCHEMAS = frozenset({"mysql", "sys", "performance_schema", "information_schema"})
EVERYTHING = frozenset({"insert", "update", "delete", "ddl"})
TABLES_WITH_ROWS = "TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED')"
"""Condition of information_schema for tables with rows, also MariaDB's versioned ones. Of a sequence the log has every
value."""
UNRECORDED = {"hash_key", "hash_key_file", "unknown_ddl"}
"""Fields of source.filters that are not recorded. The key is a secret: its digest is recorded. A definition that is not
understood is either left out or ends the producer, so `unknown_ddl` changes no event."""
CASCADES = "unlogged_cascades"
"""Recorded where rows may change without a record in the binary log."""
UNKNOWN_HINT = (
    "`thl produce`: where it is about no captured table, or the target gets by hand what it did to one, "
    "source.filters.unknown_ddl leaves out texts like it. `thl binlog`: without --do and --ignore it is shown"
)


class Filter:
    """Decides what is captured; a `CaptureFilter`.

    `fold` maps names that the server treats as equal to one name.

    Args:
        filters: the configured patterns.
        lower_case_table_names: the server's: with 0 names are case-sensitive, with 1 and 2 not.
        keep_invalid_text: patterns of columns, `schema.table.column`.
        keeps_statements: true if changes logged as statements are published as statements.
        records: a record store completes rows.
        rows_query_bytes: bytes to keep of a statement's text beside its rows; 0: none.
        largest_event: the most bytes of an expanded compressed event.
        ignored_servers: server ids whose transactions are not captured.
        unlogged_options: options of definitions that a MySQL before 8.0 does not log, with its values.
        system_time_zone: the server's, which changes logged as statements then name; "": they do not.
        system_schemas: true if patterns may match MySQL's own schemas.
        replays: true if what is read is to be executed again: rows become BINLOG statements, texts keep their bytes.
        shows: true if what is read is only shown.
        virtual_tables: tables of a MariaDB with a VIRTUAL column, whose images must be whole; None: not known, so all
            images of a MariaDB must be.
        unique_tables: tables of a MariaDB with a unique index besides the primary key, by which a REPLACE finds rows.

    Raises:
        ConfigError: a pattern is empty or has an empty part.
    """

    def __init__(
        self,
        filters: Filters,
        lower_case_table_names: int = 0,
        keep_invalid_text: Sequence[str] = (),
        *,
        keeps_statements: bool = False,
        records: bool = False,
        rows_query_bytes: int = 0,
        largest_event: int = LARGEST_EVENT,
        ignored_servers: frozenset[int] = frozenset(),
        unlogged_options: Mapping[str, str] = MappingProxyType({}),
        system_time_zone: str = "",
        system_schemas: bool = False,
        replays: bool = False,
        shows: bool = False,
        virtual_tables: Collection[tuple[str, str]] | None = frozenset(),
        unique_tables: Collection[tuple[str, str]] = frozenset(),
    ) -> None:
        self._left_out = frozenset() if system_schemas else SYSTEM_SCHEMAS
        self.keeps_statements = keeps_statements
        self._records = records
        self.replays = replays
        self.shows = shows
        self.virtual_tables = virtual_tables
        self.unique_tables = unique_tables
        self.rows_query_bytes = rows_query_bytes
        self.largest_event = largest_event
        self.ignored_servers = ignored_servers
        self.unlogged_options = unlogged_options
        self.system_time_zone = system_time_zone
        self.always_read: Finished | None = None
        self.fold: Callable[[str], str] = str.lower if lower_case_table_names else str
        self._do = tuple(self._compile(pattern, "filters.do") for pattern in filters.do)
        self._ignore = tuple(self._compile(pattern, "filters.ignore") for pattern in filters.ignore)
        self._rules = tuple(
            (tuple(self._compile(pattern, f"filters.tables.{number}.match") for pattern in rule.match), rule)
            for number, rule in enumerate(filters.tables)
        )
        self._everything = not (
            filters.do or filters.ignore or any(not {"ddl", "delete"}.issubset(rule.actions) for rule in filters.tables)
        )
        self._unknown = tuple(glob(pattern.strip(), ignore_case=True) for pattern in filters.unknown_ddl)
        self.hash_key = hash_key(filters)
        self._ruled = {id(rule): RuledColumns(rule) for rule in filters.tables if rule.transforms_rows or rule.rename}
        self._repeating = any(repeats_values(rule) for rule in filters.tables)
        self._kept = tuple(self._compile_column(pattern) for pattern in keep_invalid_text)

    @classmethod
    def of(
        cls,
        source: Source,
        lower_case_table_names: int = 0,
        unlogged_options: Mapping[str, str] = MappingProxyType({}),
        system_time_zone: str = "",
        *,
        virtual_tables: Collection[tuple[str, str]] | None = frozenset(),
        unique_tables: Collection[tuple[str, str]] = frozenset(),
    ) -> Filter:
        """The filter of a producer of this source; it also ignores the producer's own server id."""
        return cls(
            source.filters,
            lower_case_table_names,
            source.keep_invalid_text,
            keeps_statements=source.statements == "keep",
            records=source.records.dir is not None,
            rows_query_bytes=source.rows_query_bytes,
            largest_event=source.largest_event_bytes,
            ignored_servers=frozenset((*source.ignore_server_ids, source.server_id)),
            unlogged_options=unlogged_options,
            system_time_zone=system_time_zone,
            virtual_tables=virtual_tables,
            unique_tables=unique_tables,
        )

    @property
    def keeps_differences(self) -> bool:
        """True if a record store has the documents that before images lack."""
        return self._records

    @property
    def needs_rows(self) -> str:
        """The setting for which changes have to be logged as rows; "": none."""
        if self._rules:
            return "source.filters.tables"
        return "source.records.dir" if self._records else ""

    def including(self, finished: Finished | None) -> Filter:
        """A copy that also reads one transaction of any server ID, for comparison with the log."""
        changed = copy(self)
        changed.always_read = finished
        return changed

    def captures(self, schema: str, table: str) -> bool:
        """True if changes of this table are captured."""
        schema, table = self.fold(schema), self.fold(table)
        if schema in self._left_out or any(pattern.finds(schema, table) for pattern in self._ignore):
            return False
        return not self._do or any(pattern.finds(schema, table) for pattern in self._do)

    def captures_schema(self, schema: str) -> bool:
        """True if a table of this schema can be captured, which decides about CREATE and DROP DATABASE."""
        schema = self.fold(schema)
        if schema in self._left_out or any(p.whole and p.finds_schema(schema) for p in self._ignore):
            return False
        return not self._do or any(pattern.finds_schema(schema) for pattern in self._do)

    def rule(self, schema: str, table: str) -> TableRule | None:
        """The first rule that matches a table; None: it is published unchanged."""
        if not self._rules:
            return None
        schema, table = self.fold(schema), self.fold(table)
        return next((rule for patterns, rule in self._rules if any(p.finds(schema, table) for p in patterns)), None)

    def actions(self, schema: str, table: str) -> Collection[str]:
        """The captured actions of a captured table."""
        rule = self.rule(schema, table)
        return EVERYTHING if rule is None else rule.actions

    def row_transform(self, layout: TableLayout) -> RowTransform | None:
        """The compiled rule of a table; None: its rows are published unchanged.

        Raises:
            Unsupported: the rule does not fit the table.
        """
        rule = self.rule(*layout.name)
        if rule is None or not (rule.transforms_rows or rule.rename or rule.publish_as):
            return None
        return row_transform(layout, rule, self.hash_key)

    def published_statement(
        self, statement: Statement, known: Callable[[TableName], TableLayout | None]
    ) -> Statement | None:
        """Applies rules to a captured definition.

        The result lacks dropped columns, has the published names, NULL where rules publish it, and no UNIQUE where
        published values may repeat.

        Args:
            statement: a statement that `definitions` returned.
            known: gives a table's layout after the definition, or None if it is unknown.

        Returns:
            None if rules leave nothing of it.

        Raises:
            Unsupported: it is not understood, or cannot be written with the rules.
        """
        if self._repeating:
            statement = plain_indexes(statement, self._repeats)
        try:
            if self._ruled:
                left = drop_columns(statement, DropContext(self._columns, known))
                if left is None:
                    return None
                left = allow_nulls(left, self._columns, known)
                statement = rename_columns(left, RenameContext(self._columns, known, self.fold))
            if any(rule.publish_as for _, rule in self._rules):
                self._check_dropped(affected_tables(statement))
                statement = rename_tables(statement, self.published_name, self.published_schema)
        except Unsupported as error:
            raise Unsupported(
                f"a definition of tables with rules cannot be published: {error.message}",
                hint=RULES_HINT,
                sql=statement.sql[:500],
            ) from error
        return statement

    def published_name(self, name: TableName) -> TableName:
        """The name under which a table is published."""
        return published_name(self.rule(*name), name) if self.captures(*name) else name

    def published_column(self, table: TableName, column: str) -> str:
        """The name under which a column is published."""
        return called(self.rule(*table), column)

    def published_schema(self, schema: str) -> str:
        """The name under which a schema as a whole is published."""
        folded = self.fold(schema)
        for patterns, rule in self._rules:
            if any(pattern.whole and pattern.finds_schema(folded) for pattern in patterns):
                return rule.publish_as or schema
        return schema

    def _check_dropped(self, about: AffectedTables) -> None:
        """Checks that a dropped schema has the same tables as its published schema."""
        if not about.drops:
            return
        schema, published = self.fold(about.schema), self.published_schema(about.schema)
        for patterns, rule in self._rules:
            to = rule.publish_as.partition(".")[0]
            here = any(pattern.finds_schema(schema) for pattern in patterns)
            if to and (to == published) is not here:
                raise Unsupported("a dropped schema and its published schema have different tables")

    def _repeats(self, name: TableName) -> Callable[[str], bool] | None:
        """True for columns of a table whose published values may repeat though the source's do not."""
        rule = self.rule(*name) if self.captures(*name) else None
        return None if rule is None or not repeats_values(rule) else lambda column: repeats_values(rule, column)

    def _columns(self, name: TableName) -> RuledColumns | None:
        return self._ruled.get(id(self.rule(*name))) if self.captures(*name) else None

    def check_rules(self, layouts: Collection[TableLayout]) -> None:
        """Checks the rules against the source's tables.

        Raises:
            PreflightError: a rule names a column that none of its tables has.
            Unsupported: a rule does not fit a table.
        """
        for _, rule in self._rules:
            unknown = idle(rule, (layout for layout in layouts if self.rule(*layout.name) is rule))
            if unknown:
                raise PreflightError(
                    "no table that a rule applies to has a column that it names",
                    hint="is it misspelt in source.filters.tables, or does an earlier rule apply to the table?",
                    rule=", ".join(rule.match),
                    unknown=", ".join(unknown),
                )
        for layout in layouts:
            self.row_transform(layout)

    def definitions(self, statement: Statement, noted: Collection[str] = ()) -> tuple[Statement, ...]:
        """The captured parts of a definition: all of it, parts, its effect on captured tables in other words, or none.

        Args:
            statement: the definition.
            noted: schemas that the source noted for it. Used for statements about no table: MariaDB notes none, MySQL
                not always, and at most 16.

        Raises:
            Unsupported: it is not understood, and some tables are not captured; or its effect on captured tables cannot
                be expressed without the others.
        """
        try:
            about = affected_tables(statement)
        except Unsupported as error:
            if self._everything:
                return (statement,)
            if self._lists(statement):
                return ()
            raise Unsupported(
                f"which tables a definition is about is not understood, and not all are captured: {error.message}",
                hint=UNKNOWN_HINT,
                sql=statement.sql[:500],
            ).with_file_hint("without --do and --ignore it is shown") from error
        if about.schema:
            captured = self.captures_schema(about.schema) and self.captures_schema_definitions(about.schema)
            return (statement,) if captured else ()
        if not about.tables:
            touched = {self.fold(schema) for schema in noted or (statement.schema,)}
            captured = any(not schema or schema in SYSTEM_SCHEMAS or self.captures_schema(schema) for schema in touched)
            return (statement,) if captured else ()
        action = "delete" if about.truncates else "ddl"

        def capture(name: TableName) -> CaptureLevel:
            if not self.captures(*name):
                return CaptureLevel.NOTHING
            return CaptureLevel.WHOLE if action in self.actions(*name) else CaptureLevel.ROWS

        return Captured(statement, about, capture, self.fold).statements()

    def passes(self, statement: Statement) -> bool:
        """True if a definition is not understood and `unknown_ddl` lists it as one that changes no table."""
        if not self._lists(statement):
            return False
        try:
            affected_tables(statement)
        except Unsupported:
            return True
        return False

    def _lists(self, statement: Statement) -> bool:
        return any(pattern.fullmatch(statement.sql.strip()) for pattern in self._unknown)

    def captures_schema_definitions(self, schema: str) -> bool:
        """True if CREATE, ALTER and DROP DATABASE of a captured schema are captured.

        They are not if the rule for every table in it excludes definitions.
        """
        schema = self.fold(schema)
        for patterns, rule in self._rules:
            found = [pattern for pattern in patterns if pattern.finds_schema(schema)]
            if found:
                return "ddl" in rule.actions or not any(pattern.whole for pattern in found)
        return True

    def keeps_invalid_text(self, schema: str, table: str, column: str) -> bool:
        """True if values of this column that are not valid in its character set are published as bytes."""
        if not self._kept:
            return False
        schema, table = self.fold(schema), self.fold(table)
        return any(of.finds(schema, table) and name.fullmatch(column.lower()) for of, name in self._kept)

    def _compile_column(self, pattern: str) -> tuple[TablePattern, re.Pattern[str]]:
        table, _, column = pattern.strip().rpartition(".")
        if not ("." in table and column):
            raise ConfigError(
                f"the pattern {pattern!r} is not `schema.table.column`",
                hint="write `shop.notes.text` or `shop.*.*`",
                option="source.keep_invalid_text",
            )
        # Column names are case-insensitive.
        return self._compile(table, "keep_invalid_text"), glob(column.lower())

    def _compile(self, pattern: str, field: str) -> TablePattern:
        try:
            return table_pattern(self.fold(pattern.strip()))
        except ValueError as error:
            raise ConfigError(
                f"{pattern!r} is {error}", hint=f"change source.{field}", option=f"source.{field}"
            ) from error


def fingerprint(source: Source) -> str:
    """A hash of all settings that decide which events are made of a transaction.

    Ignored servers are not part of it: the log's last transaction is always read.
    """
    decides = source.filters.model_dump(mode="json", exclude=UNRECORDED) | {
        "hash_key": hash_key_digest(source.filters),
        "keep_invalid_text": source.keep_invalid_text,
        "statements": source.statements,
    }
    if any(rule.zero_dates or any(mask.gives_null for mask in rule.mask.values()) for rule in source.filters.tables):
        decides["null_in_definitions"] = True  # earlier versions published NOT NULL of these columns
    if any(map(repeats_values, source.filters.tables)):
        decides["plain_indexes"] = True  # earlier versions published UNIQUE of these columns
    return sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def capture_of(source: Source) -> dict[str, Any]:
    """The capturing configuration in an epoch's record: without secrets, and normalised."""
    return {
        "filters": source.filters.model_dump(mode="json", exclude_defaults=True, exclude=UNRECORDED),
        "hash_key": hash_key_digest(source.filters),
        "ignore_server_ids": sorted(source.ignore_server_ids),
    } | ({CASCADES: True} if source.accept_unlogged_cascades else {})
