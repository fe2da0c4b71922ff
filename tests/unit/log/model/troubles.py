"""The troubles: each run has at most one kind, so that an error can be told from the one that the trouble explains."""

from __future__ import annotations

from typing import Final

from connector.errors import ConnectorError, HistoriesDiffer, LogDamaged, Unsupported
from connector.log import rules

Errors = tuple[type[ConnectorError], ...]

EXPLAINED: Final[dict[str, dict[str, Errors]]] = {
    "none": {"producer": (), "applier": ()},
    "retention": {"producer": (), "applier": (LogDamaged, HistoriesDiffer)},
    "tail": {"producer": (LogDamaged,), "applier": (LogDamaged, HistoriesDiffer)},
    "hole": {"producer": (LogDamaged,), "applier": (LogDamaged, HistoriesDiffer)},
    "anew": {"producer": (LogDamaged,), "applier": (LogDamaged, HistoriesDiffer)},
    "rebuilt": {"producer": (), "applier": (LogDamaged, HistoriesDiffer)},
    "source crash": {"producer": (HistoriesDiffer,), "applier": ()},
    "failover": {"producer": (HistoriesDiffer,), "applier": ()},
    "fork": {"producer": (HistoriesDiffer, Unsupported), "applier": (HistoriesDiffer,)},
    "filters": {"producer": (), "applier": ()},
    "shards": {"producer": (), "applier": ()},
    "source lost": {"producer": (HistoriesDiffer,), "applier": ()},
    "writers": {"producer": (), "applier": ()},
    "relay": {"producer": (HistoriesDiffer, Unsupported), "applier": (HistoriesDiffer,)},
}
"""The errors in which a producer and an applier may end once the trouble has happened."""

TROUBLES: Final = tuple(EXPLAINED)
FORKS: Final = ("fork", "relay")  # a producer may go on without what its source lacks
DIVIDED: Final = ("writers", "relay", "fork")  # some appliers have several writers
FORKS_REFUSED: Final = (
    rules.Rule.FORK_WITHOUT_PREPARE,
    rules.Rule.FORK_WITHOUT_COMMIT,
    rules.Rule.FORK_OF_ANOTHER_SERVER,
)
