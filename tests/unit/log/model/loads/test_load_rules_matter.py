"""Every rule of loads is there for something: broken alone, the model finds what goes wrong.

A rule is broken in the real code where the producer keeps it, in the simulation where the server or a target does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import ANY

import pytest

from connector.errors import ConnectorError
from connector.log.epochs.loads import outstanding
from connector.producer.loads import events, loads
from connector.producer.loads.events import RoundEvents
from connector.producer.loads.loads import TableLoads
from connector.producer.loads.open_round import OpenRound
from tests.unit.log.model.loads import service
from tests.unit.log.model.loads.machine import LoadModel, begin, end
from tests.unit.log.model.loads.producer import Producer
from tests.unit.log.model.loads.publishing import Publisher
from tests.unit.log.model.loads.rounds import Round
from tests.unit.log.model.loads.service import LoadService
from tests.unit.log.model.loads.target import Target
from tests.unit.log.model.simulation.scenario import Rng, ending

Patch = pytest.MonkeyPatch
LOADS, PARTIAL, FORK = "loads", "partial images of loads", "fork of loads"
MOST = 3000  # the rarest is found in some hundred


def without(part: type, name: str) -> Callable[[Patch], None]:
    """A part of the simulation does not keep a rule of its own."""
    return lambda patch: patch.setattr(part, name, False)


def always(value: Any) -> property:
    """A field that keeps its value."""
    return property(lambda _: value, lambda *_: None)


def changed_keys_are_not_left_out(patch: Patch) -> None:
    patch.setattr(events, "without", lambda rows, _: rows)


def a_beginning_has_the_rows_of_its_round(patch: Patch) -> None:
    begun, begins, publishes = {}, TableLoads._begin, RoundEvents.publish

    def begin(self: TableLoads, at: Any, request: Any, table: Any) -> Any:
        state = begins(self, at, request, table)
        begun[request.table] = state
        return state

    def publish(self: RoundEvents, opened: OpenRound, chosen: Any, *more: Any) -> Any:
        if not (opened.all_spoiled or opened.spoiled):
            chosen.update(begun)
        begun.clear()
        return publishes(self, opened, chosen, *more)

    patch.setattr(TableLoads, "_begin", begin)
    patch.setattr(RoundEvents, "publish", publish)


def a_repair_is_recorded_after_its_event(patch: Patch) -> None:
    publishes = RoundEvents.publish

    def publish(self: RoundEvents, opened: OpenRound, chosen: Any, stop: Any, repaired: Any) -> Any:
        later: list[Any] = []
        rows = publishes(self, opened, chosen, stop, lambda *ended: later.append(ended) or [])
        for ended in later:
            self.online.publisher.put(repaired(*ended))
        return rows

    patch.setattr(RoundEvents, "publish", publish)


def ddl_does_not_spoil_a_round(patch: Patch) -> None:
    patch.setattr(OpenRound, "all_spoiled", always(False))


def partial_images_do_not_spoil_a_round(patch: Patch) -> None:
    patch.setattr(OpenRound, "spoiled", property(lambda _: set(), lambda *_: None))


def the_stream_does_not_wait_at_the_place(patch: Patch) -> None:
    split_at_position = TableLoads.split_at_position

    def takes_all(self: TableLoads, items: list[Any]) -> tuple[list[Any], list[Any]]:
        before, after = split_at_position(self, items)
        return before + after, []

    patch.setattr(TableLoads, "split_at_position", takes_all)


def a_round_is_for_any_load(patch: Patch) -> None:
    patch.setattr(OpenRound, "loads", always(SimpleNamespace(get=lambda _: ANY)))


def a_round_does_not_end_with_the_stream(patch: Patch) -> None:
    patch.setattr(TableLoads, "abandon", lambda _: None)


def a_load_goes_on_whatever_is_trapped(patch: Patch) -> None:
    patch.setattr(loads, "outstanding", lambda requests, states, _: outstanding(requests, states))


def a_load_forgets_the_targets_of_the_one_that_it_replaces(patch: Patch) -> None:
    patch.setattr(service, "targets_with_unfinished", lambda table, targets, *_: targets)


def a_stopped_target_does_not_look_for_loads(patch: Patch) -> None:
    patch.setattr(service, "loaded_after", lambda *_: frozenset())


CODE: list[tuple[Callable[[Patch], None], str]] = [
    (changed_keys_are_not_left_out, LOADS),
    (a_beginning_has_the_rows_of_its_round, LOADS),
    (a_repair_is_recorded_after_its_event, LOADS),
    (ddl_does_not_spoil_a_round, LOADS),
    (partial_images_do_not_spoil_a_round, PARTIAL),
    (the_stream_does_not_wait_at_the_place, LOADS),
    (a_round_is_for_any_load, LOADS),
    (a_round_does_not_end_with_the_stream, FORK),
    (a_load_goes_on_whatever_is_trapped, FORK),
    (a_load_forgets_the_targets_of_the_one_that_it_replaces, LOADS),
    (a_stopped_target_does_not_look_for_loads, LOADS),
]
SIMULATED: dict[str, tuple[Callable[[Patch], None], str]] = {
    "a_view_does_not_wait_for_what_the_log_has": (without(Round, "waits_until_consumed_is_visible"), LOADS),
    "a_lock_does_not_wait_for_commits": (without(Round, "lock_waits_for_commits"), LOADS),
    "the_place_is_before_the_view": (without(Round, "place_is_after_the_view"), LOADS),
    "progress_is_recorded_before_the_rows": (without(Publisher, "keeps_the_order"), LOADS),
    "a_fork_does_not_trap_what_loads_read": (without(Producer, "traps_what_loads_read"), FORK),
    "trapped_rows_are_applied": (without(Target, "skips_trapped"), FORK),
    "a_target_is_strict_while_it_loads": (without(Target, "tolerates"), LOADS),
    "a_target_is_tolerant_after_the_end": (without(Target, "strict_after_end"), LOADS),
    "a_target_does_not_sweep": (without(Target, "sweeps"), LOADS),
    "rows_of_loads_are_not_marked": (without(Target, "marks_rows_of_loads"), LOADS),
    "rows_of_the_stream_are_not_marked": (without(Target, "marks_rows_of_the_stream"), LOADS),
    "marks_of_an_earlier_load_count": (without(Target, "marks_begin_with_the_load"), LOADS),
    "a_repair_is_strict": (without(Target, "repairs_by_upserts"), LOADS),
    "a_repair_deletes_nothing": (without(Target, "repairs_delete"), LOADS),
    "marks_are_stored_apart": (without(Target, "stores_marks_with_rows"), LOADS),
    "a_row_that_is_not_loaded_moves": (without(Target, "needs_the_loaded_row"), PARTIAL),
}
RULES = {rule.__name__: (rule, trouble) for rule, trouble in CODE} | SIMULATED


@pytest.mark.long
@pytest.mark.parametrize(("broken", "trouble"), RULES.values(), ids=RULES)
def test_the_model_finds_a_broken_rule_of_loads(
    broken: Callable[[Patch], None], trouble: str, monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    found = (ending(LoadModel(trouble), Rng(f"{trouble} {number}")) for number in range(MOST))
    bad = next(filter(None, found), None)
    assert bad, f"none of {MOST} scenarios shows it"
    assert isinstance(bad.error, (AssertionError, ConnectorError)), bad


def test_rule_that_partial_images_are_not_marked_is_checked(monkeypatch: Patch) -> None:
    """Two in a thousand scenarios find it, which takes too long here."""
    end(stale_row_changes_in_parts())
    monkeypatch.setattr(Target, "marks_whole_rows_only", False)
    with pytest.raises(AssertionError, match="not as the source's"):
        end(stale_row_changes_in_parts())


def stale_row_changes_in_parts() -> LoadService:
    """A row that is wrong on a target, and not loaded yet, changes in a column, then in its key."""
    service = LoadService(PARTIAL)
    begin(service, settings=(1, 1, False, 1, 1), keys=[1, 2, 3], wrong=[[(3, (61, 61))]], ask=True)
    service.go_on(0, 2)
    service.source.execute([("set", 3, 3, 5, True)], True)
    service.source.execute([("move", 3, 0, 6, True)], True)
    return service


@pytest.mark.parametrize("foreign", [("0 UNION SELECT 1",), ("1", "2")])
def test_load_whose_key_in_the_control_topic_is_none_of_its_table_begins_again(
    foreign: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    service = LoadService(LOADS)
    begin(service, settings=(1, 1, False, 1, 1), keys=[1, 2, 3], wrong=[], ask=True)
    service.go_on(0, 1)  # begins, and reads key 1
    (producer,) = service.producers
    ((name, state),) = producer.loads._states.items()
    assert state.after == ("1",)
    producer.loads._changed(replace(state, after=foreign))
    service.go_on(0, 9)
    assert "the load of a table begins again" in caplog.text
    assert producer.loads._states[name].begin > state.begin
    end(service)


def test_load_asked_for_again_within_a_round_is_whole() -> None:
    """The round reads after the key that the earlier load had reached, and the new load takes that for all rows."""
    service = LoadService(LOADS)
    begin(service, settings=(1, 1, False, 1, 1), keys=[1, 2, 3], wrong=[], ask=True)
    service.go_on(0, 1)  # begins, and reads key 1
    service.source.execute([], True)
    service.go_on(0, 1)  # opens a round after key 1, whose position is after this transaction
    service.ask()
    service.go_on(0, 9)
    end(service)
