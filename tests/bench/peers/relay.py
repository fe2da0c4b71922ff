"""The relay of `go/main.go`: go-mysql's canal and franz-go, built here and run on the whole backlog."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from connector.fetching.cache import Cache
from connector.sandbox.program import Program
from tests.bench.meter import Meter
from tests.bench.peers.peer import Load, Unavailable
from tests.bench.peers.topic import Topic
from tests.bench.peers.watch import watch
from tests.bench.result import Row
from tests.bench.site import Site
from tests.bench.workload import SCHEMA

SOURCES = Path(__file__).parent / "go"


def relay(place: Site, table: str, topic: str, *arguments: str) -> Program:
    """The relay of one table into an existing topic, not started.

    Raises:
        Unavailable: there is no Go, or it cannot build.
    """
    with place.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        first = str(cursor.fetchall()[0][0])
    return Program(
        "relay",
        [
            str(_built() / "relay"),
            f"-mysql={place.mysql.host}:{place.mysql.port}",
            f"-user={place.mysql.user}",
            f"-file={first}",
            f"-tables=^{SCHEMA}\\.{table}$",
            f"-kafka={place.kafka.bootstrap}",
            f"-topic={topic}",
            *arguments,
        ],
        log=place.folder / f"relay-{topic}.log",
        environment={"MYSQL_PWD": place.mysql.password},
        die_with_parent=True,
    )


def measure(load: Load) -> list[Row]:
    """Measure; one message per row."""
    topic = Topic(load.place.kafka.bootstrap, f"relay.{load.kind}")
    program = relay(load.place, load.kind, topic.name)
    topic.create()
    program.start()
    try:
        course = watch(
            load.place, {"relay": Meter(program.pid)}, topic.messages, load.backlog.rows, lambda: check(program)
        )
        found = topic.messages()
    finally:
        program.stop()
        topic.close()
    wrong = "" if found == load.backlog.rows else f"{found} messages of {load.backlog.rows} rows"
    return [Row(f"MySQL to Kafka, {load.kind}: go-mysql canal + franz-go", course.figures(), wrong)]


def check(program: Program) -> None:
    """Raise if it has ended.

    Raises:
        Unavailable: with what it said.
    """
    if not program.running:
        raise Unavailable(f"the relay ended: {program.log_tail(3)}")


def _built() -> Path:
    """The folder of the program, built once for these sources."""
    go = shutil.which("go")
    if go is None:
        raise Unavailable("no go")
    content = b"".join(file.read_bytes() for file in sorted(SOURCES.iterdir()))

    def build(folder: Path) -> None:
        command = [go, "build", "-trimpath", "-o", str(folder / "relay"), "."]
        done = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"go build: {done.stderr.strip()[-300:]}")

    return Cache().ensure(f"relay-{hashlib.sha256(content).hexdigest()[:12]}", build)
