"""The ways in which processes are killed, always by `kill -9` and under load."""

from __future__ import annotations

import os
import signal
from typing import Final

import psutil

from connector import failpoints as faults
from connector.demo.stage import Worker
from connector.errors import SparkGone, SparkUnavailable
from connector.sandbox.server import Server
from tests.faults.rig import CLOCK, Rig, alive, descendants, signalled
from tests.support.clock import PATIENCE

JVM: Final = "SparkSubmit"
EXECUTOR: Final = "CoarseGrainedExecutorBackend"
# Passed once in the life of a process; all others are passed with every commit.
ONCE: Final = frozenset(
    (
        "produce.after_fence",
        "produce.after_read_log",
        "produce.before_epoch_commit",
        "produce.after_epoch_commit",
        "apply.after_claim",
        "apply.after_handshake",
        "target.after_claim",
    )
)
ONLY_POSTGRES: Final = frozenset(("target.before_merge",))  # elsewhere staging is the transaction itself
SNAPSHOT: Final = (*(point for point in faults.PRODUCE if "snapshot" in point), *faults.LOADS)


def points(target: str) -> list[str]:
    """Every failpoint that a process passes with this target."""
    passed = [point for point in faults.POINTS if target == "postgres" or point not in ONLY_POSTGRES]
    return [*passed, *(faults.DDL if target == "mysql" else ())]


def command(point: str) -> str:
    """The process that passes a failpoint: produce or apply."""
    return "produce" if point in {*faults.PRODUCE, *faults.LOADS} else "apply"


def arm(rig: Rig, point: str, passage: int = 1) -> Worker:
    """Start a worker that is killed at a passage of a failpoint."""
    name = command(point)
    worker = rig.producer if name == "produce" else rig.applier
    if worker.running:
        rig.bereave(worker)
        worker.expects_crash = True
        signalled(worker, signal.SIGKILL)
        gone(rig, worker)
    environ = {"THL_CRASH_POINT": f"{point}:{passage}"}
    if "snapshot" in point:
        environ["THL_PUBLISH__COMMIT_BYTES"] = "1024"  # the definitions are several commits
    fresh = rig.worker(name, environ)
    rig.become(fresh)
    fresh.start()
    if "mid_event" in point or "stage" in point:
        rig.flood()
    if point in faults.DDL:
        rig.define()
    if "prepared" in point:
        rig.prepare()  # not part of the load, as an initial load waits for each of them
    return fresh


def crashed(rig: Rig, worker: Worker, point: str) -> None:
    """Wait until the armed worker has been killed."""
    family: dict[int, psutil.Process] = {}

    def ended() -> bool:
        family.update({one.pid: one for one in descendants(worker)})
        return not worker.running

    rig.until(ended, f"the crash at {point}")
    assert worker.exit_code == -signal.SIGKILL, f"{worker.name}: {worker.exit_code} at {point}\n{worker.log_tail()}"
    rig.mourn(family.values())
    rig.count(point)


def again(rig: Rig, name: str, **environ: str) -> None:
    """Start a worker again."""
    fresh = rig.worker(name, environ)
    rig.become(fresh)
    fresh.start()


def crash(rig: Rig, *passages: str) -> None:
    """Kill one process at each of these failpoints in turn; `produce.after_commit:3` is the third passage."""
    for passage in passages:
        point, _, number = passage.partition(":")
        crashed(rig, arm(rig, point, int(number or 1)), point)
    again(rig, command(passages[-1].partition(":")[0]))


def server(rig: Rig, victim: Server, name: str) -> None:
    """Kill a server and start it again at once."""
    victim.kill()
    victim.start()
    rig.count(name)


def process(rig: Rig, worker: Worker, name: str, **environ: str) -> None:
    """Kill a worker alone, at any moment; its child processes have to end by themselves."""
    rig.bereave(worker)
    worker.expects_crash = True
    signalled(worker, signal.SIGKILL)
    gone(rig, worker)
    rig.count(name)
    again(rig, "produce" if worker is rig.producer else "apply", **environ)


def jvm(rig: Rig) -> None:
    """Kill the applier's JVM: the driver has to end with its reason, so that a supervisor can start it again."""
    worker = rig.applier
    worker.expects_crash = True
    (java,) = family(worker, JVM)
    rig.bereave(worker)
    java.kill()
    rig.until(lambda: not worker.running, "the driver's end without its JVM")
    assert worker.exit_code == SparkGone.exit_code, f"{worker.exit_code}\n{worker.log_tail()}"
    assert "Spark's JVM has ended" in worker.log_tail()
    rig.count("JVM")
    again(rig, "apply")


def executor(rig: Rig) -> None:
    """Kill one executor of a Spark of several processes; start the applier on such a Spark if needed."""
    if not rig.cluster and rig.applier.config != rig.cluster_config:
        rig.applier.stop()
        fresh = rig.worker("apply", cluster=True)
        rig.become(fresh)
        fresh.start()
        rig.progress()
    executors = rig.cluster.executors() if rig.cluster else family(rig.applier, EXECUTOR)
    victim = psutil.Process(rig.random.choice(executors).pid)
    rig.mourn(victim.children(recursive=True))
    victim.kill()
    rig.until(lambda: not alive(victim), "the executor's end")
    rig.count("executor")
    rig.progress()


def machine(rig: Rig) -> None:
    """Kill a worker of the cluster with its executors: the applier goes on with the other worker's."""
    assert rig.cluster
    victim = rig.random.choice(rig.cluster.workers)
    rig.mourn(psutil.Process(victim.pid).children(recursive=True))
    victim.kill()
    rig.count("worker")
    rig.progress()
    rig.cluster.start()


def master(rig: Rig) -> None:
    """Kill the cluster's master: executors go on until it is back, which ends what it does not know.

    The driver has to end with its reason, so that a supervisor can start it again.
    """
    assert rig.cluster
    worker = rig.applier
    rig.cluster.master.kill()
    rig.count("master")
    rig.progress()
    worker.expects_crash = True
    rig.bereave(worker)
    rig.cluster.start()
    rig.until(lambda: not worker.running, "the driver's end without its executors")
    assert worker.exit_code == SparkUnavailable.exit_code, f"{worker.exit_code}\n{worker.log_tail()}"
    again(rig, "apply")


def backend(rig: Rig) -> None:
    """Kill the PostgreSQL backend that serves the applier: the server then restarts all of them."""
    found: list[int] = []

    def serves() -> bool:
        found[:] = rig.witness.sessions()
        return bool(found)

    rig.until(serves, "a session of the applier")
    os.kill(found[0], signal.SIGKILL)
    rig.count("PostgreSQL's backend")


def session(rig: Rig) -> None:
    """End the applier's session with a MySQL that is the target: it opens another one."""
    found: list[int] = []

    def serves() -> bool:
        found[:] = rig.witness.sessions()
        return bool(found)

    rig.until(serves, "a session of the applier")
    rig.witness.end_session(found[0])
    rig.count("session with the target")


def family(worker: Worker, word: str) -> list[psutil.Process]:
    """The descendants of a process with a word in their command line."""
    found = []
    for one in descendants(worker):
        try:
            if any(word in part for part in one.cmdline()):
                found.append(one)
        except psutil.NoSuchProcess:
            continue
    return found


def gone(rig: Rig, worker: Worker) -> None:
    """Wait for the end of a killed process and of its children."""
    deadline = CLOCK.monotonic() + PATIENCE
    while worker.running:
        assert CLOCK.monotonic() < deadline, f"{worker.name} does not die"
        CLOCK.sleep(0.01)
