"""Random definitions of a few tables, many of which a server refuses."""

from __future__ import annotations

import random

SCHEMA, OTHER = "history_a", "History B"
TYPES = (
    *(
        "tinyint",
        "smallint unsigned",
        "mediumint",
        "int",
        "integer unsigned zerofill",
        "bigint",
        "int8 unsigned",
        "bool",
    ),
    *(
        "float",
        "float(30)",
        "float(7,3)",
        "double precision",
        "real",
        "decimal",
        "decimal(12)",
        "numeric(20,4) unsigned",
    ),
    *("bit", "bit(17)", "year", "date", "time(3)", "datetime", "datetime(6)", "timestamp(2) null", "timestamp null"),
    *("char", "char(7)", "varchar(30)", "varchar(300)", "national varchar(10)", "nchar(4)", "character varying(9)"),
    *("binary(4)", "varbinary(40)", "blob", "tinyblob", "mediumblob", "longblob", "blob(300)", "char(3) byte"),
    *(
        "text",
        "tinytext",
        "mediumtext",
        "longtext",
        "text(100)",
        "text(20000)",
        "long varchar",
        "json",
        "geometry",
        "point",
    ),
    *("enum('a','b')", "enum('it''s', 'x,y', 'é  ')", "set('p','q','r')", "char(5) character set binary"),
    *("varchar(10) character set ucs2", "text charset utf8mb3", "char(4) collate cp1251_bin", "varchar(5) ascii"),
    *("enum('ж') character set utf8mb4", "varchar(8) unicode", "text(70) character set gbk", "vector(3)", "dec(5,5)"),
    "set(" + ",".join(f"'m{n}'" for n in range(40)) + ")",
    "enum(" + ",".join(f"'{n}'" for n in range(300)) + ")",
)
CHARSETS = ("utf8mb4", "latin1", "utf8mb3", "cp1251", "gbk", "ascii", "sjis", "gb18030", "ucs2", "utf16")
ATTRIBUTES = (
    *(
        "",
        "",
        "",
        "not null",
        "null",
        "comment 'a, b) not null'",
        "invisible",
        "/*!80023 invisible */",
        "/* not null */",
    ),
    "unique",
)


