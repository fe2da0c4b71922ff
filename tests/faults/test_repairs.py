"""`thl verify --repair` is killed with all who take part in it: what was asked for is made, and the target is equal.

Each kill is at a named point. The producer's next process makes what its last one has not; the request is for no
command, so nobody has to ask again. A table without a key shows an event that is applied twice.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pytest

from tests.integration.applier.test_loads_from_mysql import SETTINGS
from tests.integration.applier.test_repair import PostgresCopy, both, damage, fill, writing
from tests.support.apply_process import THL, Process
from tests.support.clock import PATIENCE
from tests.support.producing import Bench, finished, fragments, until
from tests.support.servers.environment import Broker, DatabaseServer, SqlServer

pytestmark = [pytest.mark.servers, pytest.mark.faults, pytest.mark.timeout(1200), pytest.mark.long]

IN_PARTS: Final = {  # a repair is several fragments, in several transactions of Kafka
    "THL_PUBLISH__SHARD_BYTES": "2048",
    "THL_PUBLISH__COMMIT_BYTES": "4096",
    "THL_PUBLISH__FRAGMENT_BYTES": "1024",
}
COLUMNS: Final = {"users": "id, mail, v", "pair": "b, v", "ledger": "n, v"}
REPAIRED: Final = ("users", "pair")


class Rig:
    """A service whose target is kept equal; one producer and one applier, which are started again after each kill."""

    def __init__(self, bench: Bench, postgres: DatabaseServer) -> None:
        self.bench = bench
        fill(bench)
        self.copy = PostgresCopy(bench, postgres, audit=True)
        self.producing = bench.start().loaded()
        self.markers = 0
        self.applying = self._applier()
        self.settle()
        self.copy.query(f"CREATE UNIQUE INDEX by_user ON {self.copy.name('users')} (mail)")

    def _applier(self, **environ: str) -> Process:
        return Process([THL, "apply", "--config", str(self.copy.file)], self.bench.folder, **environ)

    def produce(self, **environ: str) -> None:
        """Start the producer again, after a kill or with a point at which it dies."""
        if self.producing.process.poll() is None:
            assert self.producing.stop() == 0, self.producing.text[-3000:]
        self.producing = self.bench.start(**environ).online()

    def apply(self, **environ: str) -> None:
        """Start the applier again, likewise."""
        self.applying.popen.terminate()
        self.applying.wait()
        self.applying = self._applier(**environ)

    def settle(self) -> None:
        """Wait until the target has all that the source has now."""
        self.markers += 1
        marker = f"marker{self.markers}"
        self.bench.sql(f"CREATE TABLE {self.bench.service}.{marker} (id INT PRIMARY KEY)")
        until(lambda: self.copy.has(marker) or self.applying.popen.poll() is not None)
        assert self.applying.popen.poll() is None, self.applying.log.read_text()[-3000:]

    def thl(self, *arguments: str, **environ: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [THL, *arguments, "--config", str(self.copy.file), "--format", "json"],
            env={**os.environ, **self.bench.environment, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def repair(self, **environ: str) -> subprocess.Popen[str]:
        return self.thl("verify", "--repair", "--stall-timeout", str(PATIENCE), **environ)

    def status(self) -> dict[str, dict[str, Any]]:
        """What `thl load --status` says of the tables that are repaired."""
        asked = self.thl("load", "--status")
        out, err = asked.communicate(timeout=PATIENCE)
        assert asked.returncode == 0, err
        found = {load["table"].partition(".")[2]: load for load in json.loads(out)}
        return {name: found[name] for name in REPAIRED}

    def states(self) -> set[str]:
        return {load["state"] for load in self.status().values()}

    def repairs_in_log(self) -> dict[str, int]:
        """The number of finished events of each table's newest repair."""
        of = {load["load"]: name for name, load in self.status().items()}
        counts = dict.fromkeys(REPAIRED, 0)
        for event in finished(fragments(self.bench.config)):
            metadata: Mapping[str, str] = event[0]["metadata"]
            if metadata.get("load_part") == "repair" and metadata["load"] in of:
                counts[of[metadata["load"]]] += 1
        return counts

    def unfinished(self) -> bool:
        """True if the log ends within a repair."""
        last = fragments(self.bench.config)[-1]
        return last["metadata"].get("load_part") == "repair" and not last["last_frag"]

    def end(self) -> None:
        self.applying.end()
        self.producing.process.kill()
        self.producing.process.wait()


