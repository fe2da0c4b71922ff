"""The newest load of each table, and what keeps those that are under way from going on, for `thl load --status`.

What the producer waits for is computed from the source and the log, as the producer does: the log does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connector.config.model import Config
from connector.errors import escaped
from connector.log.epochs.newest_load import NewestLoad
from connector.status.collect import collect
from connector.status.report import End, LagLimits, ServiceState, Status


@dataclass(frozen=True, slots=True)
class LoadsStatus:
    """The state of loads.

    Args:
        loads: the newest load of each table.
        status: the producer's numbers; None: no load is under way.
    """

    loads: Sequence[NewestLoad]
    status: Status | None

    @classmethod
    def of(cls, config: Config, loads: Sequence[NewestLoad]) -> LoadsStatus:
        """The state of loads; the source is asked if one is under way."""
        asks = any(load.under_way for load in loads)
        return cls(loads, collect(config, LagLimits(), ends=frozenset({End.PRODUCER})) if asks else None)

    def as_objects(self) -> list[dict[str, object]]:
        """The loads for JSON."""
        return [self._object(load) for load in self.loads]

    def as_text(self) -> str:
        """The loads for people: a line for each, then what all of them wait for."""
        if not self.loads:
            return "no table was loaded, and none was asked for"
        lines = [*map(_line, self.loads), *(() if self.status is None else _conditions(self.status))]
        return "\n".join(map(escaped, lines))

    def _object(self, load: NewestLoad) -> dict[str, object]:
        producer = self.status.producer if self.status and load.under_way else None
        return {
            "table": str(load.table),
            "load": load.load,
            "targets": list(load.targets),
            "state": str(load.state),
            "rows": load.rows,
            "estimate": load.estimate,
            "keys": load.keys,
            "why": load.why,
            "producer": producer.state if producer else None,
            "pause": producer.load_pause.as_object() if producer and producer.load_pause else None,
            "seconds_until_purge": producer.seconds_until_purge if producer else None,
        }


def _line(load: NewestLoad) -> str:
    where = f" on {', '.join(load.targets)}" if load.targets else ""
    of = f" of about {load.estimate}" if load.estimate else ""
    rows = f", {load.rows} rows{of}" if load.rows is not None else ""
    why = f": {load.why}" if load.why else ""
    return f"{load.table}{where}: {'repair, ' if load.keys else ''}{load.state}{rows}{why}"


def _conditions(status: Status) -> Iterator[str]:
    producer = status.producer
    if producer.state is ServiceState.UNKNOWN:
        yield f"it is not known whether loads pause: {'; '.join(one.text for one in status.problems)}"
        return
    if producer.state is ServiceState.OFFLINE:
        yield "no producer reads the source's binary log: loads go on once `thl produce` is started"
    if (pause := producer.load_pause) is not None:
        yield f"no round of a load begins: {pause.why}"
        if pause.hint:
            yield f"-> {pause.hint}"
    left, where = producer.seconds_until_purge, producer.resume
    if left is None:
        yield "the source does not purge its binary log by itself, or it is not known when"
    else:
        yield f"the source keeps the file that the producer needs next for {max(left, 0):.0f} s at least ({where})"
