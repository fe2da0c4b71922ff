"""`thl serve` beside a real producer, Kafka, MySQL and SQLite: what it shows is what `thl status` prints."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.apply_process import THL, Process
from tests.support.producing import Bench, last_seqno, until
from tests.support.servers.environment import Broker, SqlServer
from tests.support.serving import ask, free_port


@pytest.fixture(scope="module")
def bench(mysql_server: SqlServer, kafka_broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    found = Bench(mysql_server, kafka_broker, tmp_path_factory.mktemp("serve"))
    found.settings["THL_TARGET__URL"] = f"sqlite:///{found.folder}/target.db"
    found.settings["THL_APPLY__CONTINUOUS"] = "false"
    found.settings["THL_APPLY__CHECKPOINT_DIR"] = str(found.folder / "spark")
    found.settings["THL_SOURCE__HEARTBEAT_TABLE"] = f"{found.service}.heartbeat"
    found.make_table()
    return found


def apply(bench: Bench, seqno: int) -> None:
    """Apply the log up to an event."""
    process = Process([THL, "apply", "--to-seqno", str(seqno)], bench.folder, **bench.environment)
    assert process.wait() == 0, process.log.read_text()


@contextmanager
def served(bench: Bench, *options: str) -> Iterator[int]:
    """`thl serve` as a process; yields its port."""
    port = free_port()
    environment = {**os.environ, **bench.environment, "THL_SERVE__PORT": str(port), "THL_SERVE__INTERVAL": "0.2"}
    log = bench.folder / "serve.log"
    with log.open("ab") as out:
        process = subprocess.Popen([THL, "serve", *options], env=environment, stdout=out, stderr=out)

    def ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return ask(port, "/readyz").status == 200
        except OSError:
            return False

    try:
        until(ready)
        yield port
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()


def shown(port: int, bench: Bench) -> Any:
    return json.loads(ask(port, f"/api/services/{bench.service}").text)


def status(bench: Bench) -> Any:
    environment = {**os.environ, **bench.environment}
    done = subprocess.run([THL, "status", "--format", "json"], env=environment, capture_output=True, check=False)
    return json.loads(done.stdout)


def metric(port: int, name: str, **labels: str) -> float:
    text = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    (line,) = [line for line in ask(port, "/metrics").text.splitlines() if line.startswith(f"{name}{{{text}}}")]
    return float(line.rpartition(" ")[2])


def test_served_numbers_are_those_of_status_and_outlive_the_producer(bench: Bench) -> None:
    with bench.start() as producer, served(bench) as port:
        producer.loaded()
        applied = last_seqno(bench)
        apply(bench, applied)
        bench.sql(f"INSERT INTO {bench.service}.t (v) VALUES ('third')")
        until(lambda: shown(port, bench)["log"]["lastSeqno"] == applied + 1)
        found, printed = shown(port, bench), status(bench)
        changing = {"secondsBehind", "relativeLatency", "secondsUntilPurge", "catchUpSeconds"}
        for end, one in (("producer", found["producer"]), ("applier", found["targets"][0]["applier"])):
            assert {name: one[name] for name in one.keys() - changing} == {
                name: printed[end][name] for name in printed[end].keys() - changing
            }
        assert found["producer"]["state"] == "ONLINE"
        assert found["log"]["epochs"][0]["epoch"] == 1
        assert found["targets"][0]["applier"]["eventsBehind"] == 1
        labels = {"service": bench.service}
        assert metric(port, "thl_service_producer_up", **labels) == 1
        assert metric(port, "thl_service_applier_lag_events", **labels, target="target") == 1
        page = ask(port, f"/services/{bench.service}").text
        assert f"events 0 to {applied + 1}" in page
        assert "secret" not in page
        # With the producer dead its numbers are still there.
        producer.process.kill()
        producer.process.wait()
        until(lambda: metric(port, "thl_service_producer_up", **labels) == 0)
        assert metric(port, "thl_service_published_seqno", **labels) == applied + 1
        assert shown(port, bench)["health"] == "down"
        assert "no producer reads the source&#39;s binary log" in ask(port, f"/services/{bench.service}").text
        # It has claimed nothing: another producer goes on, in the next epoch.
        with bench.start() as again:
            again.online()
            until(lambda: metric(port, "thl_service_producer_up", **labels) == 1)
            until(lambda: metric(port, "thl_service_epoch", **labels) == 2)
