"""A service with everything that docs/security.md has, from `thl check` to `thl verify`, by commands as processes.

TLS and client certificates to MySQL and PostgreSQL, SASL_SSL with SCRAM and access rules on Kafka, users with the
rights of docker/grants and no others, secrets in files.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from connector.fetching.jars import spark_kafka_jars
from connector.sandbox.mysql import MySqlServer
from connector.sandbox.postgres import PostgresServer
from connector.sandbox.settings import MYSQL_FAST
from tests.integration.producer.test_secrets import Scene, shown
from tests.support.certificates import Certificates, write_certificates
from tests.support.clock import PATIENCE
from tests.support.grants import FOLDER, statements
from tests.support.producing import until
from tests.support.secure_kafka import MECHANISM, PASSWORD, SecureBroker, secure_broker
from tests.support.servers.kafka_tools import write_tool

pytestmark = [pytest.mark.servers, pytest.mark.long]

SHOP = "secured"  # the schema, the database and the service
SECRETS = {"kafka": PASSWORD, **{name: f"planted {name} #1" for name in ("source", "target", "status")}}
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required"
# Plain connections are for the administrator alone.
HBA = """host all thl 127.0.0.1/32 scram-sha-256
hostssl all all 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
"""
ROWS = f"SELECT id, v FROM {SHOP}.t ORDER BY id"


@dataclass(frozen=True)
class Servers:
    """The servers, and what their clients need."""

    mysql: MySqlServer
    postgres: PostgresServer
    kafka: SecureBroker
    certificates: Certificates


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("secured")
    with ExitStack() as stack:
        certificates = stack.enter_context(write_certificates())
        for key in (certificates.key, certificates.client):
            key.chmod(0o600)  # libpq and PostgreSQL refuse keys that others can read
        (folder / "hba.conf").write_text(HBA)
        settings = {
            "ssl": "on",
            "ssl_ca_file": str(certificates.authority),
            "ssl_cert_file": str(certificates.certificate),
            "ssl_key_file": str(certificates.key),
            "hba_file": str(folder / "hba.conf"),
        }
        postgres = PostgresServer(folder / "postgres", settings=settings, die_with_parent=True)
        mysql = MySqlServer(folder / "mysql", settings={**MYSQL_FAST, **certificates.settings}, die_with_parent=True)
        kafka = stack.enter_context(secure_broker(folder / "kafka", ("producer", "consumer", "operator")))
        made = Servers(stack.enter_context(mysql), stack.enter_context(postgres), kafka, certificates)
        create_users(made, folder)
        yield made


def create_users(servers: Servers, folder: Path) -> None:
    """Create the users with the files of docker/grants, and have each show a certificate."""
    sections = ("user", "log", "tables", "loads")
    for sql in (
        f"CREATE DATABASE {SHOP}",
        f"CREATE TABLE {SHOP}.t (id INT PRIMARY KEY, v VARCHAR(64))",
        f"INSERT INTO {SHOP}.t VALUES (1, 'one'), (2, 'two')",
        *statements("mysql-source.sql", *sections, user="reader", password=SECRETS["source"], schema=SHOP),
        "ALTER USER reader REQUIRE X509",
    ):
        servers.mysql.run_sql(sql)
    administer(servers, f"CREATE DATABASE {SHOP} ENCODING 'UTF8' TEMPLATE template0", database="postgres")
    for sql in statements(
        "postgres-target.sql", "user", "database", user="writer", password=SECRETS["target"], schema=SHOP
    ):
        administer(servers, sql)
    tool = write_tool(folder / "kafka-acls.sh", "AclCommand")
    principals = [f"User:{role}" for role in ("producer", "consumer", "operator")]
    subprocess.run(
        [str(FOLDER / "kafka-acls.sh"), f"thl.{SHOP}", *principals, "--bootstrap-server", servers.kafka.plain],
        check=True, capture_output=True, env={"KAFKA_ACLS": str(tool), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip


def administer(servers: Servers, sql: str, database: str = SHOP) -> list[Any]:
    with psycopg.connect(servers.postgres.dsn.rpartition("/")[0] + f"/{database}", autocommit=True) as admin:
        found = admin.execute(sql.encode())
        return found.fetchall() if found.description else []


@pytest.fixture
def scene(servers: Servers, tmp_path: Path) -> Iterator[Scene]:
    """The service as the producer's host has it."""
    for name in ("out", "tmp", "work", "spark", "secrets"):
        (tmp_path / name).mkdir(mode=0o700)
    write_secret(tmp_path, "source", SECRETS["source"])
    write_secret(tmp_path, "target", target(servers, "writer", SECRETS["target"]))
    write_secret(tmp_path, "kafka", PASSWORD)
    certificates = servers.certificates
    document = {
        "service": SHOP,
        "source": {
            "port": servers.mysql.port, "user": "reader", "password_file": str(tmp_path / "secrets" / "source"),
            "tls": True, "tls_ca": str(certificates.authority), "tls_cert": str(certificates.client),
            "snapshot": {"lock": "brief"}, "filters": {"do": [SHOP]},
        },
        "kafka": kafka(servers, tmp_path, "producer"),
        "target": {"url_file": str(tmp_path / "secrets" / "target"), "retries": 1},
        "apply": {
            "checkpoint_dir": str(tmp_path / "spark"), "heap": "512m",
            "spark": {"spark.jars": ",".join(map(str, spark_kafka_jars())), "spark.local.dir": str(tmp_path / "tmp")},
        },
    }  # fmt: skip
    made = Scene(tmp_path, document, SHOP)
    yield made
    for process in made.processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def write_secret(folder: Path, name: str, secret: str) -> None:
    """Write a secret's file that others may not read, as docs/security.md has it."""
    file = folder / "secrets" / name
    file.write_text(secret + "\n")
    file.chmod(0o600)


