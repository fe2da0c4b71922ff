"""docker/compose.yaml is a valid compose file with the sandbox's settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from connector.config.loading import load
from connector.errors import SandboxError
from connector.fetching import versions
from connector.sandbox import settings
from tests.support.servers import compose
from tests.support.servers import settings as servers
from tests.support.servers.environment import VARIABLE, kafka_for_tests, mysql_for_tests, postgres_for_tests

SCHEMA = Path(__file__).parents[1] / "testdata" / "compose-spec" / "compose-spec.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return yaml.safe_load(compose.FILE.read_text())


@pytest.fixture(scope="module")
def services(document: dict[str, Any]) -> dict[str, Any]:
    return document["services"]


def options(words: list[str]) -> dict[str, str]:
    """`--a-b=c` and `-ca=b` as {"a_b": "c"}: servers take both spellings of a name."""
    pairs = [word.removeprefix("--").removeprefix("-c").split("=", 1) for word in words if "=" in word]
    return {name.replace("-", "_"): value for name, value in pairs}


def test_compose_file_follows_the_specification(document: dict[str, Any]) -> None:
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(document)


def test_schema_refuses_a_wrong_compose_file(document: dict[str, Any]) -> None:
    wrong = {**document, "services": {"mysql": {**document["services"]["mysql"], "portz": []}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(wrong)


@pytest.mark.parametrize(("name", "port"), servers.COMPOSE_PORTS.items())
def test_each_server_is_published_on_loopback_at_its_port(services: dict[str, Any], name: str, port: int) -> None:
    published = [mapping.rsplit(":", 1)[0] for mapping in services[name]["ports"]]
    assert published == [f"{settings.HOST}:{port}"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mysql", settings.MYSQL_SETTINGS),
        ("mariadb", settings.MARIADB_SETTINGS),
        ("postgres", settings.POSTGRES_SETTINGS),
    ],
)
def test_each_database_has_the_sandbox_settings(
    services: dict[str, Any], name: str, expected: Mapping[str, str]
) -> None:
    assert options(services[name]["command"]) == expected


def test_the_administrators_are_those_of_the_sandbox(services: dict[str, Any]) -> None:
    postgres = services["postgres"]["environment"]
    assert settings.Account(postgres["POSTGRES_USER"], postgres["POSTGRES_PASSWORD"]) == settings.POSTGRES_ADMIN
    assert postgres["POSTGRES_DB"] == settings.POSTGRES_DATABASE
    assert settings.MYSQL_ADMIN == settings.MARIADB_ADMIN == settings.Account("root", "")
    password = "${{{}:-{}}}".format(*servers.COMPOSE_PASSWORD)
    assert services["mysql"]["environment"] == {"MYSQL_ROOT_PASSWORD": password, "MYSQL_ROOT_HOST": "%"}
    assert services["mariadb"]["environment"] == {"MARIADB_ROOT_PASSWORD": password, "MARIADB_ROOT_HOST": "%"}
    assert services["produce"]["environment"]["THL_SOURCE__PASSWORD"] == password


def test_the_password_of_the_set_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THL_COMPOSE_PASSWORD", raising=False)
    assert (compose.MYSQL.password, compose.MARIADB.password, compose.POSTGRES.password) == ("thl", "thl", "thl")
    monkeypatch.setenv("THL_COMPOSE_PASSWORD", "chosen")
    assert (compose.MYSQL.password, compose.MARIADB.password, compose.POSTGRES.password) == ("chosen", "chosen", "thl")


def test_broker_has_the_sandbox_message_size_and_creates_no_topics(services: dict[str, Any]) -> None:
    file, place, _ = services["kafka"]["volumes"][1].split(":")
    properties = yaml.safe_load((compose.FILE.parent / file).read_text())
    assert place == "/etc/redpanda/.bootstrap.yaml"
    assert properties["kafka_batch_max_bytes"] == int(settings.KAFKA_SETTINGS["message.max.bytes"])
    assert properties["kafka_request_max_bytes"] == int(settings.KAFKA_SETTINGS["socket.request.max.bytes"])
    assert properties["auto_create_topics_enabled"] is False
    assert f"outside://{settings.HOST}:{servers.COMPOSE_PORTS['kafka']}" in services["kafka"]["command"][-1]


def test_the_images_are_of_the_versions_that_the_sandbox_has(services: dict[str, Any]) -> None:
    assert versions.MARIADB_VERSION.startswith(services["mariadb"]["image"].removeprefix("mariadb:"))
    assert versions.POSTGRES_VERSION.startswith(services["postgres"]["image"].removeprefix("postgres:"))


@pytest.mark.parametrize("name", ["produce", "apply", "serve"])
def test_the_connector_is_pointed_at_the_servers_of_the_set(services: dict[str, Any], name: str) -> None:
    config = load(environ=services[name]["environment"])
    assert (config.source.host, config.source.user) == ("mysql", settings.MYSQL_ADMIN.user)
    assert (config.kafka.bootstrap, config.kafka.replication, config.kafka.min_isr) == ("kafka:9092", 1, 1)
    assert config.kafka.allow_unsafe
    admin = settings.POSTGRES_ADMIN
    expected = f"postgresql://{admin.user}:{admin.password}@postgres:5432/{settings.POSTGRES_DATABASE}"
    assert config.target.url.get_secret_value() == expected


def test_prometheus_scrapes_the_processes_of_the_set(services: dict[str, Any]) -> None:
    folder = compose.FILE.parent / "prometheus"
    scraped = yaml.safe_load((folder / "prometheus.yaml").read_text())
    (volume, _) = services["prometheus"]["volumes"]
    assert (compose.FILE.parent / volume.split(":")[0]).resolve() == folder.resolve()
    assert [(folder / name).is_file() for name in scraped["rule_files"]] == [True]
    for job in scraped["scrape_configs"]:
        (target,) = job["static_configs"][0]["targets"]
        name, _, port = target.partition(":")
        config = load(environ=services[name]["environment"])
        assert services[name]["command"] == [name]
        assert job["job_name"] == f"thl-{name}"
        serves = name == "serve"
        section = config.serve if serves else config.metrics
        assert (section.port, section.host) == (int(port), "0.0.0.0")  # noqa: S104
        assert not serves or name in config.serve.hosts


def test_compose_stack_provides_its_servers_to_tests(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "compose")
    assert mysql_for_tests(tmp_path) is compose.MYSQL
    assert postgres_for_tests(tmp_path) is compose.POSTGRES
    assert kafka_for_tests(tmp_path) is compose.KAFKA
    assert compose.MYSQL.dsn == "mysql://root@127.0.0.1:13306"
    assert compose.POSTGRES.dsn == "postgresql://thl:thl@127.0.0.1:15432/postgres"
    assert compose.KAFKA.bootstrap == "127.0.0.1:19092"


def test_an_unknown_stack_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "kubernetes")
    with pytest.raises(SandboxError) as refused:
        mysql_for_tests(tmp_path)
    assert refused.value.where == {"variable": VARIABLE, "stack": "kubernetes"}


@pytest.fixture
def docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A `docker` that writes down what it was asked, and answers with what it was given."""
    asked = tmp_path / "asked"
    program = tmp_path / "docker"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {asked}\ncase "$*" in *stop*) echo no engine >&2; exit 1;; esac\ncat\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return asked


def test_docker_starts_kills_and_reaches_the_servers(docker: Path) -> None:
    with compose.MYSQL as server:
        server.kill()
        assert server.run_sql("SELECT 1", database="shop") == "SELECT 1"
    words = f"compose --file {compose.FILE}"
    assert docker.read_text().splitlines() == [
        f"{words} up --detach --wait mysql",
        f"{words} kill --signal=SIGKILL mysql",
        f'{words} exec --no-TTY mysql sh -c MYSQL_PWD="$MYSQL_ROOT_PASSWORD" exec mysql "$@" mysql '
        "--user=root --batch --raw --default-character-set=utf8mb4 shop",
    ]


def test_output_of_docker_is_in_the_error(docker: Path) -> None:
    with pytest.raises(SandboxError, match="no engine"):
        compose.KAFKA.stop()
