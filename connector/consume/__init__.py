"""Reads the log from Python: whole transactions, in order, without Spark. A public interface.

```python
from connector.consume import Consumer, RowChanges, Start

with Consumer("localhost:9092", "shop", group="search") as consumer:
    for event in consumer:
        for change in event.changes:
            if isinstance(change, RowChanges):
                for row in change.rows:
                    print(event.seqno, change.table, change.action.name, row.before, row.after)
        consumer.commit(event)
```

A `Consumer` returns events; its docstring states its promises and errors. A `RelayConsumer` returns those of an
applier's relay, without Kafka. A `Start` names the event to begin with. An `Event` is one transaction, or a part of a
table's load (`LoadEvent`, `Part`); its `changes` are `RowChanges` (with `Row` and `Column`) and `Statement`. A
`ConsumerPosition` is the position after an event, to be stored with its effects. docs/consuming.md shows more, and how
to read the log without this package.

- `consumer`: `Consumer`: its connection, its group, its errors.
- `start`: `Start`.
- `position`: `ConsumerPosition`.
- `relay`: `RelayConsumer`.
- `event`: `Event`.
- `opening`: finds and proves the beginning.
- `ordered_reader`: reads events in order; joins the next three.
- `feed`: messages from Kafka.
- `decoding`: messages decoded by the schema that they name.
- `assembly`: messages to events, by the rules of `connector.log.reading`.
- `fragments`: an event's bytes, in memory or in a file.
"""

from __future__ import annotations

from connector.consume.consumer import Consumer
from connector.consume.decoding import Row, RowChanges, Value
from connector.consume.event import Event
from connector.consume.position import ConsumerPosition
from connector.consume.relay import RelayConsumer
from connector.consume.start import Start
from connector.errors import BrokerUnavailable, ConnectorError, HistoriesDiffer, LogDamaged, ShardsChanged
from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.batch import Statement
from connector.log.transaction.layout import Column, TableName
from connector.log.transaction.load import LoadEvent, Part

__all__ = [
    "Action",
    "BrokerUnavailable",
    "Column",
    "ConnectorError",
    "Consumer",
    "ConsumerPosition",
    "Event",
    "HistoriesDiffer",
    "Kind",
    "LoadEvent",
    "LogDamaged",
    "Outcome",
    "Part",
    "RelayConsumer",
    "Row",
    "RowChanges",
    "ShardsChanged",
    "Start",
    "Statement",
    "TableName",
    "Value",
]
