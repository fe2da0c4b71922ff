"""The text of a statement as a MySQL target executes it: InnoDB's tables, made in whatever way the server knows."""

import pytest

from connector.ddl.syntax.parse import parse
from connector.log.transaction.batch import Statement
from connector.targets.mysql.ddl.statement_text import executed_text

LIST = "PARTITION BY LIST (engine) (PARTITION engine VALUES IN (1) {}, PARTITION b VALUES IN (2) STORAGE ENGINE {})"


def executed(sql: str) -> str:
    statement = Statement("shop", sql, {"sql_mode": "ANSI_QUOTES"})
    return str(executed_text(statement, parse(statement)[0]))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE TABLE t (a INT) ENGINE=MyISAM", "CREATE TABLE t (a INT) ENGINE=InnoDB"),
        ("CREATE TABLE t (a INT) ENGINE 'MyISAM' COMMENT 'x'", "CREATE TABLE t (a INT) ENGINE InnoDB COMMENT 'x'"),
        ("CREATE TABLE t (a INT) /*! ENGINE=Aria */", "CREATE TABLE t (a INT) /*! ENGINE=InnoDB */"),
        ("CREATE TABLE t (a INT) ENGINE=MEMORY START TRANSACTION", "CREATE TABLE t (a INT) ENGINE=InnoDB "),
        ("ALTER TABLE engine ADD b INT, ENGINE MyISAM", "ALTER TABLE engine ADD b INT, ENGINE InnoDB"),
        (
            f"CREATE TABLE t (engine INT) ENGINE=MyISAM {LIST.format('ENGINE = MyISAM', 'MyISAM')}",
            f"CREATE TABLE t (engine INT) ENGINE=InnoDB {LIST.format('ENGINE = InnoDB', 'InnoDB')}",
        ),
        (
            "ALTER TABLE t ADD PARTITION (PARTITION c VALUES IN (3) ENGINE=MyISAM)",
            "ALTER TABLE t ADD PARTITION (PARTITION c VALUES IN (3) ENGINE=InnoDB)",
        ),
        (
            "ALTER TABLE t ADD algorithm INT, ALGORITHM=INSTANT, LOCK NONE",
            "ALTER TABLE t ADD algorithm INT, ALGORITHM=DEFAULT, LOCK DEFAULT",
        ),
    ],
)
def test_engines_and_algorithms_are_those_of_the_target(sql: str, expected: str) -> None:
    assert executed(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE engine (id INT PRIMARY KEY)",
        "CREATE TABLE cars (engine VARCHAR(20) CHECK (engine = x), x INT) COMMENT = 'ENGINE=MyISAM'",
        "ALTER TABLE engine ADD COLUMN x INT",
        "ALTER TABLE cars ADD COLUMN engine VARCHAR(20), ADD b INT AFTER engine, DROP COLUMN c",
        "ALTER TABLE cars DROP COLUMN engine, ADD COLUMN b INT",
        "ALTER TABLE cars RENAME COLUMN engine TO motor",
        "ALTER TABLE cars CHANGE a engine VARCHAR(20) NOT NULL",
        "ALTER TABLE cars ALTER COLUMN engine SET DEFAULT 'x'",
        "ALTER TABLE cars REORGANIZE PARTITION a, engine INTO (PARTITION engine VALUES IN (1, 2))",
        "CREATE INDEX engine ON cars (engine)",
    ],
)
def test_tables_columns_and_partitions_called_engine_keep_their_text(sql: str) -> None:
    assert executed(sql) == sql
