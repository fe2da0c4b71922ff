"""The load of a table at a target: what its events do besides changing rows. As the plans of DDL, it touches no target.

While a table is being loaded the target has only some of its rows, or older ones, too. Its changes are then applied as
upserts, and rows to delete or change may be missing. After the end of the load they have to be there again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2s
from typing import Final

from connector.errors import ConnectorError, TargetDiffers, Unsupported
from connector.log.compact.net_changes import Ddl, NetChanges, once_more, replacing
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.targets.ddl.plan import plan
from connector.targets.histories import check_source_table
from connector.targets.marks import Marks
from connector.targets.operations import DropTable, Operation, Sweep, Truncate
from connector.targets.table import Table
from connector.targets.target_schema import (
    QUARANTINED,
    Excluded,
    LoadContent,
    Loading,
    TargetSchema,
    go_on_without,
    is_refusal,
)

LOG: Final = logging.getLogger(__name__)

NOT_LOADED: Final = (
    "the load has not brought this row yet, and the log has not all of its columns: SET GLOBAL binlog_row_image = FULL "
    "on the source, and load the table again (thl load)"
)


Check = Callable[[Table, bool], None]
"""Checks that rows of a table that is there may be deleted and inserted again, or (true) replaced by upserts.

It raises what `refuse_deletes` does.
"""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """The effect of an event of a load.

    Args:
        operations: in order, before the rows of the event.
        target_schema: the tables after.
    """

    operations: Sequence[Operation]
    target_schema: TargetSchema


def plan_load(
    event: LoadEvent, ddl: Ddl, schema: TargetSchema, *, service: str, now: int, consistent: bool, check: Check
) -> LoadPlan:
    """Plan an event of a load that does more than change rows.

    An excluded table is loaded, unless the beginning of this load is refused for it.

    Args:
        event: the event.
        ddl: its seqno, and the statements that define the table where the load begins.
        schema: the tables before.
        service: the service.
        now: the time, µs since 1970 UTC.
        consistent: whether the target is consistent but for the tables that are being loaded.
        check: asks the target whether the load may replace the rows of a table.

    Raises:
        TargetDiffers: the target's table has another definition, its load is not as the log has it, or others made
            something that acts on deletes of its rows.
        Unsupported: the definition cannot be applied.
        ConfigError: the table has the name of a history.
    """
    name, entry = event.table, schema.excluded.get(event.table)
    if entry is None:
        check_source_table(schema, name)
    elif schema.source_table(name) != name:
        return LoadPlan((), schema)  # here it is a history's name
    if entry is not None and (event.part is not Part.BEGIN or _refused_at(entry, ddl)):
        return LoadPlan((), schema)
    try:
        if event.part is Part.BEGIN:
            loading = Loading(load=event.load, since=ddl.seqno, at=now, state=LoadContent.NEW, consistent=consistent)
            return _begin(name, ddl, schema, loading, _marks_name(service, ddl), check=check)
        return _go_on(event, schema, check)
    except ConnectorError as error:
        error.where = {"seqno": ddl.seqno, "table": name, "load": event.load, **error.where}
        if entry is not None and is_refusal(error):
            LOG.warning(
                "an excluded table stays so: the definition of its load is refused", extra={"why": error.located}
            )
            return LoadPlan((), schema)
        error.hint = error.hint or go_on_without(name)
        error.tables = error.tables or (name,)
        raise


def _refused_at(entry: Excluded, ddl: Ddl) -> bool:
    """True if a table was quarantined because of this event."""
    return entry.since >= ddl.seqno and entry.reason.startswith(QUARANTINED)


def tolerant(net: NetChanges, table: Table, schema: TargetSchema, marked: Marks | None) -> NetChanges:
    """Return the changes of a table as upserts if it is being loaded or repaired, and has a key."""
    entry = schema.loading.get(table.name)
    if (entry is None and marked is None) or not table.key:
        return net
    new = entry is not None and entry.state is LoadContent.NEW
    in_place = new or (marked is not None and marked.in_place)
    return replacing(net) if in_place else once_more(net, partial=True)


def refuse_deletes(table: Table, found: Sequence[str]) -> None:
    """Refuse to delete and insert the rows of a table again if others made something that acts on deletes.

    Args:
        table: the table.
        found: what others made, in words: foreign keys of tables that refer to it, triggers.

    Raises:
        TargetDiffers: there is something.
    """
    if found:
        raise TargetDiffers(
            f"the load of {table.name} deletes its rows and inserts them again, and deletes have further effects on "
            f"the target: {', '.join(found)}",
            hint="drop these (ALTER TABLE … DROP CONSTRAINT, DROP TRIGGER) and create them again after the load"
            + ("; or drop every unique index of the table but its primary key, then rows stay" if table.key else "")
            + f"; or {go_on_without(table.name)}",
            table=table.name,
        )


def _begin(name: TableName, ddl: Ddl, schema: TargetSchema, loading: Loading, marks: str, *, check: Check) -> LoadPlan:
    known, excluded, earlier = schema.find(name), name in schema.excluded, schema.loading.get(name)
    created, after = _definition(name, ddl, schema.without(name).including(name))
    made = after.get(name)
    if known is None or excluded:
        dropped = [] if known is None else [DropTable(known, optional=True)]
        state = LoadContent.NEW if made.key else LoadContent.AWAITS_ROWS
        return LoadPlan([*dropped, *created], after.with_loading(name, replace(loading, state=state)))
    _compare(known, made)
    starts_over = earlier is not None and earlier.state is LoadContent.NEW
    check(known, bool(known.key) and not starts_over)
    if not known.key:
        return LoadPlan((), schema.with_loading(name, replace(loading, state=LoadContent.AWAITS_ROWS)))
    if starts_over:
        return LoadPlan([Truncate(known)], schema.with_loading(name, loading))
    return LoadPlan((), schema.with_loading(name, replace(loading, state=LoadContent.MARKED, marks=marks)))


def _go_on(event: LoadEvent, schema: TargetSchema, check: Check) -> LoadPlan:
    name, table = event.table, schema.find(event.table)
    loading = schema.loading.get(name)
    again = "load the table again (thl load)"
    if table is None or loading is None:
        if event.part is Part.END:
            return LoadPlan((), schema)  # the table was dropped meanwhile, or is whole
        raise TargetDiffers(
            f"rows of a load of {name} come, and the target does not load it", hint=f"{again}, or {go_on_without(name)}"
        )
    if loading.load != event.load:
        raise TargetDiffers(
            f"the {event.part} of a load of {name} comes, and the target has begun another load of it",
            hint=f"{go_on_without(name)}; then {again}",
            loading=loading.load,
            since_seqno=loading.since,
        )
    if event.part is Part.WHOLE:
        check(table, False)
        entry = replace(loading, state=LoadContent.NEW, marks="")
        return LoadPlan([Truncate(table)], schema.with_loading(name, entry))
    if loading.awaits:
        lacks = "its rows" if loading.state is LoadContent.AWAITS_ROWS else "beginning again after its key had changed"
        raise TargetDiffers(f"the load of {name} ends without {lacks}", hint=f"{go_on_without(name)}; then {again}")
    swept = [Sweep(table, loading.marks)] if loading.marks else []
    return LoadPlan(swept, schema.whole(name))


def _definition(name: TableName, ddl: Ddl, schema: TargetSchema) -> tuple[list[Operation], TargetSchema]:
    """The operations that create the table, and the schema after."""
    operations: list[Operation] = []
    for statement in ddl.statements:
        try:
            found = plan(statement, schema, ddl.commit_time)
        except ConnectorError as error:
            error.where = {"sql": statement.sql, **error.where}
            raise
        operations += found.operations
        schema = found.target_schema
    if name not in schema:
        raise Unsupported(f"a load of {name} begins without a statement that creates it")
    return operations, schema


def _compare(known: Table, made: Table) -> None:
    """Compare the target's table with the definition of the load; columns, types and key must be equal."""
    try:
        TargetSchema([known]).check(replace(made.layout, columns=made.stored))
    except TargetDiffers as error:
        raise _differs(known.name, error.message) from error
    if known.key != made.key:
        raise _differs(known.name, f"the target has the primary key ({', '.join(known.key)})")


def _differs(name: TableName, what: str) -> TargetDiffers:
    return TargetDiffers(
        f"the load of {name} has another definition than the target: {what}",
        hint=f"a definition was lost: {go_on_without(name)}; then thl load, which creates the table again",
    )


def _marks_name(service: str, ddl: Ddl) -> str:
    return f"thl_marks_{blake2s(f'{ddl.seqno} {service}'.encode(), digest_size=8).hexdigest()}"
