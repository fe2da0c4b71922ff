"""`python -m tests.bench.serving`: the CPU that `thl serve` takes for one service, and that of its endpoints.

A producer runs on a MySQL and a Kafka of the sandbox, with a SQLite target that nothing is applied to. The process is
measured while nothing is asked, and by requests to each endpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from tests.support.apply_process import THL
from tests.support.producing import Bench, until
from tests.support.servers.environment import kafka_for_tests, mysql_for_tests
from tests.support.serving import ask, free_port


def cpu(process: psutil.Process) -> float:
    """Seconds of CPU that a process has taken."""
    times = process.cpu_times()
    return times.user + times.system


def measured(bench: Bench, seconds: float, requests: int) -> dict[str, float]:
    """Measure a server at its default interval."""
    port = free_port()
    environment = {**os.environ, **bench.environment, "THL_SERVE__PORT": str(port)}
    with (bench.folder / "serve.log").open("wb") as log:
        started = subprocess.Popen([THL, "serve"], env=environment, stdout=log, stderr=log)
    process = psutil.Process(started.pid)

    def ready() -> bool:
        try:
            return ask(port, "/readyz").status == 200
        except OSError:
            return False

    try:
        until(ready)
        found = {"cpu_to_start_s": cpu(process), "memory_mb": process.memory_info().rss / 1e6}
        before, began = cpu(process), time.monotonic()
        time.sleep(seconds)
        found["idle_percent_of_a_core"] = 100 * (cpu(process) - before) / (time.monotonic() - began)
        for name, path in {
            "metrics": "/metrics",
            "page": f"/services/{bench.service}",
            "api": f"/api/services/{bench.service}",
        }.items():
            before, began = cpu(process), time.monotonic()
            for _ in range(requests):
                assert ask(port, path).status == 200
            spent = cpu(process) - before - (time.monotonic() - began) * found["idle_percent_of_a_core"] / 100
            found[f"{name}_ms_of_cpu"] = 1000 * spent / requests
        found["memory_mb_at_the_end"] = process.memory_info().rss / 1e6
    finally:
        started.terminate()
        started.wait(30)
    return found


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the idle server is measured")
    parser.add_argument("--requests", type=int, default=300, help="requests to each endpoint")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        with mysql_for_tests(folder / "mysql") as mysql, kafka_for_tests(folder / "kafka") as kafka:
            bench = Bench(mysql, kafka, folder)
            bench.settings["THL_TARGET__URL"] = f"sqlite:///{folder}/target.db"
            bench.make_table()
            with bench.start() as producer:
                producer.loaded()
                print(json.dumps(measured(bench, options.seconds, options.requests), indent=2))


if __name__ == "__main__":
    main()