def target(servers: Servers, user: str, password: str, certificate: Path | None = None) -> str:
    shows = certificate or servers.certificates.client
    tls = f"sslmode=verify-full&sslrootcert={servers.certificates.authority}&sslcert={shows}&sslkey={shows}"
    return f"postgresql://{user}:{quote(password, safe='')}@127.0.0.1:{servers.postgres.port}/{SHOP}?{tls}"


def kafka(servers: Servers, folder: Path, user: str) -> dict[str, Any]:
    """The section of a user, with its secrets in files."""
    write_secret(folder, f"{user}.jaas", f'{LOGIN} username="{user}" password="{PASSWORD}";')
    both = {"security.protocol": "SASL_SSL", "sasl.mechanism": MECHANISM}
    authority = str(servers.kafka.authority)
    return {
        "bootstrap": servers.kafka.bootstrap, "replication": 1, "min_isr": 1, "allow_unsafe": True, "retries": 1,
        "properties": {
            **both, "ssl.ca.location": authority, "sasl.username": user,
            "sasl.password_file": str(folder / "secrets" / "kafka"),
        },
        "spark_properties": {
            **both, "ssl.truststore.type": "PEM", "ssl.truststore.location": authority,
            "sasl.jaas.config_file": str(folder / "secrets" / f"{user}.jaas"),
        },
    }  # fmt: skip


def succeeds(scene: Scene, command: str, *options: str, **sections: Any) -> str:
    """What a command prints that ends with 0."""
    said = scene.run(command, *options, **sections)
    assert scene.processes[-1].returncode == 0, said
    return scene.printed


def on_target(servers: Servers) -> list[tuple[Any, ...]]:
    try:
        return administer(servers, ROWS)
    except psycopg.errors.UndefinedTable:
        return []


def on_source(servers: Servers) -> list[tuple[Any, ...]]:
    lines = [line.split("\t") for line in servers.mysql.run_sql(ROWS).splitlines()[1:]]
    return [(int(key), value) for key, value in lines]


def test_a_secured_service_is_checked_run_compared_and_watched(scene: Scene, servers: Servers) -> None:
    consumer = kafka(servers, scene.folder, "consumer")
    checked = succeeds(scene, "check")
    assert "has every privilege" in checked

    producing = scene.start("produce")
    applying = scene.start("apply", kafka=consumer)

    def equal() -> bool:
        scene.look()
        for process in (producing, applying):
            assert process.poll() is None, "".join(f.read_text() for f in (scene.folder / "out").iterdir())
        return on_target(servers) == on_source(servers) != []

    until(equal)
    servers.mysql.run_sql(f"CREATE TABLE {SHOP}.u (id INT PRIMARY KEY, b BLOB); INSERT INTO {SHOP}.u VALUES (1, 'x')")
    servers.mysql.run_sql(f"ALTER TABLE {SHOP}.t ADD n INT; UPDATE {SHOP}.t SET v = 'changed', n = id WHERE id = 2")
    servers.mysql.run_sql(f"DELETE FROM {SHOP}.t WHERE id = 1; INSERT INTO {SHOP}.t VALUES (3, 'three', 3)")
    until(equal)

    found = succeeds(scene, "verify", "--format", "json", kafka=consumer)
    assert {table["name"] for table in json.loads(found)["tables"]} == {f"{SHOP}.t", f"{SHOP}.u"}
    for sql in statements("postgres-target.sql", "status", user="writer", password=SECRETS["status"], schema=SHOP):
        administer(servers, sql)
    write_secret(scene.folder, "status", target(servers, "thl_status", SECRETS["status"]))
    watching = {"url_file": str(scene.folder / "secrets" / "status")}
    status = json.loads(succeeds(scene, "status", "--format", "json", kafka=consumer, target=watching))
    assert (status["problems"], status["producer"]["state"], status["applier"]["state"]) == ([], "ONLINE", "ONLINE")

    sessions = administer(servers, "SELECT ssl, client_dn FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) "
                          "WHERE usename = 'writer'")  # fmt: skip
    assert set(sessions) == {(True, "/CN=client")}
    for process in (producing, applying):
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert shown(scene.texts(), SECRETS) == []


def test_each_server_refuses_who_lacks_a_part(scene: Scene, servers: Servers) -> None:
    """With all of them `thl check` is content, as the test above shows."""
    with write_certificates() as others:
        stranger = scene.folder / "stranger.pem"
        shutil.copy(others.client, stranger)
        stranger.chmod(0o600)
        shows_another = {"url": target(servers, "writer", SECRETS["target"], stranger), "url_file": None}
        trusts_others = scene.document["kafka"]["properties"] | {"ssl.ca.location": str(others.authority)}
        parts: list[tuple[dict[str, Any], str]] = [
            ({"source": {"tls_cert": None}}, "refuses the user"),
            ({"source": {"tls_ca": str(others.authority)}}, "certificate"),
            ({"target": shows_another}, "PostgreSQL"),
            ({"kafka": kafka(servers, scene.folder, "stranger")}, "Authentication failed"),
            ({"kafka": {"properties": trusts_others}}, "certificate"),
        ]
        for sections, says in parts:
            said = scene.run("check", **sections)
            assert scene.processes[-1].returncode not in (0, 70), said
            assert says in said
    assert shown(scene.texts(), SECRETS) == []
