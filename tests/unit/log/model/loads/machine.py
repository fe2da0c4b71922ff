"""What may happen while tables are loaded, in any order, and what must hold whatever happens.

The rules, each of which `test_load_rules_matter` breaks alone.

Of a round:
- Without a lock its views begin once all that the log has is visible; with one, once all commits are.
- Its position is the end of the binary log after the views.
- Keys that the stream changes before the position are left out.
- A beginning before which the stream changed keys gets no rows.
- DDL or a partial image before the position spoils it.
- The stream waits at the position until the rows are published.
- It belongs to the loads for which it was opened.
- It ends with the stream.

Of the log:
- How far a load is, is recorded after its rows.
- The end of a repair is recorded with its event, so that it is made once.
- A fork traps the events of loads after the first trapped transaction, and a load that had some begins again.

Of a target:
- A table that is loaded is changed by upserts; what is not there is not missed.
- The keys of rows that are written meanwhile are marked: rows of the load, and whole rows of the stream.
- Marks begin with the load, and are stored with the rows.
- A changed key of a row that is not marked stops, if the image lacks columns.
- At the end rows without a mark are deleted; from there on what is not there is missed.
- A load for others is left out. One that replaces a load that has not ended is for the targets of that one, too.
- One that stands stopped at an event leaves the table out from there, if a load of it begins later.
- The rows of a repair replace whatever is there; its deletes may find nothing. Everything else stays strict.

Held after each event that a target applies: a whole table is as the source's was there, but for a key that somebody
has changed on the target, until it is repaired. Held at the end: each load ends, and each target's table is whole after
another load, and equal after a repair; only one that has applied what a fork left is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from connector.log.epochs.loads import LoadState
from tests.unit.log.model.loads.acts import KEYS, TARGETS, act, row_acts, settings, wrong
from tests.unit.log.model.loads.producer import Settings, read_control
from tests.unit.log.model.loads.service import LoadService
from tests.unit.log.model.loads.source import Source, Table
from tests.unit.log.model.loads.target import BY_HAND, Misled, Target, Wrong
from tests.unit.log.model.simulation.scenario import Rule, rule

LOAD_TROUBLES: Final = ("loads", "partial images of loads", "fork of loads")
MOST_TURNS: Final = 400


@rule(
    lambda rng: (
        settings(rng),
        [key for key in range(KEYS) if rng.random() < 0.6],
        [wrong(rng) for _ in range(4)],
        rng.random() < 0.6,
    )
)
def begin(
    service: LoadService, settings: tuple[Any, ...], keys: list[int], wrong: list[list[Wrong]], ask: bool
) -> None:
    """The source and one target have the same rows; another target leaves the table out."""
    rows: Table = dict.fromkeys(keys, (1, 1))
    service.source = Source(rows)
    service.settings = Settings(*settings)
    lake, pond = TARGETS
    service.targets = [
        Target(lake, rows, left_out=False, wrong=wrong, repairs=service.repairs),
        Target(pond, rows, left_out=True, repairs=service.repairs),
    ]
    if ask:
        service.ask()


@rule(lambda rng: ([act(rng) for _ in range(rng.between(2, 10))],))
def life_goes_on(service: LoadService, acts: Sequence[tuple[Any, ...]]) -> None:
    """Each does a little, in any order; each may be killed at any moment."""
    for kind, *arguments in acts:
        if kind == "source":
            for act in arguments[0]:
                _source_acts(service, *act)
        elif kind == "producer":
            which, turns, lives, meanwhile = arguments
            service.go_on(which, turns, lives, [_plain(service, one) for one in meanwhile])
        elif kind == "target":
            which, events, commits = arguments
            service.apply(service.targets[which], events)
            if commits:
                service.targets[which].commit()
        elif kind == "ask":
            cancel, targets = arguments
            service.ask(*targets, cancel=cancel)
        elif kind == "repair":
            keys, targets = arguments
            service.repair(keys, *targets)
        elif kind == "kill":
            del service.producers[arguments[0] :]
        elif kind == "crash":
            service.targets[arguments[0]].crash()


def _source_acts(service: LoadService, *act: Any) -> None:
    service.source.act(*_plain(service, act))


def _plain(service: LoadService, act: tuple[Any, ...]) -> tuple[Any, ...]:
    """An act of the source; images are partial only where that is the trouble."""
    if act[0] != "execute" or service.trouble == "partial images of loads":
        return act
    return act[0], [(*one[:4], False) for one in act[1]], act[2]


@rule()
def producer_is_overtaken(service: LoadService) -> None:
    """A second one starts beside the first."""
    service.start()


@rule(when=lambda service: service.producers)
def stream_breaks(service: LoadService) -> None:
    """The connection to the source is lost."""
    service.producers[-1].broken = True


@rule(lambda rng: (rng.below(2),))
def operator_leaves_the_table_out(service: LoadService, which: int) -> None:
    """As `thl apply --exclude-table` does."""
    service.targets[which].leave_out()
    service.targets[which].commit()


@rule(lambda rng: (rng.below(2), rng.below(KEYS)))
def operator_deletes_a_row(service: LoadService, which: int, key: int) -> None:
    """On the target by hand, which is noticed once the row changes."""
    target = service.targets[which]
    if target.whole and target.now.lacks is None and key in target.now.rows:
        del target.now.rows[key]
        target.now.lacks, target.now.written = key, False
        target.commit()


@rule(
    lambda rng: (rng.below(2), rng.below(KEYS + 3), rng.random() < 0.7),
    when=lambda service: service.trouble != "partial images of loads",
)
def operator_writes_a_row(service: LoadService, which: int, key: int, repairs: bool) -> None:
    """On the target by hand; then perhaps it is repaired."""
    target = service.targets[which]
    if target.whole and target.now.lacks is None:
        target.now.rows[key] = BY_HAND
        target.now.lacks, target.now.written = key, True
        target.commit()
    if repairs:
        service.repair(())


@rule(lambda rng: (rng.below(60),), when=lambda service: service.source.rows, trouble="partial images of loads")
def last_row_becomes_the_first(service: LoadService, value: int) -> None:
    """A row that a load reads late changes, then its key does, to one that a load reads early; in images with gaps."""
    last = max(service.source.rows)
    first = next((key for key in range(KEYS) if key not in service.source.rows), last)
    service.source.execute([("set", last, last, value, True)], True)
    service.source.execute([("move", last, first, value, True)], True)


@rule(
    lambda rng: (row_acts(rng, 1),),
    when=lambda service: service.source.log and any(one.loads._round for one in service.producers),
    trouble="fork of loads",
)
def source_fails_over_within_a_round(service: LoadService, acts: Sequence[Any]) -> None:
    """The new source lacks a transaction before the round's position, and has another one there."""
    service.source.fail_over(1)
    _source_acts(service, "execute", acts, True)


