"""One run: a source, its Kafka, up to two producers, of which the newer counts, and two targets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from connector.errors import BrokerUnavailable, Fenced, HistoriesDiffer
from connector.log.epochs.control import EpochRecord, trapped_of
from connector.log.epochs.fork import Range
from connector.log.epochs.loads import LoadRequest, is_unfinished, loaded_after, outstanding, targets_with_unfinished
from connector.log.ids import Seqno
from tests.unit.log.model.loads.producer import Producer, Settings, ask, read_control
from tests.unit.log.model.loads.publishing import Killed
from tests.unit.log.model.loads.source import NAME, Source
from tests.unit.log.model.loads.target import BY_HAND, Misled, NotLoaded, Stopped, Target
from tests.unit.log.model.simulation.kafka import CONTROL, EVENTS, Kafka


class LoadService:
    """The state of a run.

    Args:
        trouble: what may happen beside the ordinary.
    """

    source: Source
    settings: Settings

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble
        self.kafka = Kafka(1)
        self.producers: list[Producer] = []
        self.targets: list[Target] = []
        self.loads = 0  # that were asked for
        self.repairs: dict[str, frozenset[int]] = {}  # the keys of each

    def start(self) -> Producer:
        """Start a producer; at most one goes on beside it."""
        self.producers = [*self.producers[-1:], Producer(self.kafka, self.source, self.settings)]
        return self.producers[-1]

    def go_on(self, which: int, turns: int, lives: int | None = None, meanwhile: Sequence[Any] = ()) -> None:
        """A producer takes some turns; if there is none, a new one."""
        producer = self.producers[which % len(self.producers)] if self.producers else self.start()
        producer.publisher.lives = lives
        self.source.meanwhile = deque(meanwhile)
        try:
            for _ in range(turns):
                producer.step()
        except (Fenced, Killed, HistoriesDiffer):
            self.producers.remove(producer)
        self.source.meanwhile.clear()

    def ask(self, *targets: str, cancel: bool = False) -> None:
        """Ask for a load for some targets, or for the end of the newest."""
        self.kafka.tell_all()
        try:
            control = read_control(self.kafka)
        except BrokerUnavailable:
            return
        number = self.loads if cancel else self.loads + 1
        newest = control.load_requests.get(NAME)
        if cancel and newest is not None:
            wanted = newest.targets
        else:
            wanted = targets_with_unfinished(NAME, targets, control.load_requests, control.loads, control.trapped)
        request = LoadRequest(
            table=NAME,
            load=f"load-{number}",
            asked_at=number,
            asked_by="someone@somewhere",
            cancel=cancel,
            targets=wanted,
        )
        if ask(self.kafka, request):
            self.loads = number

    def repair(self, keys: Iterable[int], *targets: str) -> bool:
        """Ask for a repair of some keys, and of those that differ on the targets, as `thl verify --repair` does.

        Returns:
            False if it is refused: there is nothing to mend, or a load mends it.
        """
        self.kafka.tell_all()
        try:
            control = read_control(self.kafka)
        except BrokerUnavailable:
            return False
        state = control.loads.get(NAME)
        if outstanding(control.load_requests.values(), control.loads, control.trapped) or (
            state is not None and is_unfinished(state, control.trapped)
        ):
            return False
        differ = {target.now.lacks for target in self.targets if target.whole and target.now.lacks is not None}
        wanted = frozenset({*keys, *differ})
        number = self.loads + 1
        request = LoadRequest(
            table=NAME,
            load=f"load-{number}",
            asked_at=number,
            asked_by="someone@somewhere",
            targets=targets,
            keys=tuple((str(key),) for key in sorted(wanted)),
            key_columns=("id int  ",),
        )
        asked = bool(wanted) and ask(self.kafka, request)
        if asked:
            self.loads = number
            self.repairs[request.load] = wanted
        return asked

    def apply(self, target: Target, events: int) -> None:
        """A target applies some events; one that stands stopped at one begins again."""
        if isinstance(target.stopped, Misled):
            return
        if target.stopped is not None:
            target.crash()
            target.stopped = None
        trapped = self._trapped()
        try:
            target.prove(trapped)
            while (refused := self._follow(target, events, trapped)) is not None and self._is_loaded_after(
                refused, target
            ):
                target.crash()
                target.stopped, target.sets_aside_at = None, refused
        except Misled as error:
            self._stop(target, error)

    def _follow(self, target: Target, events: int, trapped: tuple[Range, ...]) -> int | None:
        """Apply events; return the one at which the target stops."""
        for entry in self.kafka.partition(EVENTS).read(target.now.offset, events):
            try:
                target.accept(entry.value, trapped)
            except Stopped as error:
                self._stop(target, error)
                return int(entry.value.seqno)
            target.now.offset = entry.offset + 1
            self._hold(target)
            if entry.value.seqno == target.sets_aside_at:
                target.commit()
        return None

    def _is_loaded_after(self, seqno: int, target: Target) -> bool:
        try:
            control = read_control(self.kafka)
        except BrokerUnavailable:
            return False
        return NAME in loaded_after(
            Seqno(seqno), target.id, control.load_requests.values(), control.loads, control.trapped
        )

    def _stop(self, target: Target, error: Stopped) -> None:
        """Hold that a target stops only for a reason that there is."""
        if isinstance(error, Misled):
            assert self.trouble == "fork of loads", "a target is refused without a fork"
        elif isinstance(error, NotLoaded):
            assert self.trouble == "partial images of loads", "a target lacks columns that the log has"
        else:
            assert target.now.lacks is not None, f"a target stops: {error}"
        target.stopped = error

    def _trapped(self) -> tuple[Range, ...]:
        records = [entry.value[1] for entry in self.kafka.partition(CONTROL).readable]
        return trapped_of(record for record in records if isinstance(record, EpochRecord))

    def _hold(self, target: Target) -> None:
        """Hold that a whole table is as the source's was at the same position."""
        if target.whole:
            expected, found = (dict(rows) for rows in (self.source.states[target.now.number], target.now.rows))
            lacks = target.now.lacks
            if lacks is not None and not target.now.written:
                expected.pop(lacks, None)
            elif lacks is not None and found.get(lacks) == BY_HAND:
                expected.pop(lacks, None)
                found.pop(lacks)
            assert found == expected, "a table that is whole is not as the source's"
