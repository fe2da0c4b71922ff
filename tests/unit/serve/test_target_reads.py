"""A target that never answers keeps neither the other targets nor the end of the process waiting."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from threading import enumerate as threads

import pytest

from connector.clock import SystemClock
from connector.serve.services import ServedTarget, served_services
from connector.serve.target_reads import TargetReads
from connector.status.collect import Observation
from connector.status.report import ServiceState
from tests.support.clock import PATIENCE
from tests.support.serving import config, observation

(SERVICE,) = served_services([(Path(f"{name}.yaml"), config(target=name)) for name in "ab"])


def states(reads: TargetReads) -> list[ServiceState]:
    return [found.status.applier.state for _, found in reads.read("shop", SERVICE.targets)]


def test_frozen_target_is_unknown_until_it_answers_and_is_not_read_twice() -> None:
    thawed, asked = Event(), []

    def read(target: ServedTarget) -> Observation:
        asked.append(target.name)
        if target.name == "b":
            assert thawed.wait(PATIENCE)
        return observation()

    reads = TargetReads(read, SystemClock(), wait=0.1)
    for _ in range(2):
        assert states(reads) == [ServiceState.ONLINE, ServiceState.UNKNOWN]
    assert sorted(asked) == ["a", "a", "b"]
    assert all(thread.daemon for thread in threads() if thread.name.startswith("read-shop"))
    thawed.set()
    reads = TargetReads(read, SystemClock(), wait=PATIENCE)
    assert states(reads) == [ServiceState.ONLINE, ServiceState.ONLINE]


def test_what_a_reading_raises_is_raised() -> None:
    def read(target: ServedTarget) -> Observation:
        raise ZeroDivisionError(target.name)

    with pytest.raises(ZeroDivisionError):
        TargetReads(read, SystemClock()).read("shop", SERVICE.targets)
