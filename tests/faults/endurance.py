"""`make soak HOURS=24`: everything at once for long, and whether anything grows.

Under the shop's load definitions change, tables are loaded again, large and XA transactions come, and there is trouble
every few minutes. In the first fifth of each hour our own processes are killed; after that each of them lives on, while
servers are killed, the network before them is cut, and the source fails over to its replica. Source and target are
compared in between: every value, every event once.

Memory, descriptors and threads of each process of ours, and the files of the run's folder, are read every few seconds.
A table at the end has them by the ten minutes of each life, and the growth; exit code 1 where source and target differ,
or anything grows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any, Final

from connector.config.loading import load as load_config
from connector.demo.stage import Worker
from connector.kafka.log_reader import LogReader
from connector.log.epochs.loads import outstanding
from connector.sandbox.kafka import KafkaBroker
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.ports import free_port
from connector.sandbox.postgres import PostgresServer
from tests.faults.failover import fail_over, follow, replica_of
from tests.faults.growth import Lives, growing, table
from tests.faults.network import Network, cut
from tests.faults.readings import Watched, watching
from tests.faults.rig import CLOCK, Rig
from tests.faults.soak import at_random

STEP: Final = 20.0  # seconds between two steps
CYCLE: Final = 3600.0  # seconds, or those of a shorter run
OURS: Final = ("producer", "driver", "JVM")  # killed in the first fifth of a cycle
THEIRS: Final = ("broker", "MySQL", "PostgreSQL", "cut source", "cut broker", "cut target", "failover")
LOADED: Final = ("shop.orders", "shop.customers", "shop.clicks")


@dataclass(slots=True)
class Stage:
    """Everything of a run: what is killed and cut, and what is watched.

    Args:
        rig: servers, producer and applier.
        network: before the servers.
        replica: of the source.
        page: `thl serve`, which is never killed.
    """

    rig: Rig
    network: Network
    replica: MySqlServer
    page: Worker

    def watched(self) -> Watched:
        """The processes of ours that run now."""
        return Watched(self.rig.folder, (self.rig.producer, self.rig.applier, self.page), self.rig.applier)

    def trouble(self, name: str, random: Random) -> None:
        """Make a trouble by its name, one of `OURS` and `THEIRS`."""
        if name == "failover":
            self.replica = fail_over(self.rig, self.network, self.replica)
        elif name.startswith("cut "):
            cut(self.rig, self.network, name.removeprefix("cut "), random)
        else:
            at_random(self.rig, name)


def main(arguments: Sequence[str]) -> int:
    """Run; 0 if every comparison is equal and nothing grows."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.endurance", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument(
        "--trouble-every", type=float, default=2.0, metavar="MINUTES", help="0: nothing is killed or cut"
    )
    parser.add_argument("--verify-every", type=float, default=10.0, metavar="MINUTES")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where servers and logs live; default: a new one in /tmp")
    options = parser.parse_args(arguments)
    folder = options.folder or Path(mkdtemp(prefix="thl-soak-"))
    print(f"seed {options.seed}, {options.hours} hours, everything lies in {folder}", flush=True)
    lives, comparisons, troubles = Lives(), 0, 0
    failure = ""
    try:
        with _stage(folder, options.seed) as made, watching(made.watched, lives):
            made.rig.start()
            made.page.start()
            for done in _compared(made, options):
                comparisons, troubles = comparisons + 1, done
            made.page.check()
            made.rig.finish()
            comparisons += 1
    except (AssertionError, KeyboardInterrupt) as error:
        failure = f"NOT PROVED: {error or 'interrupted'}"
    finally:
        print("\n" + "\n".join(table(lives.all)), flush=True)
    grown = growing(lives.all)
    for line in grown:
        print(f"grows: {line}")
    print(failure or f"{comparisons} comparisons equal, each event once, {troubles} troubles")
    return int(bool(failure or grown))


@contextmanager
def _stage(folder: Path, seed: int) -> Iterator[Stage]:
    """Start the servers and fill the source; no process of ours runs yet."""
    mysql = MySqlServer(folder / "mysql", die_with_parent=True)
    postgres = PostgresServer(folder / "postgres", settings={"autovacuum_naptime": "1s"}, die_with_parent=True)
    with closing(Network(mysql, postgres)) as network, ExitStack() as servers:
        kafka = KafkaBroker(folder / "kafka", network.broker_port, network.broker_settings, die_with_parent=True)
        replica = replica_of(mysql)
        for server in (mysql, postgres, kafka, replica):
            servers.callback(server.kill)
            server.start()
        follow(replica, mysql)

        def lead(values: dict[str, Any]) -> None:
            network.lead(values)
            values["apply"]["checkpoint_dir"] = str(folder / "spark")

        with closing(Rig(folder, mysql, kafka, postgres, seed, led=lead)) as made:
            page = made.worker("serve", {"THL_SERVE__PORT": str(free_port())})
            yield Stage(made, network, replica, page)


def _compared(made: Stage, options: argparse.Namespace) -> Iterator[int]:
    """Do one thing after another until the time is over; yields the number of troubles after each comparison."""
    random, rig = Random(options.seed), made.rig
    began = CLOCK.monotonic()
    cycle = min(CYCLE, options.hours * 3600)
    compare, trouble = (began + minutes * 60 for minutes in (options.verify_every, options.trouble_every))
    ours, theirs = _dealt(OURS, random), _dealt(THEIRS, random)
    steps: list[Callable[[Rig, Random], None]] = [define, load, flood, prepare]
    troubles = 0
    while (now := CLOCK.monotonic()) < began + options.hours * 3600:
        if options.trouble_every and now >= trouble:
            made.trouble(next(ours if (now - began) % cycle < cycle / 5 else theirs), random)
            troubles += 1
            trouble = CLOCK.monotonic() + options.trouble_every * 60
        else:
            random.choice(steps)(rig, random)
        rig.progress()
        if CLOCK.monotonic() >= compare:
            rig.prove()
            rig.resume()
            compare = CLOCK.monotonic() + options.verify_every * 60
            yield troubles
        CLOCK.sleep(STEP)


def _dealt(names: Sequence[str], random: Random) -> Iterator[str]:
    """Yield names without end, in any order, each before one comes again."""
    while True:
        yield from random.sample(names, len(names))


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
