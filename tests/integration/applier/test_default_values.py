"""Values that ADD COLUMN gives to existing rows, form by form, compared with real servers.

Zero may be wrong: what is not known stops, and ordinary forms are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from connector.errors import SandboxError
from tests.support.default_forms import (
    MARIADB_SESSIONS,
    MYSQL_SESSIONS,
    ORDINARY,
    SESSIONS,
    Session,
    definitions,
    sample,
)
from tests.support.default_oracle import Outcome, ask, judge
from tests.support.servers.environment import SqlServer
from tests.support.servers.mysql56 import MySql56Server, mysql56_folder
from tests.support.servers.settings import MYSQL56_GTIDS

MYSQL = [*SESSIONS, *MYSQL_SESSIONS]
MARIADB = [*SESSIONS, *MARIADB_SESSIONS]
SHARE = 80  # one of so many forms
LONG_SHARE = 5  # other forms in each session


def hold(server: SqlServer, session: Session, forms: Iterable[str]) -> Outcome:
    answers, refused = ask(server, session, forms)
    outcome = judge(answers)
    print(f"{session.name}: {outcome.equal} equal, {len(outcome.stopped)} stop, {sum(refused.values())} refused")
    assert outcome.wrong == {}
    assert outcome.equal > 2 * len(outcome.stopped)
    return outcome


def some(sessions: list[Session]) -> list[Any]:
    """Every fourth session; the others are long."""
    return [
        pytest.param(one, id=one.name, marks=pytest.mark.long if number % 4 else ())
        for number, one in enumerate(sessions)
    ]


@pytest.mark.parametrize("session", some(MYSQL))
def test_sampled_defaults_equal_mysqls(mysql_server: SqlServer, session: Session) -> None:
    assert hold(mysql_server, session, sample(definitions(), SHARE, session.name)).equal > 10


@pytest.mark.parametrize("session", some(MARIADB))
def test_sampled_defaults_equal_mariadbs(mariadb_server: SqlServer, session: Session) -> None:
    assert hold(mariadb_server, session, sample(definitions(mariadb=True), SHARE, session.name)).equal > 10


def test_common_defaults_are_known(mysql_server: SqlServer, mariadb_server: SqlServer) -> None:
    for server in (mysql_server, mariadb_server):
        answers, refused = ask(server, SESSIONS[0], ORDINARY)
        outcome = judge(answers)
        assert (outcome.wrong, outcome.stopped) == ({}, {})
        assert set(ORDINARY) - {answer.definition for answer in answers} == set(), refused


@pytest.mark.long
@pytest.mark.parametrize("session", MYSQL, ids=[one.name for one in MYSQL])
def test_many_defaults_equal_mysqls(mysql_server: SqlServer, session: Session) -> None:
    assert hold(mysql_server, session, sample(definitions(), LONG_SHARE, session.name)).equal > 1000


@pytest.mark.long
@pytest.mark.parametrize("session", MARIADB, ids=[one.name for one in MARIADB])
def test_many_defaults_equal_mariadbs(mariadb_server: SqlServer, session: Session) -> None:
    assert hold(mariadb_server, session, sample(definitions(mariadb=True), LONG_SHARE, session.name)).equal > 1000


@pytest.fixture(scope="module")
def mysql56(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlServer]:
    try:
        mysql56_folder()
    except SandboxError as error:
        pytest.skip(f"MySQL 5.6 cannot be had: {error.message}")
    folder: Path = tmp_path_factory.mktemp("mysql56")
    with MySql56Server(folder, settings=MYSQL56_GTIDS, die_with_parent=True) as found:
        yield found


@pytest.mark.long
@pytest.mark.servers
@pytest.mark.parametrize("session", SESSIONS, ids=[one.name for one in SESSIONS])
def test_sampled_defaults_equal_mysql_56s(mysql56: SqlServer, session: Session) -> None:
    forms = (form.replace("utf8mb3", "utf8") for form in sample(definitions(), 3 * LONG_SHARE, session.name))
    # There is a history of tables, which goes on after no text with bytes that are not known, as sjis has this one.
    hold(mysql56, session, (form for form in forms if session.name != "sjis" or "\uff3c" not in form))
