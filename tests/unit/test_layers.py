"""Imports follow the layers, and the check finds a planted wrong import."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.layers import folder_imports, room_imports, violations

ROOT = Path(__file__).parents[2]


def test_imports_follow_the_layers() -> None:
    assert violations(ROOT) == []


def test_every_folder_has_a_layer() -> None:
    assert len(folder_imports(ROOT)) > 30


def test_the_architecture_draws_each_import_between_rooms() -> None:
    drawn = {
        room: set(re.findall(r"[a-z]+", re.sub(r"\(.*?\)", "", rooms))) - {"none"}
        for room, rooms in re.findall(r"^ ([a-z]+) +──► (.+)$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    }
    assert drawn.pop("commands") == {"all", "rooms"}
    below: set[str] = set()
    for room in reversed(drawn):
        assert drawn[room] <= below, f"{room} stands below what it imports"
        below.add(room)
    arrows = room_imports(ROOT)
    arrows.pop("commands")
    assert {room: rooms - {"log"} for room, rooms in arrows.items()} == {
        room: rooms - {"log"} for room, rooms in drawn.items()
    }


PLANTED = {
    "a room imports one beside it": ("connector/kafka/a.py", "from connector.mysql.values.rows import Row"),
    "a room imports one beside it by its folder": ("connector/kafka/a.py", "from connector import targets"),
    "a room imports one beside it within a function": (
        "connector/targets/a.py",
        "def f():\n    import connector.kafka.client\n",
    ),
    "a room imports one beside it relatively": ("connector/mysql/a.py", "from ..kafka import client"),
    "a room imports one behind it": ("connector/mysql/a.py", "from connector.producer import heartbeats"),
    "spark imports the applier": ("connector/spark/stream/a.py", "from connector.applier.core import ApplyCore"),
    "a room imports what looks at it": ("connector/targets/a.py", "from connector.verify import verify"),
    "a compiled module imports one beside it": (
        "connector/kafka/a.pyx",
        "from libc.string cimport memcpy\n\nfrom connector.mysql.memory cimport (\n    Writer,\n)\n",
    ),
    "a compiled module imports one beside it plainly": ("connector/targets/a.pxd", "cimport connector.mysql.memory"),
    "a target asks a server of the source's kind": (
        "connector/targets/a.py",
        "import connector.mysql.server.privileges",
    ),
    "the log imports a room": ("connector/log/a.py", "from connector.targets.target import TargetDatabase"),
    "the log imports the clock": ("connector/log/a.py", "from connector.clock import Clock"),
    "the log imports a vendor": ("connector/log/a.py", "import fastavro"),
    "the log does I/O": ("connector/log/a.py", "from pathlib import Path"),
    "the log asks for randomness": ("connector/log/a.py", "import secrets"),
    "ddl imports a room": ("connector/ddl/a.py", "from connector.mysql.values import charsets"),
    "Kafka outside its home": ("connector/producer/a.py", "from confluent_kafka import Producer"),
    "a consumer beside the factory": ("connector/kafka/a.py", "from confluent_kafka import Consumer"),
    "Kafka in a Spark task": ("connector/spark/a.py", "from confluent_kafka import TopicPartition"),
    "Kafka in what lists the log": ("connector/inspect/a.py", "import confluent_kafka"),
    "Kafka in the applier": ("connector/applier/a.py", "import confluent_kafka"),
    "MySQL outside its home": ("connector/producer/a.py", "import pymysql.cursors"),
    "the replication library outside its home": ("connector/producer/a.py", "import pymysqlreplication.event"),
    "Spark outside its home": ("connector/applier/a.py", "import pyspark.sql"),
    "PostgreSQL in what all targets share": ("connector/targets/a.py", "from psycopg import sql"),
    "SQLite in PostgreSQL's": ("connector/targets/postgres/a.py", "import sqlite3"),
    "verify shares the type mapping": ("connector/verify/a.py", "from connector.mysql.values.columns import layout"),
    "verify shares a target": ("connector/verify/a.py", "from connector.targets import sqlite"),
    "a consumer takes what an applier has": ("connector/consume/a.py", "from connector.applier.core import ApplyCore"),
    "a consumer knows targets": ("connector/consume/a.py", "from connector.targets.table import Table"),
    "a room knows consumers": ("connector/spark/a.py", "from connector.consume import Consumer"),
    "a room asks for the time": ("connector/kafka/a.py", "import time"),
    "a room takes the time by name": ("connector/kafka/a.py", "from time import monotonic"),
    "a room asks a datetime": ("connector/targets/a.py", "import datetime\nx = datetime.datetime.now()\n"),
    "a room asks for today": ("connector/targets/a.py", "from datetime import date\nx = date.today()\n"),
    "the environment is read": ("connector/applier/a.py", "import os\nx = os.environ['HOME']\n"),
    "the environment is read by name": ("connector/targets/a.py", "from os import environ"),
    "the environment is read by a function": ("connector/verify/a.py", "import os\nx = os.getenv('HOME')\n"),
    "Spark's application reads the environment": ("spark_apps/a.py", "import os\nx = os.environ\n"),
}


@pytest.mark.parametrize(("name", "text"), PLANTED.values(), ids=PLANTED.keys())
def test_planted_wrong_import_is_found(name: str, text: str, tmp_path: Path) -> None:
    plant(tmp_path, name, text)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{name}:")


def test_planted_import_cycle_is_found(tmp_path: Path) -> None:
    plant(tmp_path, "connector/kafka/a.py", "from connector.kafka.deeper.b import f")
    plant(tmp_path, "connector/kafka/deeper/b.py", "from connector.kafka.a import g")
    (found,) = violations(tmp_path)
    assert "circle" in found


def test_a_circle_of_folders_through_their_subfolders_is_seen(tmp_path: Path) -> None:
    plant(tmp_path, "connector/mysql/binlog/a.py", "from connector.mysql.snapshot.b import f")
    plant(tmp_path, "connector/mysql/snapshot/b.py", "from connector.mysql.binlog.events.c import g")
    plant(tmp_path, "connector/mysql/binlog/events/c.py", "")
    (found,) = violations(tmp_path)
    assert "circle" in found


ALLOWED = {
    "the foundation": ("connector/targets/a.py", "from connector import clock, metrics\nimport connector.errors"),
    "the log": ("connector/kafka/a.py", "from connector.log.ids import Seqno\nfrom connector.kafka.client import f"),
    "itself, compiled": ("connector/log/compact/a.pyx", "from connector.log.format.avro_reader cimport Reader"),
    "pure parts of the library": ("connector/log/a.py", "from collections import deque\nimport re"),
    "vendors at home": ("connector/targets/postgres/a.py", "import psycopg"),
    "a target reads MySQL's character sets": ("connector/targets/a.py", "from connector.mysql.values import charsets"),
    "a consumer reads as the others do": (
        "connector/consume/a.py",
        "from connector.kafka.consumer import KafkaConsumer\nfrom connector.kafka.log_reader import LogReader",
    ),
    "the log as DataFrames": (
        "connector/spark/a.py",
        "import pyspark\nfrom connector.kafka import consumer",
    ),
    "times that are values": (
        "connector/targets/a.py",
        "from datetime import datetime\nx = datetime.fromisoformat('')\n",
    ),
    "the producer joins": ("connector/producer/a.py", "from connector.mysql.server.dump import open_stream"),
    "verify reads with drivers": ("connector/verify/a.py", "import psycopg\nimport sqlite3\nimport pymysql"),
}


@pytest.mark.parametrize(("name", "text"), ALLOWED.values(), ids=ALLOWED.keys())
def test_allowed_import_is_accepted(name: str, text: str, tmp_path: Path) -> None:
    plant(tmp_path, name, text)
    assert violations(tmp_path) == []


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
