"""Foreign keys of a definition whose actions change rows."""

from __future__ import annotations

import pytest

from connector.ddl.foreign_keys import cascading_references
from connector.errors import Unsupported
from connector.log.transaction.batch import Statement


def found(sql: str) -> list[tuple[str, str, bool]]:
    return [(key.name, key.actions, key.inline) for key in cascading_references(Statement("shop", sql))]


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)", [("", "ON DELETE CASCADE")]),
        (
            "CREATE TABLE c (p INT, CONSTRAINT `f k` FOREIGN KEY i (p) REFERENCES o.p (id) MATCH FULL "
            "ON UPDATE SET NULL ON DELETE SET DEFAULT) ENGINE=InnoDB",
            [("f k", "ON UPDATE SET NULL, ON DELETE SET DEFAULT")],
        ),
        (
            "ALTER TABLE c ADD x INT, ADD CONSTRAINT IF NOT EXISTS a FOREIGN KEY (x) REFERENCES p (id) ON DELETE "
            "RESTRICT, ADD CONSTRAINT FOREIGN KEY (y) REFERENCES p (id) ON UPDATE CASCADE",
            [("", "ON UPDATE CASCADE")],
        ),
        (
            "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES o.2024 (id) ON DELETE CASCADE)",
            [("", "ON DELETE CASCADE")],
        ),
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id))", []),
        ("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE NO ACTION ON UPDATE RESTRICT)", []),
        ("CREATE TABLE c (p INT COMMENT 'REFERENCES p (id) ON DELETE CASCADE', `references` INT)", []),
        ("ALTER TABLE c ADD t TIMESTAMP DEFAULT NOW() ON UPDATE NOW()", []),
    ],
)
def test_cascading_keys_of_a_table_are_found(sql: str, keys: list[tuple[str, str]]) -> None:
    assert found(sql) == [(*key, False) for key in keys]


def test_inline_key_is_marked_as_inline() -> None:
    sql = (
        "CREATE TABLE c (a INT NOT NULL REFERENCES p (id) ON DELETE CASCADE, b INT, CHECK (b > 0), "
        "FOREIGN KEY (b) REFERENCES p (id) ON DELETE SET NULL)"
    )
    assert found(sql) == [("", "ON DELETE CASCADE", True), ("", "ON DELETE SET NULL", False)]
    sql = (
        "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE SET NULL, "
        "b INT REFERENCES p (id) ON DELETE CASCADE)"
    )
    assert found(sql) == [("", "ON DELETE SET NULL", False), ("", "ON DELETE CASCADE", True)]


def test_key_in_an_unknown_statement_is_found() -> None:
    sql = (
        "CREATE TABLE c (a MONEY REFERENCES p (id) ON DELETE CASCADE, b INT, "
        "CONSTRAINT k FROB FOREIGN KEY (b) REFERENCES p (id) ON UPDATE SET NULL)"
    )
    assert found(sql) == [("", "ON DELETE CASCADE", True), ("k", "ON UPDATE SET NULL", False)]


def test_key_in_an_executable_comment_is_found() -> None:
    assert ("", "ON DELETE CASCADE", False) in found(
        "CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) /*!99999 ON DELETE CASCADE */)"
    )


def test_unknown_referential_action_is_refused() -> None:
    with pytest.raises(Unsupported):
        found("CREATE TABLE c (p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE EXPLODE)")
