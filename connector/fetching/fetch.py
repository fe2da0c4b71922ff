"""`python -m connector.fetching.fetch [NAME…]`: puts what the sandbox and Spark need into the cache, once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from connector.errors import SandboxError

# Each function imports its modules when it is called: MySQL can be fetched before any package is installed.


def _java() -> object:
    from connector.fetching.java import java_home

    return java_home()


def _kafka() -> object:
    from connector.fetching.jars import kafka_jars

    return kafka_jars()


def _spark() -> object:
    from connector.fetching.jars import spark_kafka_jars

    return spark_kafka_jars()


def _class_archive() -> object:
    from connector.fetching.class_archive import make

    try:
        return make()
    except SandboxError as error:  # Spark starts without it, too
        sys.stderr.write(f"{error}\n")
        return None


def _mysql() -> object:
    from connector.fetching.mysql_programs import mysql_programs

    return mysql_programs()


def _postgres() -> object:
    from connector.fetching.postgres_programs import postgres_folder

    return postgres_folder()


def _mariadb() -> object:
    from connector.fetching.mariadb_programs import mariadb_folder

    return mariadb_folder()


THINGS: Mapping[str, Callable[[], object]] = {
    "java": _java,
    "kafka": _kafka,
    "spark": _spark,
    "class-archive": _class_archive,
    "mysql": _mysql,
    "postgres": _postgres,
    "mariadb": _mariadb,
}


def fetch(names: Sequence[str], things: Mapping[str, Callable[[], object]] = THINGS) -> int:
    """Fetch items by name; all of them if none is named.

    Returns:
        The exit code of the first item that cannot be fetched, else 0.
    """
    for name in names or things:
        try:
            things[name]()
        except SandboxError as error:
            sys.stderr.write(f"{error}\n")
            return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(fetch(sys.argv[1:]))
