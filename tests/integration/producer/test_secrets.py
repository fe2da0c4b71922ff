"""Secrets planted in valid and invalid configurations appear in no output, log, topic or table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
import pytest
import yaml

from connector.fetching.jars import spark_kafka_jars
from connector.fetching.java import java_home
from connector.sandbox.ports import free_port
from tests.support.clock import PATIENCE
from tests.support.producing import until
from tests.support.secure_kafka import PASSWORD, SecureBroker, secure_broker
from tests.support.servers.environment import DatabaseServer, SqlServer

pytestmark = pytest.mark.servers
REPOSITORY = Path(__file__).parents[3]


def planted(where: str) -> str:
    return f"planted {where} #1"


SECRETS = {
    "kafka": PASSWORD,
    **{
        name: planted(name)
        for name in ("source", "target", "replica", "hash-key-of-16", "keystore", "java", "store", "s3", "registry")
    },
}


@dataclass
class Scene:
    """A service with every secret there can be, its processes, and what was seen of them."""

    folder: Path
    document: dict[str, Any]
    service: str
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    commands: set[str] = field(default_factory=set)

    def run(self, command: str, *options: str, **sections: Any) -> str:
        """A command to its end; what it printed, then what it logged."""
        process = self.start(command, *options, **sections)
        process.wait(PATIENCE)
        return self.printed + (self.folder / "out" / f"{len(self.processes)}.log").read_text()

    @property
    def printed(self) -> str:
        """The last command's result alone: warnings, as of a target that waits, are on stderr."""
        return (self.folder / "out" / f"{len(self.processes)}.txt").read_text()

    def start(self, command: str, *options: str, **sections: Any) -> subprocess.Popen[bytes]:
        """A command, with a configuration file, and parts of it replaced."""
        number = len(self.processes) + 1
        file = self.folder / f"{number}.yaml"
        changed = {
            name: {**self.document.get(name, {}), **given} if isinstance(given, dict) else given
            for name, given in sections.items()
        }
        file.write_text(yaml.safe_dump(self.document | changed))
        spec = find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        kept = {name: value for name, value in os.environ.items() if not name.startswith("THL_")}
        out = self.folder / "out"
        with (out / f"{number}.txt").open("wb") as printed, (out / f"{number}.log").open("wb") as logged:
            process = subprocess.Popen(
                [sys.executable, "-m", "connector", command, *options, "--config", str(file)],
                cwd=self.folder / "work",
                env={
                    **kept,
                    "PYTHONPATH": str(REPOSITORY),
                    "JAVA_HOME": str(java_home()),
                    "SPARK_HOME": str(Path(spec.origin).parent),
                    "TMPDIR": str(self.folder / "tmp"),
                    "THL_DEBUG": "1",
                },
                stdout=printed,
                stderr=logged,
            )
        self.processes.append(process)
        return process

    def look(self) -> None:
        """Keep the command lines of everything that runs, as `ps` shows them to every user."""
        for process in self.processes:
            with suppress(psutil.Error):
                one = psutil.Process(process.pid)
                for each in [one, *one.children(recursive=True)]:
                    with suppress(psutil.Error):
                        self.commands.add("\0".join(each.cmdline()))

    def texts(self) -> Iterator[tuple[str, bytes]]:
        """Everything that was said or written, but for the configuration itself."""
        for number, command in enumerate(self.commands):
            yield f"command line {number}: {command[:200]!r}", command.encode()
        for place in ("out", "tmp", "work", "spark", "events"):
            for file in (self.folder / place).rglob("*"):
                with suppress(OSError):
                    if file.is_file():
                        yield str(file), file.read_bytes()


def shown(texts: Iterator[tuple[str, bytes]], secrets: Mapping[str, str] = SECRETS) -> list[str]:
    """Where a secret stands, in any of the ways to write it."""
    found = []
    for place, text in texts:
        for name, secret in secrets.items():
            forms = {secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1]}
            found += [f"{name} in {place}" for form in forms if form.encode() in text]
    return found


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with secure_broker(tmp_path_factory.mktemp("broker")) as started:
        yield started


