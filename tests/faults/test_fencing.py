"""Of two producers, and of two appliers, the older writes nothing once the newer has begun, also after a long sleep.

The older one is stopped by SIGSTOP in the middle of a produce, a COPY, a commit, or anywhere; the newer one takes over
and makes progress; the older one continues, and ends with its reason. One target's own lock is different: SQLite's
older applier holds the file while it is stopped within a transaction, so the newer one waits, and says so.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from connector.demo.stage import Worker
from connector.errors import Fenced
from tests.faults import killing
from tests.faults.rig import CLOCK, Rig, rig, signalled, stopped

pytestmark = [pytest.mark.servers, pytest.mark.faults, pytest.mark.timeout(400)]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with rig(tmp_path_factory.mktemp(request.param), request.param) as started:
        started.start()
        yield started


@pytest.mark.parametrize(
    ("produce", "apply"),
    [
        pytest.param("produce.before_commit:5", "target.before_commit:3", id="in a commit"),
        pytest.param("produce.mid_event_before_commit:2", "target.mid_stage:4", id="in an event and a COPY"),
        pytest.param("", "", id="anywhere"),
    ],
)
def test_the_older_one_writes_nothing_once_the_newer_has_begun(made: Rig, produce: str, apply: str) -> None:
    made.resume()
    applier = _asleep(made, "apply", apply)  # first: it sleeps where it is only if something comes to it
    producer = _asleep(made, "produce", produce)

    _newer(made, "produce")
    newer = _newer(made, "apply")
    holds_the_file = made.postgres is None and apply.startswith("target.")
    if holds_the_file:
        made.until(lambda: "waiting for another applier's transaction" in newer.log_tail(), "the newer one waits")
    else:
        made.progress()

    signalled(producer, signal.SIGCONT)
    signalled(applier, signal.SIGCONT)
    _ended_as_fenced(made, producer, "a newer producer")
    _ended_as_fenced(made, applier, "applier")
    made.progress()
    made.prove()
    _no_token_came_back(made)


def test_two_that_run_at_once(made: Rig) -> None:
    made.resume()
    producer, applier = made.producer, made.applier
    _newer(made, "produce")
    _newer(made, "apply")
    _ended_as_fenced(made, producer, "a newer producer")
    _ended_as_fenced(made, applier, "applier")
    made.progress()
    made.finish()
    _no_token_came_back(made)


def _asleep(made: Rig, name: str, point: str) -> Worker:
    """A worker that runs into SIGSTOP at a point, or is stopped where it happens to be."""
    if not point:
        worker = made.producer if name == "produce" else made.applier
        CLOCK.sleep(made.random.uniform(0, 0.5))
        signalled(worker, signal.SIGSTOP)
        return worker
    killing.process(made, made.producer if name == "produce" else made.applier, name, THL_STOP_POINT=point)
    worker = made.producer if name == "produce" else made.applier
    if "mid_event" in point:
        made.flood()
    made.until(lambda: stopped(worker), f"{worker.name} stops")
    return worker


def _newer(made: Rig, name: str) -> Worker:
    worker = made.worker(name)
    made.become(worker)
    worker.start()
    return worker


def _ended_as_fenced(made: Rig, worker: Worker, who: str) -> None:
    made.until(lambda: not worker.running, f"the end of the older {worker.name}", 90)
    assert worker.exit_code == Fenced.exit_code, f"{worker.name}: {worker.exit_code}\n{worker.log_tail()}"
    assert who in worker.log_tail()


def _no_token_came_back(made: Rig) -> None:
    """In the order of the seqnos, whoever lost the target never wrote again."""
    tokens = made.witness.tokens()
    assert tokens == sorted(set(tokens)), tokens
