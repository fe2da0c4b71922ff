"""`python -m tests.bench.peers.loading`: the load of six tables, ours beside others, on the same server in one run.

The tables are those of `tests.bench.load`. A plain SELECT of all of them, by one connection and by two, is what the
server can give. Ours goes to Kafka, and from there to PostgreSQL; Debezium goes to Kafka (its snapshot by one thread
and by four); mydumper into files, as SQL.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from tests.bench import load
from tests.bench.drain import APPLIED, APPLIER, drain
from tests.bench.load import TABLES
from tests.bench.meter import Meter
from tests.bench.peers.command import spent
from tests.bench.peers.connect import Connect
from tests.bench.peers.debezium import LEAN, LZ4, source
from tests.bench.peers.peer import Unavailable
from tests.bench.peers.topic import Topic
from tests.bench.peers.watch import watch
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import Service, Site, site
from tests.bench.workload import SCHEMA

CONNECTIONS: Final = 2
THREADS: Final = (1, 4)  # of Debezium's snapshot
NAMES: Final = [*TABLES, "large"]


@click.command()
@click.option("--rows", default=20_000_000, show_default=True, help="Rows of all tables.")
@click.option("--only", multiple=True, type=click.Choice(["ours", "mydumper", "debezium"]), help="Some; repeatable.")
@click.option("--repeats", default=1, show_default=True)
@out_option
def main(*, rows: int, only: tuple[str, ...], repeats: int, out: Path) -> None:
    """Measure on this machine; exit 1 if a figure is void. A program that cannot run here is a row with the reason."""
    sheet = Sheet(out, "loading", {"rows": rows})
    with site(load.SETTINGS) as place:
        whole = load.fill(place.connect, rows)
        load.selects(place.connect, 1)
        for repeat in range(repeats):
            for connections in (1, CONNECTIONS):
                sheet.add(load.selected(place, connections, whole))
            if not only or "ours" in only:
                service = place.service(f"load{repeat}", source={"start": "snapshot"})
                sheet.add(load.loaded(place, service, CONNECTIONS, whole))
                sheet.add(_applied(place, place.retarget(service, f"load{repeat}pg", "postgresql"), whole))
            if not only or "mydumper" in only:
                for threads in (1, CONNECTIONS):
                    sheet.add(_mydumper(place, whole, threads))
            if not only or "debezium" in only:
                for threads in THREADS:
                    sheet.add(_debezium(place, f"snapshot{repeat}x{threads}", whole, threads))
    sys.exit(0 if sheet.valid else 1)


def _applied(place: Site, service: Service, rows: int) -> Row:
    """Ours from Kafka into a PostgreSQL that has none of the tables."""
    worker, gauges = service.worker("apply")
    course = drain(place.servers(), worker, gauges, counter=APPLIED, goal=rows, parts=APPLIER)
    return Row("load, Kafka to PostgreSQL, ours", course.figures())


def _mydumper(place: Site, rows: int, threads: int) -> Row:
    case = f"load into files, mydumper, threads {threads}"
    server = Meter(place.mysql.pid)
    before = server.read()
    with tempfile.TemporaryDirectory(dir=place.folder) as folder:
        defaults = Path(folder, "my.cnf")
        defaults.write_text(f"[client]\nuser={place.mysql.user}\npassword={place.mysql.password}\n")
        defaults.chmod(0o600)
        command = [
            "mydumper",
            f"--defaults-file={defaults}",
            f"--host={place.mysql.host}",
            f"--port={place.mysql.port}",
        ]
        command += [f"--threads={threads}", f"--database={SCHEMA}", f"--outputdir={folder}/out", "--rows=200000"]
        try:
            figures = spent("mydumper", [*command, "--no-locks"], rows)
        except Unavailable as reason:
            return Row(case, {}, f"skipped: {reason}")
    figures["CPU s/M mysqld"] = round((server.read() - before).cpu_seconds / rows * 1e6, 2)
    return Row(case, figures)


def _debezium(place: Site, name: str, rows: int, threads: int) -> Row:
    case = f"load to Kafka, Debezium, snapshot.max.threads {threads}"
    topics = [Topic(place.kafka.bootstrap, f"{name}.{SCHEMA}.{table}") for table in NAMES]
    settings = {"snapshot.mode": "initial_only", "snapshot.max.threads": str(threads)}
    large = {"producer.override.max.request.size": "67108864", "producer.override.buffer.memory": "134217728"}
    config = source(place, name, ",".join(f"{SCHEMA}.{table}" for table in NAMES), **settings, **large)
    config["topic.creation.default.max.message.bytes"] = "67108864"
    try:
        with Connect(place, name, {**LEAN, **LZ4}) as worker:
            worker.create("source", config)
            course = watch(
                place,
                {"Connect": Meter(worker.pid)},
                lambda: sum(topic.messages() for topic in topics),
                rows,
                lambda: worker.check("source"),
            )
    except Unavailable as reason:
        return Row(case, {}, f"skipped: {reason}")
    finally:
        for topic in topics:
            topic.close()
    return Row(case, course.figures())


if __name__ == "__main__":
    main()
