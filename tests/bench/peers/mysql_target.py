"""`python -m tests.bench.peers.mysql_target`: MySQL to MySQL, ours beside the server's own replica, in one run.

Ours goes through Kafka: the producer alone, then the applier alone into a server that takes LOAD DATA LOCAL and into
one that does not, then both at once. The replicas read the same binary log, with 1 and with 4 workers. All targets are
equal servers, and each has to have the source's table, by CHECKSUM TABLE. "target" is the server that is written.
Debezium's JDBC sink reads the topic that its source has filled, into a table of its own, compared by sums.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import quote

import click
import pymysql

from connector.demo import workload as shop
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.settings import MYSQL_FAST
from tests.bench import throughput, workload
from tests.bench.drain import APPLIED, APPLIER, drain
from tests.bench.meter import Meter
from tests.bench.peers.connect import Connect
from tests.bench.peers.debezium import PLAIN, Debezium, topic_name
from tests.bench.peers.jdbc_sink import LIMIT, SUMS, Written, sink
from tests.bench.peers.peer import Load, Unavailable
from tests.bench.peers.watch import watch
from tests.bench.result import Row, Sheet, out_option
from tests.bench.site import CLOCK, Service, Site, site

KINDS: Final = ("bulk", "oltp", "cold")
WORKERS: Final = (1, 4)
# Rows of the server's own tables are counted apart.
_CHANGED: Final = (
    "SHOW GLOBAL STATUS WHERE variable_name IN ('Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted')"
)


@click.command()
@click.option("--rows", default=400_000, show_default=True, help="Row changes of each backlog.")
@click.option("--repeats", default=1, show_default=True)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), default=KINDS[:2], show_default=True)
@click.option("--debezium/--no-debezium", default=True, show_default=True, help="Fetches it the first time.")
@out_option
def main(*, rows: int, repeats: int, kinds: Sequence[str], debezium: bool, out: Path) -> None:
    """Measure on this machine; exit 1 if a figure is void."""
    sheet = Sheet(out, "mysql-target", {"rows": rows})
    for kind in kinds:
        with site() as place:
            load = Load(place, kind, workload.fill(place.connect, kind, rows))
            for repeat in range(repeats):
                _ours(sheet, load, repeat)
                for workers in WORKERS:
                    sheet.add(_replica(load, repeat, workers))
            if debezium and kind != "cold":
                for row in Debezium(PLAIN)(load):
                    sheet.add(row)
                for more in ({}, {"use.reduction.buffer": "true"}):
                    sheet.add(_jdbc_sink(load, more))
    sys.exit(0 if sheet.valid else 1)


@contextmanager
def _server(place: Site, name: str, **settings: str) -> Iterator[MySqlServer]:
    """A server that is written."""
    with MySqlServer(
        place.folder / name, settings={**MYSQL_FAST, "server_id": "7", **settings}, die_with_parent=True
    ) as server:
        yield server


def _ours(sheet: Sheet, load: Load, repeat: int) -> None:
    place, kind = load.place, load.kind
    service = place.service(f"{kind}{repeat}", "sqlite")
    sheet.add(throughput.produced(place, service, kind, load.backlog))
    for local, way in (("ON", "LOAD DATA"), ("OFF", "INSERT")):
        with _server(place, f"{kind}{repeat}{local}", local_infile=local) as target:
            sheet.add(_applied(load, _to(place, service, target), target, f"Kafka to MySQL, {kind}: ours, {way}", {}))
    with _server(place, f"{kind}{repeat}both", local_infile="ON") as target:
        both = _to(place, place.service(f"{kind}{repeat}both", "sqlite"), target)
        producer, _ = both.worker("produce")
        producer.start()
        try:
            case = f"MySQL to MySQL, {kind}: ours, both halves at once"
            sheet.add(_applied(load, both, target, case, {"producer": Meter(producer.pid)}))
        finally:
            producer.stop()


def _to(place: Site, service: Service, target: MySqlServer) -> Service:
    """The same log into this server."""
    url = f"mysql://{target.user}:{quote(target.password)}@{target.host}:{target.port}"
    return Service(place.folder, service.name, {**service.values, "target": {**service.values["target"], "url": url}})


def _applied(load: Load, service: Service, target: MySqlServer, case: str, others: dict[str, Meter]) -> Row:
    worker, gauges = service.worker("apply")
    servers = {**load.place.servers(), "target": Meter(target.pid), **others}
    goal, before = load.backlog.rows, load.backlog.before
    course = drain(servers, worker, gauges, counter=APPLIED, goal=goal, parts=APPLIER, before=before)
    return Row(case, course.figures(), _differs(load, target))


def _replica(load: Load, repeat: int, workers: int) -> Row:
    source = load.place.mysql
    case = f"MySQL to MySQL, {load.kind}: the server's replica, workers {workers}"
    name = f"{load.kind}{repeat}replica{workers}"
    with _server(load.place, name, replica_parallel_workers=str(workers)) as target:
        target.run_sql(f"SET sql_log_bin = 0; CREATE DATABASE {workload.SCHEMA}")  # as `workload` has created it
        with closing(shop.connector(target.host, target.port, target.user, target.password)()) as connection:
            connection.autocommit(True)
            cursor = connection.cursor()
            cursor.execute(
                f"CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{source.host}', SOURCE_PORT = {source.port}, "
                f"SOURCE_USER = '{source.user}', SOURCE_PASSWORD = '{source.password}', SOURCE_AUTO_POSITION = 1, "
                "GET_SOURCE_PUBLIC_KEY = 1"
            )
            executed = source.run_sql("SELECT @@gtid_executed").split("\n", 1)[1].replace("\\n", "").strip()

            def counted() -> int:
                cursor.execute(f"SELECT GTID_SUBSET('{executed}', @@gtid_executed)")
                if cursor.fetchall()[0][0]:
                    return load.backlog.rows
                cursor.execute(_CHANGED)
                return min(sum(int(count) for _, count in cursor.fetchall()), load.backlog.rows - 1)

            def check() -> None:
                cursor.execute("SHOW REPLICA STATUS")
                status = dict(zip([column[0] for column in cursor.description], cursor.fetchall()[0], strict=True))
                if wrong := status["Last_IO_Error"] or status["Last_SQL_Error"]:
                    raise Unavailable(wrong)

            cursor.execute("START REPLICA")
            course = watch(load.place, {"target": Meter(target.pid)}, counted, load.backlog.rows, check)
        return Row(case, course.figures(), _differs(load, target))


def _jdbc_sink(load: Load, more: dict[str, str]) -> Row:
    """Debezium's JDBC sink: progress is what the server counts, the end is read from the table."""
    name = "reduced" if more else "sink"
    case = f"Kafka to MySQL, {load.kind}: Debezium's JDBC sink{', reduced' if more else ''}"
    with (
        _server(load.place, f"{load.kind}-{name}") as target,
        Connect(load.place, f"{name}-{load.kind}") as worker,
        closing(shop.connector(target.host, target.port, target.user, target.password)()) as connection,
    ):
        connection.autocommit(True)
        cursor = connection.cursor()
        cursor.execute(f"CREATE DATABASE {workload.SCHEMA}")
        table = f"{workload.SCHEMA}.{load.kind}"
        url = f"jdbc:mysql://{target.host}:{target.port}/{workload.SCHEMA}?rewriteBatchedStatements=true"
        written = Written(f"{url}&allowPublicKeyRetrieval=true&sslMode=DISABLED", target.user, target.password)
        keys = ", ".join(map(str, load.last_ids))

        def there(query: str) -> list[int]:
            try:
                cursor.execute(query)
            except pymysql.err.ProgrammingError:  # it has not made the table yet
                return []
            return [int(value) for value in cursor.fetchall()[0]]

        def counted() -> int:
            if there(f"SELECT count(*) FROM {table} WHERE id IN ({keys})") == [len(load.last_ids)]:
                return load.backlog.rows
            cursor.execute(_CHANGED)
            return min(sum(int(count) for _, count in cursor.fetchall()), load.backlog.rows - 1)

        worker.create(name, sink(written, topic_name(PLAIN, load.kind), load.kind, **more))
        course = watch(
            load.place,
            {"target": Meter(target.pid), "Connect": Meter(worker.pid)},
            counted,
            load.backlog.rows,
            lambda: worker.check(name),
            limit=LIMIT,
        )
        if course.looks[-1].rows < load.backlog.rows:
            return Row(case, course.figures(), "")
        CLOCK.sleep(1)  # the last batch may still be in flight
        with load.place.connect() as source, source.cursor() as reader:
            reader.execute(SUMS.format(table))
            wanted = [int(value) for value in reader.fetchall()[0]]
        found = there(SUMS.format(table))
        return Row(case, course.figures(), "" if found == wanted else f"the sums are {found}, the source's {wanted}")


def _differs(load: Load, target: MySqlServer) -> str:
    """The difference of the table of the workload; empty if there is none."""
    query = f"CHECKSUM TABLE {workload.SCHEMA}.{load.kind}"
    found, wanted = target.run_sql(query), load.place.mysql.run_sql(query)
    return "" if found == wanted else f"the target's checksum is {found.split()[-1]}, the source's {wanted.split()[-1]}"


if __name__ == "__main__":
    main()