@rule(lambda rng: (rng.one_of((0, 1, 1, 2, 3)),), trouble="fork of loads")
def source_fails_over(service: LoadService, lost: int) -> None:
    """A replica that may have lagged becomes the source."""
    service.source.fail_over(min(lost, len(service.source.log)))


RULES: Final[tuple[Rule, ...]] = tuple(
    function.rule  # type: ignore[attr-defined]
    for function in (
        begin,
        life_goes_on,
        producer_is_overtaken,
        stream_breaks,
        operator_leaves_the_table_out,
        operator_deletes_a_row,
        operator_writes_a_row,
        last_row_becomes_the_first,
        source_fails_over,
        source_fails_over_within_a_round,
    )
)


def end(service: LoadService) -> None:
    """Everything visible is published and applied; whoever lacks the table gets another load."""
    service.producers.clear()
    service.start()
    for again in range(2):
        _publishes_all(service)
        service.kafka.tell_all()
        control = read_control(service.kafka)
        states = control.loads.values()
        assert all(one.state is not LoadState.STOPPED for one in states), f"a load has stopped: {states}"
        for target in service.targets:
            service.apply(target, len(service.source.states) + MOST_TURNS * 10)
        able = [one for one in service.targets if not isinstance(one.stopped, Misled)]
        lacking = [one for one in able if one.stopped is not None or not one.whole]
        if not lacking:
            _mends(service, able)
            return
        going = [one for one in lacking if one.stopped is None and one.now.loading is not None]
        cancelled = any(one.cancel for one in control.load_requests.values())
        # A fork may trap the end of a load that a later one has replaced: the target says so, and needs another.
        assert cancelled or control.trapped or not going, "a target waits for the end of a load, and there is none"
        assert not again, "a load has ended, and a target's table is not whole"
        service.ask()


def _mends(service: LoadService, targets: Sequence[Target]) -> None:
    """What differs is equal after a repair."""
    if any(one.now.lacks is not None for one in targets) and service.repair(()):
        _publishes_all(service)
        service.kafka.tell_all()
        for target in targets:
            service.apply(target, MOST_TURNS * 10)
        assert all(one.now.lacks is None for one in targets), "what was repaired still differs"


def _publishes_all(service: LoadService) -> None:
    for _ in range(MOST_TURNS):
        service.source.show(service.source.flying)
        if not service.producers:
            service.start()
        if service.producers[-1].idle:
            return
        service.go_on(-1, 1)
    raise AssertionError("a load does not end")


class LoadModel:
    """The rules on a service of their own: the interface for `simulation.scenario`."""

    rules = RULES

    def __init__(self, trouble: str) -> None:
        self.trouble = trouble
        self.service = LoadService(trouble)

    def check(self) -> None:
        """Nothing more than what is held whenever a target applies."""

    def end(self) -> None:
        end(self.service)
