"""Who may import whom: the house as it stands, and the proof that a bad import is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.layers import violations

ROOT = Path(__file__).parents[2]


def test_the_house_keeps_its_rules() -> None:
    assert violations(ROOT) == []


PLANTED = {
    "a stage imports another": ("connector/encode/a.py", "from connector.capture.rows import Row"),
    "a stage imports another by its folder": ("connector/encode/a.py", "from connector import publish"),
    "a stage imports another within a function": (
        "connector/write/a.py",
        "def f():\n    import connector.reassemble.scan\n",
    ),
    "a stage imports another relatively": ("connector/encode/a.py", "from ..publish import client"),
    "a stage imports what joins the stages": ("connector/capture/a.py", "from connector.pipeline.apply import Applier"),
    "a stage imports what looks at it": ("connector/write/a.py", "from connector.verify import verify"),
    "a compiled stage imports another": (
        "connector/reassemble/a.pyx",
        "from libc.string cimport memcpy\n\nfrom connector.encode.fragment cimport (\n    Writer,\n)\n",
    ),
    "a compiled stage imports another plainly": ("connector/reassemble/a.pxd", "cimport connector.capture.memory"),
    "thl imports a stage": ("connector/thl/a.py", "from connector.write.target import Target"),
    "thl imports the clock": ("connector/thl/a.py", "from connector.clock import Clock"),
    "thl imports a vendor": ("connector/thl/a.py", "import fastavro"),
    "thl does I/O": ("connector/thl/a.py", "from pathlib import Path"),
    "thl asks for randomness": ("connector/thl/a.py", "import secrets"),
    "Kafka outside its homes": ("connector/encode/a.py", "from confluent_kafka import Producer"),
    "Kafka in the pipeline": ("connector/pipeline/a.py", "import confluent_kafka"),
    "MySQL outside capture": ("connector/publish/a.py", "import pymysql.cursors"),
    "the replication library outside capture": ("connector/pipeline/a.py", "import pymysqlreplication.event"),
    "Spark in another module of reassemble": ("connector/reassemble/a.py", "import pyspark.sql"),
    "PostgreSQL in another module of write": ("connector/write/a.py", "from psycopg import sql"),
    "SQLite in PostgreSQL's": ("connector/write/postgres_a.py", "import sqlite3"),
    "verify shares the type mapping": ("connector/verify/a.py", "from connector.capture.columns import layout"),
    "verify shares a target": ("connector/verify/a.py", "from connector.write import sqlite"),
    "a consumer takes what an applier has": ("connector/consume/a.py", "from connector.reassemble.scan import Scanner"),
    "a consumer joins the stages": ("connector/consume/a.py", "from connector.pipeline.core import Core"),
    "a stage knows consumers": ("connector/reassemble/a.py", "from connector.consume import Consumer"),
    "a stage asks for the time": ("connector/publish/a.py", "import time"),
    "a stage takes the time by name": ("connector/publish/a.py", "from time import monotonic"),
    "a stage asks a datetime": ("connector/write/a.py", "import datetime\nx = datetime.datetime.now()\n"),
    "a stage asks for today": ("connector/write/a.py", "from datetime import date\nx = date.today()\n"),
    "the environment is read": ("connector/pipeline/a.py", "import os\nx = os.environ['HOME']\n"),
    "the environment is read by name": ("connector/write/a.py", "from os import environ"),
    "the environment is read by a function": ("connector/verify/a.py", "import os\nx = os.getenv('HOME')\n"),
    "Spark's application reads the environment": ("spark_apps/a.py", "import os\nx = os.environ\n"),
}


@pytest.mark.parametrize(("name", "text"), PLANTED.values(), ids=PLANTED.keys())
def test_a_planted_bad_import_is_seen(name: str, text: str, tmp_path: Path) -> None:
    plant(tmp_path, name, text)
    (found,) = violations(tmp_path)
    assert found.startswith(f"{name}:")


ALLOWED = {
    "what every stage needs": ("connector/write/a.py", "from connector import clock, metrics\nimport connector.errors"),
    "thl": ("connector/encode/a.py", "from connector.thl.words import Seqno\nfrom connector.encode.cut import cut"),
    "itself, compiled": ("connector/reassemble/a.pyx", "from connector.reassemble.avro cimport Reader"),
    "pure parts of the library": ("connector/thl/a.py", "from collections import deque\nimport re"),
    "vendors at home": ("connector/write/postgres_a.py", "import psycopg"),
    "a consumer reads as the others do": (
        "connector/consume/a.py",
        "from confluent_kafka import Consumer\nfrom connector.publish.reading import LogReader",
    ),
    "the log as DataFrames": ("connector/spark/a.py", "import pyspark\nfrom confluent_kafka import Consumer"),
    "times that are values": (
        "connector/write/a.py",
        "from datetime import datetime\nx = datetime.fromisoformat('')\n",
    ),
    "the pipeline joins": ("connector/pipeline/a.py", "from connector.capture.stream import open_stream"),
    "verify reads with drivers": ("connector/verify/a.py", "import psycopg\nimport sqlite3\nimport pymysql"),
}


@pytest.mark.parametrize(("name", "text"), ALLOWED.values(), ids=ALLOWED.keys())
def test_what_is_allowed_is_not_complained_about(name: str, text: str, tmp_path: Path) -> None:
    plant(tmp_path, name, text)
    assert violations(tmp_path) == []


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
