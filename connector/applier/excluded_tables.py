"""Tables that an operator has named to go on without: from the next event on nothing of them is applied.

They stay on the target as they are, and are noted there with the position, so that every later applier goes on without
them, too, until an initial load makes them anew or the source drops them. A load that comes next is gone on with
without them, too: that is where a table is met that the target cannot hold.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from connector.clock import Clock
from connector.log.ids import Seqno
from connector.log.transaction.layout import TableName
from connector.log.transaction.position import TargetPosition
from connector.targets.target import Target
from connector.targets.target_schema import Excluded

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ExcludedTables:
    """See above.

    Args:
        tables: which.
        by: who says so, user@host.
        because: why.
    """

    tables: Collection[TableName]
    by: str
    because: str

    def take(self, target: Target, position: TargetPosition, clock: Clock) -> None:
        """Note it in a claimed target, at its position; what is noted already stays as it is."""
        entry = Excluded(since=Seqno(position.seqno + 1), at=clock.now(), by=self.by, because=self.because)
        new = [name for name in self.tables if name not in target.catalog.excluded]
        if not new:
            return
        for name in new:
            known = name in target.catalog
            fields = {"service": position.service, "table": name, "since_seqno": entry.since, "known": known}
            LOG.warning("going on without a table", extra=fields)
        target.exclude(dict.fromkeys(new, entry))
        target.commit(position, [])
