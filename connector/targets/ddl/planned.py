"""Plans a statement of a DDL event for a target whose schema is staged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from connector import metrics
from connector.errors import ConnectorError
from connector.log.compact.net_changes import Ddl
from connector.log.transaction.batch import Statement
from connector.targets.ddl.plan import Plan, located, plan
from connector.targets.histories import check_operations, tables_of
from connector.targets.names import TargetNames, check_names
from connector.targets.staged_schema import StagedSchema


@contextmanager
def planned(service: str, ddl: Ddl, statement: Statement, schema: StagedSchema, names: TargetNames) -> Iterator[Plan]:
    """The plan of a statement. The schema is as before it within the context, and as after it at the end.

    Args:
        service: for the count of statements without effect.
        ddl: the event.
        statement: one of its statements.
        schema: the target's tables.
        names: the target's rules for names.

    Raises:
        ConnectorError: the statement is refused, or the body raised it; with event, statement and ways out.
    """
    before = schema.tables
    try:
        found = plan(statement, before, ddl.commit_time)
        if not found.operations:
            metrics.ignored_ddl.labels(service, found.command).inc()
        check_operations(found.operations)
        histories, after = schema.create_histories(found.target_schema)
        found = replace(found, histories=histories, target_schema=after)
        check_names(names, after)
        yield found
    except ConnectorError as error:
        raise located(error, ddl.seqno, statement, before) from error
    schema.tables = found.target_schema
    schema.note_statements([(statement.sql, tables_of(found.operations))])
