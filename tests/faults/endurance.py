"""`make soak HOURS=24`: everything at once for long, and whether anything grows.

Under the shop's load: definitions change, tables are loaded again, large and XA transactions come, processes and
servers are killed, and source and target are compared in between. Memory, descriptors and threads of each process, and
the files of the run's folder, are read every few seconds. A table at the end has what they had in the first and the
last ten minutes of each life and the growth per ten minutes; exit code 1 where source and target differ, or anything
grows.

With `--kill-every 0` nothing is killed, so that each process lives as long as the run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from threading import Event
from typing import Final

import psutil

from connector.background import in_background
from connector.config.loading import load as load_config
from connector.kafka.log_reader import LogReader
from connector.log.epochs.loads import outstanding
from tests.faults import killing
from tests.faults.growth import Lives, Sample, growing, measured, table
from tests.faults.rig import CLOCK, Rig, rig
from tests.faults.soak import at_random

EVERY: Final = 5.0  # seconds between two readings
STEP: Final = 20.0  # seconds between two steps
LOADED: Final = ("shop.orders", "shop.customers", "shop.clicks")
SERVERS: Final = ("kafka", "mysql", "postgres")  # folders whose files grow by design


def main(arguments: Sequence[str]) -> int:
    """Run; 0 if every comparison is equal and nothing grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.endurance", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--target", choices=("sqlite", "postgres"), default="postgres")
    parser.add_argument("--kill-every", type=float, default=60.0, metavar="MINUTES", help="0: nothing is killed")
    parser.add_argument("--verify-every", type=float, default=10.0, metavar="MINUTES")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where servers and logs live; default: a new one in /tmp")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(mkdtemp(prefix="thl-soak-"))
    print(f"seed {options.seed}, {options.hours} hours, everything lies in {folder}", flush=True)
    lives, comparisons = Lives(), 0
    failure = ""
    try:
        with rig(folder, options.target, seed=options.seed) as made, _watched(made, lives):
            made.start()
            for _ in _compared(made, options):
                comparisons += 1
            made.finish()
            comparisons += 1
    except (AssertionError, KeyboardInterrupt) as error:
        failure = f"NOT PROVED: {error or 'interrupted'}"
    finally:
        print("\n" + "\n".join(table(lives.all)), flush=True)
    grown = growing(lives.all)
    for line in grown:
        print(f"grows: {line}")
    print(failure or f"{comparisons} comparisons equal, each event once, {made.kills.total()} kills")
    return int(bool(failure or grown))


def _compared(made: Rig, options: argparse.Namespace) -> Iterator[None]:
    """Do one thing after another until the time is over; yields after each comparison."""
    random = Random(options.seed)
    end = CLOCK.monotonic() + options.hours * 3600
    compare = CLOCK.monotonic() + options.verify_every * 60
    kill = CLOCK.monotonic() + options.kill_every * 60
    steps: list[Callable[[Rig, Random], None]] = [define, load, flood, prepare]
    while CLOCK.monotonic() < end:
        if options.kill_every and CLOCK.monotonic() >= kill:
            at_random(made, random.choice(_victims(options.target)))
            kill = CLOCK.monotonic() + options.kill_every * 60
        else:
            random.choice(steps)(made, random)
        if not made.applier.running:
            killing.again(made, "apply")
        made.progress()
        if CLOCK.monotonic() >= compare:
            made.prove()
            made.resume()
            compare = CLOCK.monotonic() + options.verify_every * 60
            yield
        CLOCK.sleep(STEP)


def _victims(target: str) -> tuple[str, ...]:
    return ("producer", "broker", "MySQL", "driver", "JVM", *(("PostgreSQL",) if target == "postgres" else ()))


def define(made: Rig, random: Random) -> None:
    """Create a table, change it, rename a column, write to it, and drop an older one."""
    number = random.randrange(10)
    statements = (
        f"DROP TABLE IF EXISTS shop.soak{number}",
        f"CREATE TABLE shop.soak{number} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(40) NOT NULL)",
        f"INSERT INTO shop.soak{number} (v) VALUES ('a'), ('b'), ('c')",
        f"ALTER TABLE shop.soak{number} ADD COLUMN n INT NOT NULL DEFAULT 7",
        f"UPDATE shop.soak{number} SET n = id WHERE v <> 'b'",
        f"ALTER TABLE shop.soak{number} RENAME COLUMN v TO text",
        f"DELETE FROM shop.soak{number} WHERE text = 'a'",
    )
    with made.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        connection.commit()
    made.tell(f"definitions of soak{number}")


def load(made: Rig, random: Random) -> None:
    """Load a table again, and wait for the load's end."""
    name = random.choice(LOADED)
    command = [sys.executable, "-m", "connector", "load", "--config", str(made.config), "--", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"thl load {name} ended with {done.returncode}\n{done.stderr[-2000:]}"

    def is_loaded() -> bool:
        with LogReader(load_config(made.config)) as log:
            control = log.control()
        return not outstanding(control.load_requests.values(), control.loads, control.trapped)

    made.until(is_loaded, f"the end of the load of {name}")
    made.tell(f"loaded {name}")


def flood(made: Rig, random: Random) -> None:
    """One large transaction."""
    made.flood()
    made.tell("a large transaction")


def prepare(made: Rig, random: Random) -> None:
    """XA transactions."""
    made.prepare()
    made.tell("XA transactions")


@contextmanager
def _watched(made: Rig, lives: Lives) -> Iterator[None]:
    """Read the measures in a thread while in the context; each reading is a line of `samples.jsonl`, too."""
    began = CLOCK.monotonic()

    def watch(ended: Event) -> None:
        with (made.folder / "samples.jsonl").open("w") as file:
            while not ended.wait(EVERY):
                at = CLOCK.monotonic() - began
                for name, identity, values in readings(made):
                    lives.add(name, identity, Sample(at, values))
                    file.write(json.dumps({"at": round(at, 1), "name": name, "id": str(identity), **values}) + "\n")
                file.flush()

    with in_background("growth", watch, leave=None):
        yield


def readings(made: Rig) -> Iterator[tuple[str, object, dict[str, float]]]:
    """Yield name, identity and measures of each process that runs, and of the run's folder."""
    servers = {"Kafka": made.kafka.pid, "MySQL": made.mysql.pid}
    if made.postgres:
        servers["PostgreSQL"] = made.postgres.pid
    processes = {made.producer.name: made.producer.pid, made.applier.name: made.applier.pid, **servers}
    for name, pid in processes.items():
        if pid is not None:
            yield from _reading(name, pid)
    for java in killing.family(made.applier, killing.JVM)[:1]:
        yield from _reading("Spark's JVM", java.pid)
    yield "the run's folder", made.folder, {"files": float(files_of(made.folder))}


def files_of(folder: Path) -> int:
    """The number of files in a folder, without those of the servers."""
    count = 0
    for _, folders, files in os.walk(folder):  # which passes over what is removed meanwhile
        folders[:] = [name for name in folders if name not in SERVERS]
        count += len(files)
    return count


def _reading(name: str, pid: int) -> Iterator[tuple[str, object, dict[str, float]]]:
    try:
        process = psutil.Process(pid)
        yield name, (pid, process.create_time()), measured(process)
    except psutil.Error:
        return  # it was killed meanwhile; its next life has a reading of its own


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
