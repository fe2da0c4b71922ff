"""What goes wrong with the applier, its relay and the target."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from threading import Event, Thread
from typing import Final

import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.integration.alerts.fleet import Fleet
from tests.integration.alerts.trouble import Troubles
from tests.integration.runbooks.test_full_disks import fill
from tests.support.producing import until

TROUBLES = Troubles()
LAGS: Final = ("ThlApplierLag", "ThlApplierLagLarge", "ThlApplierStuck")  # of an applier that does not go on


@TROUBLES.fires("ThlApplierDown")
def the_applier_has_ended(fleet: Fleet) -> Iterator[None]:
    fleet.applier.stop()
    yield
    fleet.apply()


@TROUBLES.fires(*LAGS)
def the_applier_waits_for_a_lock(fleet: Fleet) -> Iterator[None]:
    with fleet.locked(fleet.table), fleet.busy_source():
        yield


@TROUBLES.fires("ThlStateUnknown", besides=("ThlApplierDown",))
def the_target_does_not_answer(fleet: Fleet) -> Iterator[None]:
    fleet.postgres.stop()
    yield
    fleet.postgres.start()


@TROUBLES.fires("ThlStageRestarts", besides=("ThlStateUnknown", "ThlApplierDown", "ThlRestarts", *LAGS))
def the_target_comes_and_goes(fleet: Fleet) -> Iterator[None]:
    """In between an event is applied, so that the pauses between retries are short again."""
    while "ThlStageRestarts" not in fleet.firing():
        enough, seqno = _stage_restarts(fleet) + 6, _applied(fleet)
        fleet.postgres.stop()
        until(lambda: _stage_restarts(fleet) >= enough)  # noqa: B023
        fleet.postgres.start()
        fleet.insert()
        until(lambda: _applied(fleet) > seqno)  # noqa: B023
    yield


def _stage_restarts(fleet: Fleet) -> float:
    found = fleet.alarms.query('sum(thl_restarts_total{job="thl-apply"}) or vector(0)')
    return float(found[0]["value"][1])


def _applied(fleet: Fleet) -> int:
    ((seqno,),) = fleet.on_target("SELECT seqno FROM thl.thl_position")
    return int(seqno)


@TROUBLES.fires("ThlTargetInconsistent", besides=("ThlRestarts",))  # each quarantine is another claim
def a_table_is_quarantined(fleet: Fleet) -> Iterator[None]:
    """Somebody has deleted a row of the target; a load mends it."""
    fleet.on_target(f"DELETE FROM {fleet.table} WHERE id = 1")
    fleet.sql(f"UPDATE {fleet.table} SET v = 'changed' WHERE id = 1")
    yield
    loaded = fleet.thl("load", fleet.table, "--wait")
    assert loaded.returncode == 0, loaded.stderr


@TROUBLES.fires("ThlCommitOpen", besides=("ThlApplierDown", "ThlRestarts", *LAGS))
def the_applier_dies_within_a_commit_of_two_writers(fleet: Fleet) -> Iterator[None]:
    fleet.applier.stop()
    dies = fleet.program("apply", THL_METRICS__PORT=fleet.ports["thl-apply"], THL_CRASH_POINT="target.after_channel:1")
    fleet.start(dies, "thl-apply")
    fleet.sql(
        "SET SESSION cte_max_recursion_depth = 10000",
        f"INSERT INTO {fleet.table} (v) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)"
        " SELECT concat('row ', i) FROM n",
    )
    until(lambda: not dies.running)
    dies.kill()
    yield
    fleet.apply()


@TROUBLES.fires("ThlEventsDeleted", besides=("ThlApplierDown", "ThlStateUnknown", "ThlRestarts", *LAGS))
def kafka_lacks_what_a_restored_target_needs(fleet: Fleet) -> Iterator[None]:
    """The relay has it, and the runbook applies from there."""
    fleet.applier.stop()
    backup = f"{fleet.service}_backup"
    _alone(fleet, f"CREATE DATABASE {backup} TEMPLATE {fleet.service}")
    fleet.insert()
    fleet.insert()
    fleet.apply()
    fleet.applier.stop()
    _delete_events(fleet)
    fleet.insert()
    _alone(fleet, f"DROP DATABASE {fleet.service} WITH (FORCE)")
    _alone(fleet, f"ALTER DATABASE {backup} RENAME TO {fleet.service}")
    yield
    applied = fleet.thl("apply", "--relay", str(fleet.relay))
    assert applied.returncode == 0, applied.stderr
    fleet.apply()


def _alone(fleet: Fleet, statement: str) -> None:
    """Run a statement that no session of the database may disturb; `thl serve` has one now and then."""

    def is_done() -> bool:
        try:
            fleet.on_target(statement, database="postgres")
        except psycopg.errors.ObjectInUse:
            return False
        return True

    until(is_done)


def _delete_events(fleet: Fleet) -> None:
    """Delete every event that Kafka has, as retention does; Kafka's own marker after the last one stays."""
    topic, kafka = fleet.config().topic, {"bootstrap.servers": fleet.kafka.bootstrap}
    consumer = Consumer({**kafka, "group.id": "none"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.close()
    admin = AdminClient(kafka)
    for deleted in admin.delete_records([TopicPartition(topic, 0, end - 1)]).values():
        deleted.result(30)


@TROUBLES.fires("ThlRelayDiskLow")
def the_disk_of_the_relay_is_nearly_full(fleet: Fleet) -> Iterator[None]:
    if fleet.disk is None:
        pytest.skip("no file system can be mounted here, so no disk was filled")
    filler = fill(fleet.disk, 4_900_000_000)
    try:
        yield
    finally:
        filler.unlink()


@TROUBLES.fires("ThlJvmShortOfMemory")
def the_jvm_does_nothing_but_collect(fleet: Fleet) -> Iterator[None]:
    """It is asked to (`jcmd GC.run`): one that is really short of memory may as well end."""
    if shutil.which("jcmd") is None:
        pytest.skip("this machine has no jcmd, which opens the JVM's socket")
    family = psutil.Process(fleet.applier.pid).children(recursive=True)
    (jvm,) = [one.pid for one in family if "SparkSubmit" in " ".join(one.cmdline())]
    subprocess.run(["jcmd", str(jvm), "VM.version"], capture_output=True, check=True)
    ended = Event()

    def collect() -> None:
        while not ended.is_set():
            with socket.socket(socket.AF_UNIX) as commands:
                commands.connect(f"/tmp/.java_pid{jvm}")
                commands.sendall(b"1\0jcmd\0GC.run\0\0\0")
                while commands.recv(1024):
                    pass

    thread = Thread(target=collect)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
