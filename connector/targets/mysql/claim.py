"""The claim of a target: ends the session of an older applier, takes a new token, and reads the bookkeeping."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_hex

import pymysql
from pymysql.constants import ER

from connector.ddl.syntax.tokens import quoted
from connector.log.compact.history import HistoryTables
from connector.log.transaction.layout import Column
from connector.log.transaction.position import TargetPosition
from connector.targets import bookkeeping
from connector.targets.add_metadata_columns import MissingColumns, missing_columns
from connector.targets.histories import create_histories
from connector.targets.mysql.bookkeeping import (
    applied_tables,
    ensure_bookkeeping,
    excluded_tables,
    loading_tables,
    schema_version,
)
from connector.targets.mysql.ddl.operations import column_names_of, steps_of
from connector.targets.mysql.fence import take_over, token_of
from connector.targets.mysql.server.connection import ServerSession
from connector.targets.mysql.server.errors import code_of
from connector.targets.mysql.sql.literals import literal
from connector.targets.mysql.sql.names import MySqlNames, table_name
from connector.targets.mysql.sql.types import mysql_type
from connector.targets.names import check_names
from connector.targets.operations import CreateTable
from connector.targets.table import to_json
from connector.targets.target_schema import TargetSchema


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of a claim.

    Args:
        token: its token.
        identity: the target's name.
        position: of the last commit.
        schema: the tables that the applier created, with their metadata columns.
    """

    token: int
    identity: str
    position: TargetPosition
    schema: TargetSchema


def claim(
    session: ServerSession,
    service: str,
    previous_token: int,
    mark: str,
    *,
    columns: tuple[Column, ...],
    history: HistoryTables | None = None,
) -> Claim:
    """Claim a target.

    Args:
        session: the applier's.
        service: the service.
        previous_token: the token that the target must have, or that of a claim with the same mark; 0: any.
        mark: the applier's; empty: it has none.
        columns: the metadata columns of every table.
        history: the tables that have a history.

    Raises:
        Fenced: the target has another token.
        ConfigError: a newer version of the connector wrote the position, or metadata columns differ.
        pymysql.MySQLError: of a statement.
    """
    ensure_bookkeeping(session)
    session.query("USE thl")  # names that others may use are whole; DELETE of an alias needs some database
    bookkeeping.check_schema_version(service, schema_version(session, service))
    where = f"service = {literal(service)}"
    # Once before an older session is ended, so that an applier that is fenced does not end its successor's.
    _check_previous(session, service, previous_token, mark)
    take_over(session, service)
    session.query("START TRANSACTION")
    session.query(f"INSERT IGNORE INTO thl.thl_position (service, token) VALUES ({literal(service)}, 0)")
    position_columns = ", ".join(bookkeeping.POSITION)
    (found,) = session.rows(f"SELECT {position_columns}, token FROM thl.thl_position WHERE {where} FOR UPDATE")
    *row, token_before = found
    _check_previous(session, service, previous_token, mark)
    new_token = int(token_before) + 1
    session.query(f"UPDATE thl.thl_position SET token = {new_token} WHERE {where}")
    if mark:
        session.query(f"REPLACE INTO thl.thl_claim VALUES ({literal(service)}, {new_token}, {literal(mark)})")
    session.query(f"INSERT IGNORE INTO thl.thl_identity VALUES ({literal(service)}, {literal(token_hex(16))})")
    ((identity,),) = session.rows(f"SELECT identity FROM thl.thl_identity WHERE {where}")
    head = session.rows(f"SELECT head FROM thl.thl_rewound WHERE {where}")
    position = bookkeeping.position_from(service, row, head[0][0] if head else None)
    missing = _missing_metadata(session, service, columns)
    loads = loading_tables(session, service)
    schema, position = bookkeeping.with_loads(missing.target_schema, position, loads)
    session.query("COMMIT")
    _add_metadata(session, service, missing)
    histories, schema = create_histories(schema, history)
    check_names(MySqlNames(folds=session.folds), schema)
    _add_histories(session, service, histories)
    return Claim(new_token, str(identity), position, schema)


def _check_previous(session: ServerSession, service: str, previous_token: int, mark: str) -> None:
    """Check that no other applier has claimed the target since this one's last claim.

    Raises:
        Fenced: one has.
    """
    claims = session.rows(f"SELECT token, mark FROM thl.thl_claim WHERE service = {literal(service)}")
    if previous_token and token_of(session, service) != bookkeeping.last_token(previous_token, mark, claims):
        raise bookkeeping.fenced(service, previous_token)


def _add_histories(session: ServerSession, service: str, operations: Sequence[CreateTable]) -> None:
    """Create histories, and record them. After a crash in between, one that is there already is no error."""
    names = MySqlNames(folds=session.folds)
    for operation in operations:
        table = operation.table
        if column_names_of(session, table.name) != {column.name for column in table.stored}:
            for step in steps_of([operation], session):
                step.check(session)
                if step.needed(session):
                    session.query(str(step.sql))
        row = (service, *table.name, ".".join(names.table(table.name)), to_json(table))
        session.query(f"INSERT INTO thl.thl_tables VALUES ({', '.join(map(literal, row))})")


def _missing_metadata(session: ServerSession, service: str, columns: tuple[Column, ...]) -> MissingColumns:
    """The metadata columns that tables lack; excluded tables stay as they are."""
    found = missing_columns(
        applied_tables(session, service),
        columns,
        excluded_tables(session, service),
        existing_columns=lambda name: column_names_of(session, name),
        name=table_name,
        column=lambda column: (quoted(column.name), f"{mysql_type(column, mariadb=session.mariadb)} NULL"),
    )
    check_names(MySqlNames(folds=session.folds), found.target_schema)
    return found


def _add_metadata(session: ServerSession, service: str, missing: MissingColumns) -> None:
    """Add the columns. After a crash in between, those that are there already are no error."""
    for statement in missing.statements:
        try:
            session.query(statement)
        except pymysql.MySQLError as error:
            if code_of(error) != ER.DUP_FIELDNAME:
                raise
    for table in missing.tables:
        schema, name = map(literal, table.name)
        where = f"service = {literal(service)} AND schema_name = {schema} AND table_name = {name}"
        session.query(f"UPDATE thl.thl_tables SET definition = {literal(to_json(table))} WHERE {where}")
