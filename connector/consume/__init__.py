"""Reading of the log by those who are no target: whole transactions, in order, without Spark. A public interface.

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

- `Consumer` gives events; what it promises, and what it raises, stands there. `Start`: where one begins.
- `Event`: one transaction. Its `changes` are `RowChanges` (with `Row` and `Column`) and `Statement`.
- `ConsumerPosition`: how far one is, to be stored with what was made of the events.

docs/consuming.md shows more, and how others read the log without this package. Inside, a message goes this way: `feed`
(Kafka), `decoding`, `assembly` (the protocol's rules, which are `connector.log`'s), `fragments` (memory or a file),
`event`. `opening` finds and proves the beginning.
"""

from __future__ import annotations

from connector.consume.consumer import Consumer
from connector.consume.decoding import Row, RowChanges, Statement, Value
from connector.consume.event import Event
from connector.consume.position import ConsumerPosition
from connector.consume.start import Start
from connector.errors import BrokerUnavailable, ConnectorError, HistoriesDiffer, LogDamaged, ShardsChanged
from connector.log.ids import Action, Kind, Outcome
from connector.log.transaction.layout import Column

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
    "LogDamaged",
    "Outcome",
    "Row",
    "RowChanges",
    "ShardsChanged",
    "Start",
    "Statement",
    "Value",
]