@pytest.fixture(scope="module")
def rig(
    mysql_server: SqlServer,
    kafka_broker: Broker,
    postgres_server: DatabaseServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("repairs")
    made = Rig(Bench(mysql_server, kafka_broker, folder, settings={**SETTINGS, **IN_PARTS}), postgres_server)
    try:
        yield made
    finally:
        made.end()


def ended(command: subprocess.Popen[str]) -> dict[str, Any]:
    """The result of a command that was not killed."""
    out, err = command.communicate(timeout=4 * PATIENCE)
    assert command.returncode == 0, out + err
    found: dict[str, Any] = json.loads(out)
    return found


def made(rig: Rig, command: subprocess.Popen[str]) -> None:
    """The command ends by itself, and says what was repaired."""
    said = ended(command)
    assert (said["verdict"], said["not_repaired"]) == ("equal", {}), said
    assert set(said["repaired"]) == {f"{rig.bench.service}.{name}" for name in REPAIRED}


def died(rig: Rig, *, waits: bool = True) -> None:
    """The producer is dead, and `thl load --status` says which tables it has repaired, and which wait for the next."""
    assert rig.producing.ended() == -signal.SIGKILL, rig.producing.text[-3000:]
    status, made = rig.status(), rig.repairs_in_log()
    assert {name: load["state"] for name, load in status.items()} == {
        name: "ended" if made[name] else "waiting" for name in REPAIRED
    }
    assert not waits or not all(made.values())


def of_producer(point: str) -> Callable[[Rig], None]:
    """The producer is killed at a point of its first round, and started again."""

    def kill(rig: Rig) -> None:
        rig.produce(THL_CRASH_POINT=point)
        command = rig.repair()
        died(rig, waits=point != "load.mid_round")
        # At `load.mid_round` all is queued; how much of it was published meanwhile is up to the publisher's thread.
        assert point == "load.mid_round" or rig.unfinished() is (point == "produce.mid_event_after_commit")
        rig.produce()
        made(rig, command)

    return kill


def of_producer_at_its_end(rig: Rig) -> None:
    """The producer is killed as soon as `thl load --status` says that the repair has ended."""
    before = rig.status()
    command = rig.repair()
    until(lambda: all(now["load"] != before[name]["load"] for name, now in rig.status().items()))
    until(lambda: rig.states() == {"ended"})
    rig.producing.process.kill()
    died(rig, waits=False)
    rig.produce()
    made(rig, command)


def of_applier(point: str) -> Callable[[Rig], None]:
    """The applier is killed at the commit of a repair, and started again."""

    def kill(rig: Rig) -> None:
        rig.apply(THL_CRASH_POINT=point)
        command = rig.repair()
        assert rig.applying.wait() == -signal.SIGKILL
        until(lambda: rig.states() == {"ended"})  # of the log, which has it whatever becomes of a target
        rig.apply()
        made(rig, command)

    return kill


def of_command_before_it_asks(rig: Rig) -> None:
    before = rig.status()
    command = rig.repair(THL_CRASH_POINT="repair.before_request")
    assert command.wait(2 * PATIENCE) == -signal.SIGKILL
    assert rig.status() == before
    made(rig, rig.repair())


def of_command(rig: Rig) -> None:
    """The command is killed when it has asked: the producer makes the repair all the same."""
    command = rig.repair(THL_CRASH_POINT="repair.after_request")
    assert command.wait(2 * PATIENCE) == -signal.SIGKILL
    until(lambda: rig.states() == {"ended"})


def of_command_and_producer(rig: Rig) -> None:
    """Both are killed: the request waits for the next producer."""
    rig.produce(THL_CRASH_POINT="produce.mid_event_before_commit")
    command = rig.repair(THL_CRASH_POINT="repair.after_request")
    assert command.wait(2 * PATIENCE) == -signal.SIGKILL
    died(rig)
    rig.produce()
    until(lambda: rig.states() == {"ended"})


def of_all(rig: Rig) -> None:
    """The next producer is killed, too, and the applier before it has the repair."""
    rig.apply(THL_CRASH_POINT="apply.before_edge")
    rig.produce(THL_CRASH_POINT="produce.mid_event_after_commit")
    command = rig.repair(THL_CRASH_POINT="repair.after_request")
    assert command.wait(2 * PATIENCE) == -signal.SIGKILL
    died(rig)
    rig.produce(THL_CRASH_POINT="load.before_rows")
    died(rig)
    rig.produce()
    assert rig.applying.wait() == -signal.SIGKILL
    until(lambda: rig.states() == {"ended"})
    rig.apply()


KILLS: Final = [
    pytest.param(of_producer("produce.mid_event_after_commit"), id="producer within the event"),
    pytest.param(of_applier("apply.before_edge"), id="applier before its commit"),
    pytest.param(of_command_and_producer, id="command and producer"),
    pytest.param(of_command_before_it_asks, id="command before it asks"),
    pytest.param(of_command, id="command when it has asked"),
    pytest.param(of_producer("load.before_position"), id="producer before the round's position"),
    pytest.param(of_producer("load.before_rows"), id="producer before the event"),
    pytest.param(of_producer("produce.mid_event_before_commit"), id="producer at the event's beginning"),
    pytest.param(of_producer("load.mid_round"), id="producer at the event's end"),
    pytest.param(of_producer_at_its_end, id="producer after the event"),
    pytest.param(of_applier("apply.after_edge"), id="applier after its commit"),
    pytest.param(of_all, id="all of them"),
]


@pytest.mark.parametrize("kill", KILLS)
def test_repair_is_made_once_whoever_is_killed(rig: Rig, kill: Callable[[Rig], None]) -> None:
    with writing(rig.bench):
        damage(rig.copy)
        kill(rig)
    rig.settle()
    assert {load["state"] for load in rig.status().values()} == {"ended"}
    assert all(load["keys"] and load["rows"] for load in rig.status().values())
    assert rig.repairs_in_log() == dict.fromkeys(REPAIRED, 1)
    assert_equal(rig)


def assert_equal(rig: Rig) -> None:
    for table, columns in COLUMNS.items():
        source, target = both(rig.copy, table, columns)
        assert target == source, table
    assert rig.copy.position() == (1,)
    ((events, last),) = rig.copy.query("SELECT count(*), max(seqno) FROM thl.thl_applied")
    assert events == last + 1
