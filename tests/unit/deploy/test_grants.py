"""docker/grants: what the documents quote, and rules for Kafka that are those of `thl acls`."""

from __future__ import annotations

import re
import subprocess
from itertools import product
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import AclOperation, ResourcePatternType, ResourceType

from connector.config.model import Config
from connector.kafka.acls import rules
from tests.support.deployed import ROOT
from tests.support.grants import FOLDER, granted, sections, statements

FILES: Final = sorted(file.name for file in FOLDER.glob("*.sql"))
SCRIPT: Final = FOLDER / "kafka-acls.sh"
RESOURCES: Final = {"--topic": "TOPIC", "--transactional-id": "TRANSACTIONAL_ID", "--group": "GROUP"}
Rule = tuple[str, str, str, str, str]


def privileges(grants: tuple[str, ...]) -> set[str]:
    return {name.strip() for grant in grants for name in grant.partition(" ON ")[0].split(",")}


def in_blocks(page: str) -> set[str]:
    """The statements of a page's SQL blocks, without comments, on one line each."""
    blocks = re.findall(r"^```sql\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    text = re.sub(r"--.*$", "", "\n".join(blocks), flags=re.MULTILINE)
    return {" ".join(statement.split()) for statement in text.split(";") if statement.strip()}


@pytest.mark.parametrize("file", FILES)
def test_the_page_on_security_quotes_every_statement(file: str) -> None:
    found = {statement for section in sections(file).values() for statement in section}
    assert found - in_blocks("docs/security.md") == set()


def test_the_page_on_security_quotes_no_other_grant() -> None:
    there = {statement for file in FILES for section in sections(file).values() for statement in section}
    assert {statement for statement in in_blocks("docs/security.md") if "GRANT" in statement} - there == set()


@pytest.mark.parametrize(
    ("page", "file", "names"),
    [
        ("README.md", "mysql-source.sql", ("log", "tables", "loads")),
        ("docs/tutorial.md", "mysql-source.sql", ("log", "tables", "loads")),
        ("docs/tutorial.md", "mariadb-source.sql", ("log", "tables", "loads")),
    ],
)
def test_the_shorter_grants_of_other_pages_have_the_same_privileges(
    page: str, file: str, names: tuple[str, ...]
) -> None:
    shown = [found[1] for one in in_blocks(page) if (found := re.fullmatch(r"GRANT (.+) ON \*\.\* TO thl", one))]
    assert privileges(granted(file, *names)) in [privileges((one,)) for one in shown]


def test_statements_are_those_of_another_user_and_schema() -> None:
    made = statements("mysql-target.sql", "user", "ddl once", user="u1", password="x")
    assert made == [
        "CREATE USER u1 IDENTIFIED BY 'x'",
        "GRANT REPLICATION_APPLIER ON *.* TO u1",
        "GRANT PROCESS ON *.* TO u1",
    ]
    assert statements("postgres-target.sql", "schemas", user="u1", schema="d1") == [
        'GRANT CONNECT, TEMPORARY ON DATABASE "d1" TO u1',
        "CREATE SCHEMA thl AUTHORIZATION u1",
        "CREATE SCHEMA shop AUTHORIZATION u1",
    ]


def rules_of(line: list[str]) -> set[Rule]:
    """The rules that one call of Kafka's tool creates, of the options that the script gives it."""
    options = list(zip(line, [*line[1:], ""], strict=True))
    (who,) = (value for name, value in options if name == "--allow-principal")
    assert "--add" in line
    assert line[line.index("--bootstrap-server") + 1] == "kafka:9092"
    pattern = next((value for name, value in options if name == "--resource-pattern-type"), "literal").upper()
    resources = [(RESOURCES[name], value) for name, value in options if name in RESOURCES]
    operations = [value for name, value in options if name == "--operation"]
    snake = [re.sub(r"(?<=[a-z])(?=[A-Z])", "_", one).upper() for one in operations]
    return {(who, kind, name, pattern, one) for (kind, name), one in product(resources, snake)}


def test_the_script_for_kafka_has_the_rules_of_thl_acls(tmp_path: Path) -> None:
    tool, asked = tmp_path / "tool", tmp_path / "asked"
    tool.write_text(f'#!/bin/sh\nprintf "%s\\t" "$@" >> {asked}\necho >> {asked}\n')
    tool.chmod(0o755)
    who = {"producers": ["User:p"], "consumers": ["User:c"], "operators": ["User:o"]}
    subprocess.run(
        [str(SCRIPT), "thl.shop", "User:p", "User:c", "User:o", "--bootstrap-server", "kafka:9092"],
        check=True,
        env={"KAFKA_ACLS": str(tool), "PATH": "/usr/bin:/bin"},
    )
    made = {rule for line in asked.read_text().splitlines() for rule in rules_of(line.rstrip("\t").split("\t"))}
    assert made == {
        (
            one.principal,
            ResourceType(one.restype).name,
            one.name,
            ResourcePatternType(one.resource_pattern_type).name,
            AclOperation(one.operation).name,
        )
        for one in rules(Config(service="shop"), **who)
    }


def test_the_script_for_kafka_without_principals_says_how_it_is_used() -> None:
    said = subprocess.run([str(SCRIPT), "thl.shop", "User:p"], capture_output=True, text=True, check=False)
    assert said.returncode == 2
    assert "kafka-acls.sh LOG PRODUCER CONSUMER OPERATOR OPTION…" in said.stderr
