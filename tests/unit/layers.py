"""The house's rules about who may import whom, as a table and a walk over the source.

above     cli, commands, pipeline, spark, demo, status, listing …     may import what they like but each other's inside
consume   reading of the log without Spark                           thl, what every stage needs, SHARED_WITH_CONSUME
stages    capture  encode  publish  reassemble  write                thl, ddl, what every stage needs, and themselves;
                                                                     write also SHARED_WITH_WRITE
ddl       the grammar of MySQL's DDL                                 thl, errors and pure parts of the standard library
thl       words and rules                                            errors and pure parts of the standard library
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

STAGES = ("capture", "encode", "publish", "reassemble", "write")
EVERY_STAGE = ("addresses", "config", "errors", "metrics", "clock", "faults", "private", "redaction")
PURE = frozenset(("__future__", "array", "bisect", "collections", "cpython", "cython", "dataclasses", "datetime",
                  "enum", "functools", "itertools", "libc", "re", "struct", "typing", "zlib"))  # fmt: skip

# What looks at everything from above may speak to any server, so that it shares nothing with what it looks at.
ABOVE = ("connector/verify/*", "connector/status/*", "connector/listing/*", "connector/demo/*", "connector/sandbox/*")
# The applier's Spark; and the log as DataFrames, whose tasks read Kafka by themselves, in executors.
SPARK = (
    *(f"connector/reassemble/{name}.py" for name in ("spark", "micro_batches", "continuous")),
    "connector/spark/*.py",
)
HOMES: dict[str, tuple[str, ...]] = {
    "confluent_kafka": (
        "connector/publish/*",
        "connector/reassemble/*",
        "connector/consume/*",
        "connector/spark/*.py",
        *ABOVE,
    ),
    "pymysql": ("connector/capture/*", *ABOVE),
    "pymysqlreplication": ("connector/capture/*", *ABOVE),
    "pyspark": (*SPARK, "spark_apps/*", "connector/sandbox/*"),
    "psycopg": ("connector/write/postgres*", *ABOVE),
    "sqlite3": ("connector/write/sqlite*", *ABOVE),
}

# The comparison of source and target shares no code with what may have made them differ.
SHARED_WITH_VERIFY = ("capture.connection", "capture.filters", "capture.moment", "capture.privileges",
                      "capture.source_state")  # fmt: skip

# A consumer reads the log's own topics and proves its place as a producer and an applier do. A second way would be a
# second truth; but it needs nothing of MySQL, Spark or targets, and whoever imports it gets none of them.
SHARED_WITH_CONSUME = ("encode.schema", "publish.client", "publish.header", "publish.reading", "publish.tails",
                       "pipeline.handshake")  # fmt: skip

# What characters MySQL's sets have and how their bytes are read: pure tables and functions, of which there is no copy.
SHARED_WITH_WRITE = ("capture.charsets", "capture.multibyte")

ENVIRONMENT = ("connector/settings.py", "connector/cli.py", "connector/commands/options.py", "connector/faults.py",
               "connector/sandbox/*")  # fmt: skip
TIME_OF = {"time": None, "datetime": ("now", "utcnow", "today"), "date": ("today",)}

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?c?import[ \t]+(\((?:[^)]*)\)|[^\n#]+)", re.MULTILINE)


class Import(NamedTuple):
    """A module that a file names: `connector.thl.words`, `os.environ`."""

    line: int
    module: str


def violations(root: Path) -> list[str]:
    """Every broken rule below a folder with `connector` in it: `file:line: what`."""
    found = []
    for path in sorted([*root.glob("connector/**/*"), *root.glob("spark_apps/**/*")]):
        if path.suffix not in (".py", ".pyx", ".pxd"):
            continue
        name = path.relative_to(root).as_posix()
        text = path.read_text()
        tree = ast.parse(text) if path.suffix == ".py" else None
        imports = _of_tree(tree, name) if tree else _of_cython(text)
        for line, module in imports:
            found += [f"{name}:{line}: {what}" for what in _judge(name, module)]
        if tree:
            found += [f"{name}:{line}: {what}" for line, what in _judge_calls(name, tree)]
    return found


def _judge(name: str, module: str) -> Iterator[str]:
    top, _, rest = module.partition(".")
    part = name.split("/")[1].removesuffix(".py") if name.startswith("connector/") else ""
    if top in HOMES and not any(fnmatch(name, home) for home in HOMES[top]):
        yield f"{top} has its home in {', '.join(HOMES[top])}"
    if module == "os.environ" and not any(fnmatch(name, home) for home in ENVIRONMENT):
        yield "reads the environment"
    if part in ("thl", "ddl"):
        if top == "connector":
            if rest.split(".")[0] not in (part, "thl", "errors"):
                yield f"{part} imports {module}"
        elif top not in PURE:
            yield f"{part} imports {module}: it is pure"
    elif part in STAGES:
        if (
            top == "connector"
            and rest.split(".")[0] not in (part, "thl", "ddl", *EVERY_STAGE)
            and not (part == "write" and ".".join(rest.split(".")[:2]) in SHARED_WITH_WRITE)
        ):
            yield f"the stage {part} imports {module}"
        if top == "time":
            yield "asks the machine for the time"
    elif part == "consume" and top == "connector":
        if (
            rest.split(".")[0] not in (part, "thl", *EVERY_STAGE)
            and ".".join(rest.split(".")[:2]) not in SHARED_WITH_CONSUME
        ):
            yield f"consume imports {module}"
    elif part == "verify" and top == "connector" and rest.split(".")[0] in STAGES:
        shared = ".".join(rest.split(".")[:2])
        if shared not in SHARED_WITH_VERIFY:
            yield f"verify shares {module} with what it verifies"


def _judge_calls(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The environment and the clock are also reached by names that an import does not tell."""
    part = name.split("/")[1].removesuffix(".py")
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if owner == "os" and node.attr in ("environ", "getenv", "environb", "putenv"):
            if not any(fnmatch(name, home) for home in ENVIRONMENT):
                yield node.lineno, "reads the environment"
        elif part in (*STAGES, "thl") and node.attr in (TIME_OF.get(owner) or ()):
            yield node.lineno, "asks the machine for the time"


def _of_tree(tree: ast.Module, name: str) -> Iterator[Import]:
    package = name.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*package[: len(package) - node.level + 1], *([base] if base else [])])
            for alias in node.names:
                yield Import(node.lineno, f"{base}.{alias.name}")


def _of_cython(text: str) -> Iterator[Import]:
    for found in _IMPORT.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        base, names = found[1], found[2].strip("() \n")
        for entry in names.split(","):
            if words := entry.split():
                yield Import(line, f"{base}.{words[0]}" if base else words[0])