@pytest.fixture
def scene(
    broker: SecureBroker, mysql_server: SqlServer, postgres_server: DatabaseServer, tmp_path: Path
) -> Iterator[Scene]:
    service = f"s{uuid.uuid4().hex[:8]}"
    for name in ("out", "tmp", "work", "spark", "events", "secrets"):
        (tmp_path / name).mkdir()
    for user in ("source", "replica"):
        mysql_server.run_sql(
            f"CREATE USER {user}_{service} IDENTIFIED BY '{SECRETS[user]}'; GRANT ALL ON *.* TO {user}_{service}"
        )
    mysql_server.run_sql(
        f"CREATE DATABASE {service}; CREATE TABLE {service}.t (id INT PRIMARY KEY, v VARCHAR(64));"
        f"INSERT INTO {service}.t VALUES (1, 'one')"
    )
    with psycopg.connect(postgres_server.dsn, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {service} LOGIN PASSWORD '{SECRETS['target']}'".encode())
        admin.execute(f"CREATE DATABASE {service} OWNER {service}".encode())
    (tmp_path / "secrets" / "source").write_text(SECRETS["source"])
    (tmp_path / "secrets" / "source").chmod(0o600)  # else each command warns of it
    kafka = broker.kafka()
    target = f"postgresql://{service}:{quote(SECRETS['target'], safe='')}@127.0.0.1:{postgres_server.port}/{service}"
    document = {
        "service": service,
        "source": {
            "port": mysql_server.port,
            "user": f"source_{service}",
            "password_file": str(tmp_path / "secrets" / "source"),
            "server_id": 10_000 + int(service[1:5], 16),
            "filters": {
                "do": [service],
                "hash_key": SECRETS["hash-key-of-16"],
                "tables": [{"match": [f"{service}.t"], "mask": {"v": {"hash": 32}}}],
            },
        },
        "publish": {
            "wait_for": [
                f"mysql://replica_{service}:{quote(SECRETS['replica'], safe='')}@127.0.0.1:{mysql_server.port}"
            ]
        },
        "kafka": {
            "bootstrap": kafka.bootstrap, "replication": 1, "min_isr": 1, "allow_unsafe": True, "retries": 1,
            "properties": {**kafka.properties, "ssl.keystore.password": SECRETS["keystore"]},
            "spark_properties": {**kafka.spark_properties, "ssl.key.password": SECRETS["java"]},
        },
        "registry": {"properties": {"basic.auth.user.info": f"u:{SECRETS['registry']}"}},
        "target": {"url": target, "retries": 1},
        "apply": {
            "checkpoint_dir": str(tmp_path / "spark"),
            "heap": "512m",
            "spark": {
                "spark.jars": ",".join(map(str, spark_kafka_jars())),
                "spark.local.dir": str(tmp_path / "tmp"),
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": (tmp_path / "events").as_uri(),
                "spark.hadoop.fs.s3a.secret.key": SECRETS["s3"],
                "spark.driver.extraJavaOptions":
                    f"-XX:+UseSerialGC '-Djavax.net.ssl.trustStorePassword={SECRETS['store']}' -Dnext=1",
            },
        },
    }  # fmt: skip
    made = Scene(tmp_path, document, service)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def rows(server: DatabaseServer, service: str) -> int:
    with psycopg.connect(f"{server.dsn.rpartition('/')[0]}/{service}", autocommit=True) as session:
        try:
            found = session.execute(f"SELECT count(*) FROM {service}.t".encode()).fetchone()
        except psycopg.errors.UndefinedTable:
            return 0
        return int(found[0]) if found else 0


def test_secrets_appear_only_in_the_configuration(scene: Scene, postgres_server: DatabaseServer) -> None:
    port = free_port()
    producing = scene.start("produce")
    applying = scene.start("apply", metrics={"port": port})

    def applied() -> bool:
        scene.look()
        assert producing.poll() is None, (scene.folder / "out" / "1.log").read_text()
        assert applying.poll() is None, (scene.folder / "out" / "2.log").read_text()
        return rows(postgres_server, scene.service) == 1

    until(applied)
    scene.look()
    assert any("SparkSubmit" in command for command in scene.commands)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as metrics:
        assert shown(iter([("metrics", metrics.read())])) == []
    scene.run("status", "--format", "json")
    assert scene.service in json.dumps(json.loads(scene.printed))
    assert "**********" in scene.run("config")
    assert list((scene.folder / "events").iterdir())
    assert shown(scene.texts()) == []
    for process in (producing, applying):
        process.terminate()
        process.wait(PATIENCE)
    assert shown(scene.texts()) == []


@pytest.mark.long
def test_errors_of_servers_and_libraries_show_no_secret(scene: Scene) -> None:
    kafka, target = scene.document["kafka"], scene.document["target"]["url"]
    assert "refuses the user" in scene.run("produce", source={"user": "nobody"})
    wrong = {**kafka["properties"], "sasl.password": SECRETS["registry"]}
    assert "Authentication failed" in scene.run("status", kafka={"properties": wrong})
    assert "thl:" in scene.run("produce", kafka={"properties": {**wrong, "no.such.property": SECRETS["java"]}})
    java = {**kafka["spark_properties"], "sasl.jaas.config": f'no.Module required password="{SECRETS["java"]}"'}
    assert "thl:" in scene.run("apply", kafka={"spark_properties": java})
    unknown = target.replace(f"{scene.service}:", "unknown:", 1)
    assert "thl:" in scene.run("apply", target={"url": unknown})
    assert "not a URL of PostgreSQL" in scene.run("status", target={"url": f"{target}?sslpassword=x&nothing=1"})
    repository = {"spark.jars.repositories": f"https://u:{quote(SECRETS['s3'])}@127.0.0.1/x"}
    assert "spark.jars.ivySettings" in scene.run("apply", apply={"spark": repository})
    registry = {"url": "http://127.0.0.1:1", "properties": {"basic.auth.user.info": SECRETS["registry"]}}
    assert "thl:" in scene.run("produce", registry=registry)
    scene.look()
    assert shown(scene.texts()) == []
