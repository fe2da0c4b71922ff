"""The least rights of docker/grants: what tests grant to their users, and what the documents quote."""

from __future__ import annotations

import re
from typing import Final

from tests.support.deployed import DOCKER

FOLDER: Final = DOCKER / "grants"
USER: Final = {"mysql": "'thl'@'%'", "mariadb": "'thl'@'%'", "postgres": "thl"}
_SECTION: Final = re.compile(r"^-- \[(.+?)\](.*?)(?=^-- \[|\Z)", re.DOTALL | re.MULTILINE)


def sections(file: str) -> dict[str, list[str]]:
    """The statements of a file by the name of their section."""
    text = (FOLDER / file).read_text()
    return {
        name: [
            " ".join(statement.split())
            for statement in re.sub(r"^--.*$", "", body.partition("\n")[2], flags=re.MULTILINE).split(";")
            if statement.strip()
        ]
        for name, body in _SECTION.findall(text)
    }


def granted(file: str, *names: str, schema: str = "shop") -> tuple[str, ...]:
    """What sections of a MySQL's or MariaDB's file grant: `SELECT ON shop.*`.

    Args:
        file: its name.
        names: of the sections.
        schema: the captured schema; `*`: all of them.
    """
    read = sections(file)
    whole = "*.*" if schema == "*" else f"`{schema}`.*"
    statements = [statement for name in names for statement in read[name]]
    grants = [re.fullmatch(r"GRANT (.+) TO 'thl'@'%'", statement) for statement in statements]
    return tuple(grant[1].replace("`shop`.*", whole) for grant in grants if grant)


def statements(file: str, *names: str, user: str, password: str = "change me", schema: str = "shop") -> list[str]:  # noqa: S107 (the placeholder)
    """Statements of sections for another user and another schema (PostgreSQL: database)."""
    read = sections(file)
    quoted = USER[file.partition("-")[0]]
    found = [statement for name in names for statement in read[name]]
    return [
        re.sub(rf"\b(USER|ROLE|AUTHORIZATION|TO) {re.escape(quoted)}(?=\s|$)", rf"\1 {user}", statement)
        .replace("'change me'", f"'{password}'")
        .replace("`shop`", f"`{schema}`")
        .replace("DATABASE shop", f'DATABASE "{schema}"')
        for statement in found
    ]
