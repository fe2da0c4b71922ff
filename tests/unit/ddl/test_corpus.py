"""Every DDL statement that the tests contain goes to every visitor of the syntax tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType

import pytest

from connector.ddl.affected_tables import affected_tables
from connector.ddl.captured import Captured, CaptureLevel
from connector.ddl.drop_columns import DropContext, drop_columns
from connector.ddl.foreign_keys import cascading_references
from connector.ddl.mariadb import brings_virtual
from connector.ddl.rename_columns import RenameContext, rename_columns
from connector.ddl.rename_tables import rename_tables
from connector.ddl.schema_changes import schema_changes
from connector.ddl.schema_draft import Rules
from connector.ddl.syntax import ast, clauses
from connector.ddl.syntax.ast_column import Name, NotUnderstood, SourceSpan, TableReference
from connector.ddl.syntax.ast_table import TableBody
from connector.ddl.syntax.parse import parse
from connector.ddl.syntax.reader import TokenReader
from connector.ddl.syntax.tokens import readings, sql_modes
from connector.errors import TargetDiffers, Unsupported
from connector.log.transaction.batch import Statement
from connector.log.transaction.definition import Definitions, TableDefinition
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.log.transaction.statement_options import DIALECT, MARIADB_DIALECT
from connector.targets.ddl.plan import plan
from connector.targets.table import make_table
from connector.targets.target_schema import TargetSchema
from tests.support.ddl_corpus import statements

SCHEMA = "shop"
SESSIONS: tuple[Mapping[str, str], ...] = (
    {},
    {DIALECT: MARIADB_DIALECT, "explicit_defaults_for_timestamp": "1"},
    {"sql_mode": "ANSI_QUOTES", "error_code": "1"},
)
COLUMNS = (
    Column("id", "int"),
    Column("a", "varchar(10)", charset="utf8mb4"),
    Column("b", "text", charset="latin1"),
    Column("name", "enum", charset="utf8mb4", labels=("x", "y")),
    Column("price", "decimal(5,1)"),
)


class Nothing:
    """A rule for columns that neither drops one nor gives one another name."""

    names: Mapping[str, str] = MappingProxyType({})

    def drops(self, column: str) -> bool:
        return False

    def treats(self, column: str) -> object:
        return None


class Some(Nothing):
    """A rule that does both."""

    names: Mapping[str, str] = MappingProxyType({"a": "b", "b": "a", "name": "o'`ther", "v": "w"})

    def drops(self, column: str) -> bool:
        return column.lower() in ("c", "secret", "n")


NOTHING, SOME = Nothing(), Some()


def corpus() -> Iterator[Statement]:
    """The statements, each in the session that its length picks: every session sees every kind."""
    for sql in statements():
        yield Statement(SCHEMA, sql, SESSIONS[len(sql) % len(SESSIONS)])


def tables_of(statement: Statement) -> list[TableName]:
    try:
        about = affected_tables(statement)
    except Unsupported:
        return [TableName(SCHEMA, "t")]
    return [*about.tables, TableName(SCHEMA, "t")]


def changed(statement: Statement) -> None:
    found = {name: TableDefinition(TableLayout(name, COLUMNS, (0,)), "latin1") for name in tables_of(statement)}
    schema_changes(
        statement,
        Definitions(found, {SCHEMA: "latin1"}),
        Rules(str, lambda _: True, old=len(statement.sql) % 2 == 0),
        schemas=(SCHEMA,),
        server_charset="utf8mb4",
        position="binlog.000001:4",
    )


def planned(statement: Statement) -> None:
    tables = [make_table(name, COLUMNS, ["id"]) for name in dict.fromkeys(tables_of(statement))]
    for by_hand in (False, True):
        plan(statement, TargetSchema(tables), 0, by_hand=by_hand)
    plan(statement, TargetSchema(), 0)


def captured(statement: Statement) -> None:
    about = affected_tables(statement)
    if about.tables:
        kinds = tuple(CaptureLevel)
        Captured(statement, about, lambda name: kinds[len(name.table) % len(kinds)], str).statements()


def some_dropped(statement: Statement) -> None:
    after = TableLayout(TableName(SCHEMA, "t"), COLUMNS)
    left = drop_columns(statement, DropContext(lambda _: SOME, lambda _: after))
    if left is not None:
        rename_columns(left, RenameContext(lambda _: SOME, lambda _: after, str.lower))


def tables_renamed(statement: Statement) -> None:
    rename_tables(statement, lambda name: TableName("o`ther", name.table), lambda name: name and "published")


VISITORS: tuple[Callable[[Statement], object], ...] = (
    affected_tables,
    brings_virtual,
    captured,
    cascading_references,
    changed,
    planned,
    some_dropped,
    tables_renamed,
)


@pytest.mark.parametrize("visitor", VISITORS, ids=[visitor.__name__ for visitor in VISITORS])
def test_every_statement_is_understood_or_refused(visitor: Callable[[Statement], object]) -> None:
    understood = 0
    for statement in corpus():
        try:
            visitor(statement)
        except (Unsupported, TargetDiffers):
            continue
        understood += 1
    assert understood > 400


def unchanged(statement: Statement) -> list[str]:
    """The statement after rules that change nothing, as far as it is understood."""
    found = []
    for change in (
        lambda: drop_columns(statement, DropContext(lambda _: NOTHING, lambda _: None)),
        lambda: rename_columns(statement, RenameContext(lambda _: NOTHING, lambda _: None, str)),
        lambda: rename_tables(statement, lambda name: name, lambda name: name),
    ):
        try:
            left = change()
        except Unsupported:
            continue
        found.append("" if left is None else left.sql)
    return found


def test_rules_without_effect_return_the_statement_unchanged() -> None:
    for statement in corpus():
        assert set(unchanged(statement)) <= {statement.sql}


def nodes(node: object) -> Iterator[object]:
    """A node of the tree and all below it."""
    if isinstance(node, tuple) and not isinstance(node, SourceSpan | TableName):
        for one in node:
            yield from nodes(one)
    elif is_dataclass(node):
        yield node
        for one in fields(node):
            yield from nodes(getattr(node, one.name))


def spans(node: object) -> list[SourceSpan]:
    return [found for one in fields(node) if isinstance(found := getattr(node, one.name), SourceSpan)]  # type: ignore[arg-type]


def test_source_spans_of_nodes_cut_their_text() -> None:
    for statement in corpus():
        try:
            trees = parse(statement)
        except Unsupported:
            continue
        sql_mode = statement.options.get("sql_mode", "")

        def read(span: SourceSpan, sql: str = statement.sql, sql_mode: str = sql_mode) -> TokenReader:
            return TokenReader(readings(sql[span.start : span.end], sql_mode)[0], SCHEMA, sql_modes(sql_mode))

        for node in nodes(tuple(tree.command for tree in trees)):
            for span in spans(node):
                assert 0 <= span.start <= span.end <= len(statement.sql), (statement.sql, node)
            match node:
                case Name(span, text):
                    assert read(span).name() == text
                case TableReference(span, name):
                    assert read(span).table().name == name
                case NotUnderstood(_, reason) | clauses.UnknownClause(_, reason):
                    assert reason
                case _:
                    pass


def test_list_items_cover_the_whole_list() -> None:
    lists = 0
    for statement in corpus():
        try:
            commands = [tree.command for tree in parse(statement)]
        except Unsupported:
            continue
        for command in commands:
            match command:
                case ast.AlterTableStatement(_, parts) if parts:
                    between = [part.span for part in parts]
                case ast.CreateTableStatement(_, _, _, TableBody(_, _, _, between_items)):
                    between = list(between_items)
                case _:
                    continue
            whole = SourceSpan(between[0].start, between[-1].end)
            sql = statement.sql
            assert ",".join(sql[one.start : one.end] for one in between) == sql[whole.start : whole.end].rstrip(",")
            lists += 1
    assert lists > 400
