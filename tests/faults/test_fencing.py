"""The older of two producers or appliers writes nothing after the newer has begun, also after a long stop.

The older one is awake and the first to see an event, or stopped by SIGSTOP: anywhere, in the middle of an event, a
COPY, a commit. The newer one takes over and makes progress; the older one continues, and ends with its reason. One
target's own lock is different: SQLite's older applier holds the file while it is stopped within a transaction, so
the newer one waits, and says so.

The applier that takes over in one case is the one that is stopped in the next, so that Spark starts once a case.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from connector.demo.stage import Worker
from connector.errors import Fenced
from tests.faults import killing
from tests.faults.rig import CLOCK, Rig, rig, signalled, stopped

pytestmark = [pytest.mark.servers, pytest.mark.faults, pytest.mark.timeout(1500), pytest.mark.long]

# Where the producer and where the applier sleep; an empty name: wherever they are. The passages leave the newer
# applier some seconds before its own sleep comes: asleep, it may hold what the older one has to ask of the target.
SLEEPS: Final = (
    ("", ""),
    ("produce.mid_event_before_commit:2", "target.mid_stage:150"),
    ("produce.before_commit:5", "target.before_commit:60"),
)


@pytest.mark.parametrize(
    ("target", "sleeps"),
    [
        ("postgres", SLEEPS[:2]),
        ("postgres", SLEEPS),
        ("sqlite", SLEEPS),
    ],
)
def test_older_producer_writes_nothing_after_the_newer_begins(
    target: str, sleeps: Sequence[tuple[str, str]], tmp_path: Path
) -> None:
    with rig(tmp_path, target) as made:
        made.start()
        _awake_and_first_to_see_an_event(made)
        for number, (produce, apply) in enumerate(sleeps):
            # The applier first: it sleeps at its point only while something comes to it.
            applier = made.applier
            _asleep(made, applier, anywhere=not apply)
            if produce:
                killing.process(made, made.producer, "producer", THL_STOP_POINT=produce)
            if "mid_event" in produce:
                made.flood()
            producer = made.producer
            _asleep(made, producer, anywhere=not produce)

            _newer(made, "produce")
            newer = _newer(made, "apply", sleeps[number + 1][1] if number + 1 < len(sleeps) else "")
            _taken_over(made, newer, locked=target == "sqlite" and bool(apply))
            made.tell(f"the newer ones have taken over from {produce or 'anywhere'}, {apply or 'anywhere'}")

            for worker, who in ((producer, "a newer producer"), (applier, "applier")):
                signalled(worker, signal.SIGCONT)
                _ended_as_fenced(made, worker, who)
        made.progress()
        made.finish()
        tokens = made.witness.tokens()
        assert tokens == sorted(set(tokens)), "who had lost the target wrote again"
        assert len(tokens) == len(sleeps) + 2


def _awake_and_first_to_see_an_event(made: Rig) -> None:
    """Both have the same position and the newer one is stopped: only the token fences the older one."""
    made.prove()
    older, token = made.applier, made.witness.token()
    newer = _newer(made, "apply", SLEEPS[0][1])
    made.until(lambda: made.witness.token() > token, "the newer one's claim")
    signalled(newer, signal.SIGSTOP)
    seqno = made.witness.look().seqno
    made.resume()
    _ended_as_fenced(made, older, "has claimed the target")
    assert made.witness.look().seqno == seqno
    signalled(newer, signal.SIGCONT)
    made.progress()
    made.tell("the older one, awake, has left an event to the newer one")


def _asleep(made: Rig, worker: Worker, *, anywhere: bool) -> None:
    if anywhere:
        CLOCK.sleep(made.random.uniform(0, 0.5))
        signalled(worker, signal.SIGSTOP)
    made.until(lambda: stopped(worker), f"{worker.name} sleeps")


def _taken_over(made: Rig, newer: Worker, *, locked: bool) -> None:
    """The newer one makes progress; or, where the older one sleeps on the lock of its file, waits and says so."""
    goal = made.witness.look().seqno + 5

    def waits() -> bool:
        return made.postgres is None and "waiting for another applier" in newer.log_tail()

    made.until(lambda: waits() or (not locked and made.witness.look().seqno >= goal), "the newer one takes over")


def _newer(made: Rig, name: str, stop_point: str = "") -> Worker:
    worker = made.worker(name, {"THL_STOP_POINT": stop_point} if stop_point else {})
    made.become(worker)
    worker.start()
    return worker


def _ended_as_fenced(made: Rig, worker: Worker, who: str) -> None:
    made.until(lambda: not worker.running, f"the end of the older {worker.name}")
    assert worker.exit_code == Fenced.exit_code, f"{worker.name}: {worker.exit_code}\n{worker.log_tail()}"
    assert who in worker.log_tail()
