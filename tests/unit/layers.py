"""The rules for imports between layers, as a table, and the check of the source against it.

    log  <-  ddl  <-  kafka, mysql, records, relay, targets  <-  producer, spark  <-  applier  <-  everything else

A room imports rooms that stand before it, never one beside it or behind it; `log` and `ddl` are pure. Folders, at
every depth, form no circle. Each vendor's library has one home.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

# Each line may import the lines above it.
LAYERS = (("log",), ("ddl",), ("kafka", "mysql", "records", "relay", "targets"), ("producer", "spark"), ("applier",))
LAYER = {room: depth for depth, rooms in enumerate(LAYERS) for room in rooms}
# Pure, so that targets may have it: what bytes mean in MySQL's character sets and types.
VALUES = "mysql.values"
# The comparison of source and target shares no code with what may have made them differ: only how one connects to the
# source and asks for its state, what identifies tables and positions, and the filters.
COMPARISON = ("log.gtid", "log.transaction", "mysql.server.connection", "mysql.server.privileges",
              "mysql.server.snapshot_point", "mysql.server.source_state", "mysql.transforms")  # fmt: skip
FOUNDATION = ("addresses", "background", "clock", "config", "errors", "failpoints", "health", "logs", "metrics",
              "mysql_grants", "mysql_tls", "patterns", "private_files", "redaction", "retrying", "schema")  # fmt: skip
PURE_FOUNDATION = ("errors", "patterns")
PURE = frozenset(("__future__", "array", "bisect", "collections", "cpython", "cython", "dataclasses", "datetime",
                  "enum", "functools", "itertools", "libc", "re", "struct", "typing", "zlib"))  # fmt: skip

# Those that look at a running service from outside, and share no target with it, may use the drivers themselves.
OUTSIDE = ("connector/verify/*", "connector/demo/*", "connector/sandbox/*")
HOMES: dict[str, tuple[str, ...]] = {
    "confluent_kafka": ("connector/kafka/*",),
    "confluent_kafka.Consumer": ("connector/kafka/consumer.py",),
    "pymysql": ("connector/mysql/*", "connector/targets/mysql/*", *OUTSIDE),
    "pymysqlreplication": ("connector/mysql/*", *OUTSIDE),
    "pyspark": ("connector/spark/*", "spark_apps/*"),
    "rocksdict": ("connector/records/*",),
    "psycopg": ("connector/targets/postgres/*", *OUTSIDE),
    "werkzeug": ("connector/serve/*",),
    "flask": ("connector/serve/*",),
    "waitress": ("connector/serve/server.py", "connector/serve/connections.py"),
    "duckdb": ("connector/targets/duckdb/*", *OUTSIDE),
    "sqlite3": ("connector/targets/sqlite/*", *OUTSIDE),
}
ENVIRONMENT = ("connector/config/loading.py", "connector/cli.py", "connector/commands/*", "connector/failpoints.py",
               "connector/fetching/*", "connector/sandbox/*")  # fmt: skip
TIME_OF = {"time": None, "datetime": ("now", "utcnow", "today"), "date": ("today",)}

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+)?c?import[ \t]+(\((?:[^)]*)\)|[^\n#]+)", re.MULTILINE)


class Import(NamedTuple):
    """A module that a file names: `connector.log.ids`, `os.environ`."""

    line: int
    module: str


def violations(root: Path) -> list[str]:
    """Every broken rule below a folder with `connector` in it: `file:line: what`."""
    found = []
    for name, imports, tree in _sources(root):
        for line, module in imports:
            found += [f"{name}:{line}: {what}" for what in _judge(name, module)]
        if tree:
            found += [f"{name}:{line}: {what}" for line, what in _judge_calls(name, tree)]
    return [*found, *_circles(root)]


def folder_imports(root: Path) -> dict[str, set[str]]:
    """The folders that each folder imports, the package itself left out: `{"connector/kafka": {"connector/log"}}`."""
    arrows: dict[str, set[str]] = defaultdict(set)
    for name, imports, _ in _sources(root):
        for _, module in imports:
            parts = module.split(".")
            while len(parts) > 1 and not (root / "/".join(parts)).is_dir():
                parts.pop()
            here, there = name.rsplit("/", 1)[0], "/".join(parts)
            if parts[0] == "connector" and "connector" not in (here, there) and here != there:
                arrows[here].add(there)
    return dict(arrows)


def room_imports(root: Path) -> dict[str, set[str]]:
    """The rooms (folders of `connector`) that each room imports; the foundation is no room."""
    rooms = {path.parent.name for path in root.glob("connector/*/__init__.py")} - {"config"}
    arrows: dict[str, set[str]] = {room: set() for room in rooms}
    for name, imports, _ in _sources(root):
        for _, module in imports:
            top, _, rest = module.partition(".")
            if top == "connector" and _room(name) in rooms:
                arrows[_room(name)] |= {rest.split(".")[0]} & rooms - {_room(name)}
    return arrows


def _circles(root: Path) -> Iterator[str]:
    """Circles of folders, at each depth: a folder counts there with all that it contains."""
    arrows = folder_imports(root)
    deepest = max((folder.count("/") + 1 for here, theres in arrows.items() for folder in (here, *theres)), default=0)
    for depth in range(2, deepest + 1):
        seen: dict[str, set[str]] = defaultdict(set)
        for here, theres in arrows.items():
            seen[_cut(here, depth)] |= {_cut(there, depth) for there in theres} - {_cut(here, depth)}
        try:
            TopologicalSorter(seen).prepare()
        except CycleError as error:
            circle = " <- ".join(error.args[1])
            yield f"{error.args[1][0]}:0: folders import each other in a circle: {circle}"
            return


def _cut(folder: str, depth: int) -> str:
    return "/".join(folder.split("/")[:depth])


def _sources(root: Path) -> Iterator[tuple[str, list[Import], ast.Module | None]]:
    for path in sorted([*root.glob("connector/**/*"), *root.glob("spark_apps/**/*")]):
        if path.suffix in (".py", ".pyx", ".pxd"):
            name = path.relative_to(root).as_posix()
            text = path.read_text()
            tree = ast.parse(text) if path.suffix == ".py" else None
            yield name, list(_of_tree(tree, name) if tree else _of_cython(text)), tree


def _judge(name: str, module: str) -> Iterator[str]:
    top, _, rest = module.partition(".")
    room = _room(name)
    for vendor in {top, module} & HOMES.keys():
        if not any(fnmatch(name, home) for home in HOMES[vendor]):
            yield f"{vendor} has its home in {', '.join(HOMES[vendor])}"
    if module == "os.environ" and not any(fnmatch(name, home) for home in ENVIRONMENT):
        yield "reads the environment"
    if room in ("log", "ddl") and top != "connector" and top not in PURE:
        yield f"{room} imports {module}: it is pure"
    if room in LAYER and top == "time":
        yield "asks the machine for the time"
    if top == "connector" and room in LAYER:
        other = rest.split(".")[0]
        if other not in LAYER:
            foundation = PURE_FOUNDATION if room in ("log", "ddl") else FOUNDATION
            if other not in foundation and other:
                yield f"{room} imports {module}"
        elif room == "targets" and f"{rest}.".startswith(f"{VALUES}."):
            pass
        elif other != room and LAYER[other] >= LAYER[room]:
            yield f"{room} imports {module}"
    elif room == "verify" and top == "connector" and not _may_share(rest):
        yield f"verify shares {module} with what it verifies"
    elif room == "consume" and top == "connector" and rest.split(".")[0] in ("mysql", "targets", "spark", "applier"):
        yield f"consume imports {module}"


def _may_share(module: str) -> bool:
    return module.split(".", maxsplit=1)[0] not in LAYER or any(
        f"{module}.".startswith(f"{room}.") for room in COMPARISON
    )


def _judge_calls(name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The environment and the clock are also reached by names that an import does not tell."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if owner == "os" and node.attr in ("environ", "getenv", "environb", "putenv"):
            if not any(fnmatch(name, home) for home in ENVIRONMENT):
                yield node.lineno, "reads the environment"
        elif _room(name) in LAYER and node.attr in (TIME_OF.get(owner) or ()):
            yield node.lineno, "asks the machine for the time"


def _room(name: str) -> str:
    return name.split("/")[1].removesuffix(".py") if name.startswith("connector/") else ""


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
