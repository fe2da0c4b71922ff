"""`python -m tests.bench.huge`: one transaction of 2 million rows and a row of 16 MiB; memory and visibility.

Exit 1 unless a reader that polls two of its tables in one snapshot saw none or all of it, source and target are
equal, and the producer's and the applier's peaks stay within the bounds given.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import dataclass, field

import click
import psycopg
import yaml

from connector.config.loading import load as load_config
from connector.config.model import Config
from connector.kafka.log_reader import LogReader
from connector.verify import verify
from tests.bench import workload
from tests.bench.meter import usage
from tests.bench.site import CLOCK, Service, Site, site

RELAY_MEGABYTES = 500
PEAK = """
import resource, sys
from connector.cli import run
code = run(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(code)
"""
_SEEN = "SELECT (SELECT count(*) FROM bench.bulk), (SELECT count(*) FROM bench.oltp)"


@dataclass
class Reader:
    """Polls two tables in one statement, which is one snapshot, until it has read `goal`."""

    place: Site
    goal: tuple[int, int]
    seen: set[tuple[int, int]] = field(default_factory=set)
    done: threading.Event = field(default_factory=threading.Event)

    def poll(self) -> None:
        with psycopg.connect(self.place.postgres.dsn, autocommit=True) as connection:
            while not self.done.is_set() and self.goal not in self.seen:
                CLOCK.sleep(0.1)
                found = connection.execute(_SEEN).fetchone()
                if found:
                    self.seen.add((found[0], found[1]))


def loaded(place: Site) -> bool:
    """True if the initial load of empty tables has ended."""
    with psycopg.connect(place.postgres.dsn, autocommit=True) as connection:
        try:
            found = connection.execute("SELECT consistent AND seqno >= 0 FROM thl.thl_position").fetchone()
        except psycopg.errors.UndefinedTable:
            return False
        return bool(found and found[0])


def kept(config: Config) -> bool:
    """True if the prepared transaction is in Kafka."""
    with LogReader(config) as reader:
        return reader.prepared().pending.kept.count > 0


def from_relay(place: Site) -> dict[str, float]:
    """List the relay, and apply it to another database; return the peak memory of each, MB."""
    folder = place.folder / "relay"
    service = place.service("replayed")
    replayed = Service(service.folder, place.values["service"], service.values | {"service": place.values["service"]})
    file = place.folder / "replayed.yaml"
    file.write_text(yaml.safe_dump(replayed.values))
    peaks = {}
    for name, words in {"list": ("list", "--sizes", "--relay"), "apply": ("apply", "--relay")}.items():
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *words, str(folder), "--config", str(file)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        peaks[f"{name} of the relay"] = int(done.stdout.splitlines()[-1]) / 1e3
    with (
        psycopg.connect(replayed.config.target.url.get_secret_value()) as there,
        psycopg.connect(place.postgres.dsn) as here,
    ):
        for table in ("bulk", "oltp", "big"):
            sum_of = f"SELECT count(*), sum(hashtext(t::text)::bigint) FROM bench.{table} t".encode()
            if there.execute(sum_of).fetchone() != here.execute(sum_of).fetchone():
                raise ValueError(f"{table} differs after its relay was applied")
    return peaks


@click.command()
@click.option("--rows", default=2_000_000, show_default=True)
@click.option("--row-mebibytes", default=16, show_default=True)
@click.option("--producer-megabytes", default=400, show_default=True)
@click.option("--applier-megabytes", default=1800, show_default=True)
@click.option("--xa", is_flag=True, help="Prepared first, and committed when the producer has kept it.")
@click.option("--relay", is_flag=True, help="With a relay, which is then listed, and applied to another database.")
def main(
    rows: int, row_mebibytes: int, producer_megabytes: int, applier_megabytes: int, *, xa: bool, relay: bool
) -> None:
    """Measure one huge transaction."""
    half = rows // 2
    with site() as place:
        with place.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE TABLE {workload.SCHEMA}.big (id INT PRIMARY KEY, body LONGBLOB)")
        producer, _ = place.worker("produce", source={"start": "snapshot"})
        kept_in = {"relay": {"dir": str(place.folder / "relay"), "retention": 1e6}} if relay else {}
        applier, _ = place.worker("apply", **kept_in)
        producer.start()
        applier.start()
        while not loaded(place):
            producer.check()
            applier.check()
            CLOCK.sleep(0.2)
        reader = Reader(place, (half, half))
        polling = threading.Thread(target=reader.poll)
        polling.start()
        with place.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"USE {workload.SCHEMA}")
            values = workload.values("n")
            if xa:
                cursor.execute("XA START 'huge'")
            cursor.execute(f"INSERT INTO bulk SELECT n, {values} FROM aid.numbers WHERE n < {half}")
            cursor.execute("INSERT INTO big VALUES (1, REPEAT('x', %s))", (row_mebibytes << 20,))
            cursor.execute(f"INSERT INTO oltp SELECT n, {values} FROM aid.numbers WHERE n < {half}")
            if xa:
                cursor.execute("XA END 'huge'")
                cursor.execute("XA PREPARE 'huge'")
                while not kept(load_config(producer.config)):
                    producer.check()
                    CLOCK.sleep(0.5)
            began = CLOCK.monotonic()
            if xa:
                cursor.execute("XA COMMIT 'huge'")
            else:
                connection.commit()
        while reader.goal not in reader.seen and CLOCK.monotonic() - began < 900:
            producer.check()
            applier.check()
            CLOCK.sleep(0.5)
        seconds = CLOCK.monotonic() - began
        reader.done.set()
        polling.join()
        peaks = {"producer": usage(producer.pid or 0).peak / 1e6, "applier": usage(applier.pid or 0).peak / 1e6}
        with place.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            logged = sum(row[1] for row in cursor.fetchall()) / 1e6
        report = verify(load_config(applier.config))
        for worker in (applier, producer):
            worker.stop()
        replayed = from_relay(place) if relay else {}
    whole = reader.seen <= {(0, 0), reader.goal} and reader.goal in reader.seen
    print(f"{rows:,} rows and one of {row_mebibytes} MiB, {logged:.0f} MB of binary log, in one transaction")
    print(f"visible after {seconds:.0f} s; states seen {sorted(reader.seen)}; equal: {report.equal}")
    peaks |= replayed
    print("peak resident: " + ", ".join(f"{name} {peak:.0f} MB" for name, peak in peaks.items()))
    fits = peaks["producer"] <= producer_megabytes and peaks["applier"] <= applier_megabytes
    fits = fits and all(peak <= RELAY_MEGABYTES for peak in replayed.values())
    sys.exit(0 if whole and report.equal and fits else 1)


if __name__ == "__main__":
    main()