class Statements:
    """Generates statements about a few tables, many of which the server refuses."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def any(self, *choices: str) -> str:
        return self.random.choice(choices)

    def table(self) -> str:
        schema = self.any("", "", "", f"{SCHEMA}.", f"`{OTHER}`.")
        return schema + self.any("t0", "t1", "`t2`", "`Tab``le 3`")

    def column(self) -> str:
        return self.any("a", "`b`", "c", "D", "`e f`", "g")

    def definition(self) -> str:
        return f"{self.random.choice(TYPES)} {self.any(*ATTRIBUTES)}"

    def place(self) -> str:
        return self.any("", "", " FIRST", f" AFTER {self.column()}")

    def part(self) -> str:
        a, b = self.column(), self.column()
        return self.any(
            f"PRIMARY KEY ({a})",
            f"PRIMARY KEY ({a}, {b}) COMMENT 'x'",
            f"CONSTRAINT k PRIMARY KEY USING BTREE ({a} DESC)",
            f"KEY ({a})",
            f"UNIQUE KEY u ({a}, {b})",
            f"KEY ((upper({a})))",
            f"CHECK ({a} is not null)",
        )

    def option(self) -> str:
        charset = self.any(*CHARSETS)
        return self.any(
            f"DEFAULT CHARACTER SET = {charset}", f"charset {charset}", "ENGINE = InnoDB", "COMMENT 'c'",
            "COLLATE utf8mb4_bin", "ROW_FORMAT=DYNAMIC",
        )  # fmt: skip

    def clause(self) -> str:
        column, other = self.column(), self.column()
        return self.any(
            f"ADD {column} {self.definition()}{self.place()}",
            f"ADD COLUMN {column} {self.definition()}{self.place()}",
            f"ADD COLUMN ({column} {self.definition()}, {other} {self.definition()})",
            f"ADD COLUMN {column} int AS (1 + 1) {self.any('STORED', 'VIRTUAL')}",
            f"ADD {column} SERIAL",
            f"ADD {column} int NOT NULL AUTO_INCREMENT UNIQUE",
            f"DROP COLUMN {column}",
            f"DROP {column}",
            f"MODIFY {column} {self.definition()}{self.place()}",
            f"MODIFY COLUMN {column} {self.definition()}",
            f"CHANGE {column} {other} {self.definition()}{self.place()}",
            f"CHANGE COLUMN {column} {column} {self.definition()}",
            f"RENAME COLUMN {column} TO {other}",
            f"ALTER {column} SET DEFAULT 1",
            f"ALTER COLUMN {column} DROP DEFAULT",
            f"ALTER {column} SET INVISIBLE",
            f"ADD {self.part()}",
            "DROP PRIMARY KEY",
            "DROP INDEX u",
            f"RENAME TO {self.table()}",
            f"CONVERT TO CHARACTER SET {self.any(*CHARSETS)}",
            "CONVERT TO CHARSET utf8mb4 COLLATE utf8mb4_bin",
            self.option(),
            "ORDER BY a",
            "FORCE",
            "ENGINE=InnoDB",
        )

    def create(self) -> str:
        name = self.table()
        head = f"CREATE TABLE {self.any('', 'IF NOT EXISTS ')}{name}"
        if self.random.random() < 0.15:
            return f"{head} {self.any(f'LIKE {self.table()}', f'(LIKE {self.table()})')}"
        if self.random.random() < 0.15:
            return f"{head} {self.option()} SELECT * FROM {self.table()} LIMIT 1"
        names = self.random.sample(["a", "`b`", "c", "D", "`e f`", "g"], self.random.randint(1, 5))
        parts = [f"{one} {self.definition()}" for one in names]
        if self.random.random() < 0.3:
            parts[0] = (
                f"{names[0]} {self.any('int primary key', 'serial', 'int key auto_increment', 'bigint unsigned null')}"
            )
        parts += [self.part() for _ in range(self.random.randint(0, 2))]
        options = " ".join(self.option() for _ in range(self.random.randint(0, 2)))
        return f"{head} ({', '.join(parts)}) {options}"

    def one(self) -> str:
        kind = self.random.random()
        if kind < 0.25:
            return self.create()
        if kind < 0.80:
            clauses = ", ".join(self.clause() for _ in range(self.random.choice((1, 1, 1, 2, 3))))
            return f"ALTER TABLE {self.table()} {clauses}"
        a, b = self.table(), self.table()
        return self.any(
            f"DROP TABLE {a}",
            f"DROP TABLE IF EXISTS {a}, {b}",
            f"RENAME TABLE {a} TO {b}",
            f"RENAME TABLE {a} TO tmp, {b} TO {a}, tmp TO {b}",
            f"TRUNCATE {a}",
            f"CREATE INDEX i ON {a} (a)",
            f"CREATE UNIQUE INDEX i ON {a} (c, D)",
            f"DROP INDEX `PRIMARY` ON {a}",
            "CREATE TEMPORARY TABLE passing (z int)",  # by another name: of one LIKE it the log omits the charset
            "DROP TEMPORARY TABLE passing",
            f"ALTER DATABASE {SCHEMA} CHARACTER SET {self.any(*CHARSETS)}",
            f"ALTER SCHEMA `{OTHER}` COLLATE = cp1250_general_ci",
            f"DROP DATABASE `{OTHER}`",
            f"CREATE DATABASE `{OTHER}` {self.any('', 'CHARACTER SET greek')}",
            f"CREATE DATABASE IF NOT EXISTS `{OTHER}`",
            f"CREATE OR REPLACE VIEW v AS SELECT 1 AS one, {self.any('2', '3')} AS two",
            "RENAME TABLE v TO w, w TO v",
            "DROP VIEW v",
        )


MODES = {1: "", 2: "STRICT_ALL_TABLES,NO_BACKSLASH_ESCAPES,REAL_AS_FLOAT", 3: "ANSI_QUOTES"}
