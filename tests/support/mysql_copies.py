"""MySQL and MariaDB servers as targets of `thl apply`, and what a test asks them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pymysql
import yaml

from connector.fetching.jars import spark_kafka_jars
from tests.support.apply_process import THL, Process
from tests.support.producing import until
from tests.support.servers.environment import SqlServer


def url_of(server: SqlServer) -> str:
    return f"mysql://{server.user}:{quote(server.password)}@{server.host}:{server.port}"


def query(server: SqlServer, sql: str) -> list[tuple[Any, ...]]:
    connection = pymysql.connect(
        host=server.host,
        port=server.port,
        user=server.user,
        password=server.password,
        charset="utf8mb4",
        autocommit=True,
    )
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
    finally:
        connection.close()


def has_table(server: SqlServer, database: str, table: str) -> bool:
    where = f"table_schema = '{database}' AND table_name = '{table}'"
    return bool(query(server, f"SELECT 1 FROM information_schema.tables WHERE {where}"))


def checksums(server: SqlServer, database: str) -> dict[str, object]:
    """The server's own checksum of each table, which does not depend on the order of rows."""
    tables = [name for (name,) in query(server, f"SHOW TABLES FROM {database}")]
    return {name: query(server, f"CHECKSUM TABLE {database}.{name}")[0][1] for name in tables}


def definitions(server: SqlServer, database: str) -> dict[str, str]:
    tables = [name for (name,) in query(server, f"SHOW TABLES FROM {database}")]
    return {name: str(query(server, f"SHOW CREATE TABLE {database}.{name}")[0][1]) for name in tables}


@dataclass
class Applying:
    """`thl apply` as a process.

    Args:
        file: its configuration.
        folder: of its log.
        process: the running one.
    """

    file: Path
    folder: Path
    process: Process

    def until(self, reached: Callable[[], bool]) -> None:
        """Wait for a condition; the process has to live until then."""
        until(lambda: reached() or self.process.popen.poll() is not None)
        assert self.process.popen.poll() is None, self.text[-3000:]

    def kill(self) -> None:
        """Kill it, and start it again."""
        self.process.popen.kill()
        self.process.end()
        self.process = Process([THL, "apply", "--config", str(self.file)], self.folder)

    @property
    def text(self) -> str:
        """What it has logged."""
        return self.process.log.read_text()


@contextmanager
def applying(folder: Path, service: str, bootstrap: str, url: str, **target: object) -> Iterator[Applying]:
    """Run `thl apply` until the end of the context.

    Args:
        folder: for its files.
        service: the service.
        bootstrap: of Kafka.
        url: of the target.
        target: further options of `target`.
    """
    folder.mkdir(exist_ok=True)
    file = folder / "target.yaml"
    document = {
        "service": service,
        "kafka": {"bootstrap": bootstrap},
        "apply": {
            "checkpoint_dir": str(folder / "spark"),
            "heap": "512m",
            "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars()))},
        },
        "target": {"url": url, "audit": True, **target},
    }
    file.write_text(yaml.safe_dump(document))
    made = Applying(file, folder, Process([THL, "apply", "--config", str(file)], folder))
    try:
        yield made
    finally:
        made.process.popen.terminate()
        made.process.wait()
        made.process.end()
