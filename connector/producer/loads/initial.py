"""The beginning of an initial load: the tables' definitions, as events at the position at which the log begins.

It is short: the rows follow by the rounds of `TableLoads`, while the source's log is published. A producer that dies
before its end publishes another beginning, at which targets start over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from threading import Event
from typing import Final

from connector.errors import SourceChanged
from connector.kafka.requests import new_load_id
from connector.log.epochs.loads import LoadRequest, LoadState, TableLoad
from connector.log.ids import Kind
from connector.log.transaction.layout import TableName
from connector.log.transaction.load import LoadEvent, Part
from connector.log.transaction.position import SnapshotCompleted
from connector.producer.loads.events import LoadEvents
from connector.producer.loads.online import OnlineLog
from connector.producer.publish.queue import Work
from connector.producer.sources.source import OpenedTable, SourceSnapshot
from connector.retrying import Stopped

INITIAL: Final = "the initial load"
BEGUN_AGAIN: Final = "the initial load began again, without this table"


def begin_initial_load(online: OnlineLog, snapshot: SourceSnapshot, now: int, stop: Event) -> None:
    """Publish the definitions, and ask for the load of each table.

    Args:
        online: the online producer; its control state and its stream get the tables.
        snapshot: the tables.
        now: µs since 1970 UTC.
        stop: set to stop the producer.

    Raises:
        SourceChanged: the snapshot is of another server than the epoch.
        Stopped: `stop` was set.
        ConnectorError: of the publisher.
    """
    if snapshot.server_uuid != online.control.epochs[-1].server_uuid:
        raise SourceChanged("the connection reaches another server than the one with which the epoch began")
    events = LoadEvents(online, snapshot, snapshot.position)
    events.put_event(Kind.TRANSACTION, {"snapshot": "begin"}, [])
    for schema in snapshot.schemas:
        events.put_event(Kind.DDL, {"snapshot": "table"}, [schema])
    for table in snapshot.unloaded:
        if table.definition:
            events.put_event(Kind.DDL, {"snapshot": "table"}, [*table.definition])
    requests, states = dict(online.control.load_requests), dict(online.control.loads)
    loads: dict[TableName, str] = {}  # of the tables that are published under a name
    for number, (name, table) in enumerate(_defined_first(snapshot.tables)):
        if stop.is_set():
            raise Stopped
        shares_begin = table.published in loads
        load = loads.setdefault(table.published, new_load_id())
        request = LoadRequest(table=name, load=load, asked_at=now + number, asked_by=INITIAL, published=table.published)
        states[name] = begin_table(events, request, table, now, [request], shares_begin=shares_begin)
        requests[name] = request
    given_up: Work = []
    for name, state in online.control.loads.items():
        if name not in snapshot.tables and state.state is LoadState.LOADING:
            states[name] = replace(state, state=LoadState.CANCELLED, at=now, why=BEGUN_AGAIN)
            given_up.append(states[name])
    found = {"file": snapshot.position.file, "pos": str(snapshot.position.offset)}
    if snapshot.gtid_set is not None:
        found["gtid_set"] = snapshot.gtid_set
    ended: Work = [*given_up, SnapshotCompleted(snapshot.gtid_set)]
    if snapshot.definitions is not None:
        ended.append(snapshot.definitions)
    online.stream.tables = snapshot.definitions
    events.put_event(Kind.TRANSACTION, {"snapshot": "end", **found}, [], ended)
    online.control = replace(online.control, load_requests=requests, loads=states)


def begin_table(
    events: LoadEvents,
    request: LoadRequest,
    table: OpenedTable,
    now: int,
    more: Work | None = None,
    *,
    shares_begin: bool = False,
) -> TableLoad:
    """Publish the beginning of a table's load.

    Args:
        events: at the position at which the table has this definition.
        request: the load.
        table: the table.
        now: µs since 1970 UTC.
        more: records that are written with the event.
        shares_begin: the load has begun with another table that is published under the same name: there is no event.

    Returns:
        The state of the load, which is written with the event.
    """
    state = TableLoad(
        table=request.table,
        load=request.load,
        state=LoadState.LOADING,
        load_identity=table.load_identity,
        estimate=table.estimate,
        began_at=now,
        at=now,
        begin=events.next,
        last=events.next,
        targets=request.targets,
    )
    records: Work = [*(more or []), state]
    if shares_begin:
        events.online.publisher.put(records)
    else:
        event = LoadEvent(request.load, Part.BEGIN, table.published, request.targets)
        events.put(event, [*table.definition], records)
    return state


def _defined_first(tables: Mapping[TableName, OpenedTable]) -> list[tuple[TableName, OpenedTable]]:
    """The tables in their order; of those that are published under one name, one that defines it comes first."""
    together = Counter(table.published for table in tables.values())
    found: dict[TableName, OpenedTable] = {}
    for name, table in tables.items():
        if together[table.published] > 1 and not table.definition:
            same = [(other, one) for other, one in tables.items() if one.published == table.published]
            found |= {other: one for other, one in same if one.definition}
        found[name] = table
    return list(found.items())
