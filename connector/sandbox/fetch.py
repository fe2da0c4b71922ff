"""`python -m connector.sandbox.fetch`: put everything the sandbox and Spark need into the cache, once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import click

from connector.errors import SandboxError
from connector.sandbox import maven
from connector.sandbox.java import java_home
from connector.sandbox.mariadb_programs import mariadb_binlog, mariadb_folder
from connector.sandbox.mysql56_programs import mysql56_folder
from connector.sandbox.mysql_programs import mysql_programs
from connector.sandbox.postgres_programs import postgres_folder
from connector.sandbox.registry_programs import registry_jar
from connector.sandbox.settings import KAFKA, KAFKA_VERSION, MARIADB_OLDER
from connector.sandbox.spark import spark_kafka_jars

_THINGS: dict[str, Callable[[], object]] = {
    "java": java_home,
    "kafka": lambda: maven.fetch(f"kafka-{KAFKA_VERSION}", KAFKA),
    "spark's kafka jars": spark_kafka_jars,
    "mysql": mysql_programs,
    "postgres": postgres_folder,
    "mariadb": mariadb_folder,
    "mariadb-binlog": mariadb_binlog,
}
# What not every machine can fetch; the tests that need it are skipped there.
_OPTIONAL: dict[str, Callable[[], object]] = {"mysql 5.6": mysql56_folder, "a schema registry": registry_jar}


def fetchable() -> dict[str, Callable[[], object]]:
    """Everything there is, with what only some tests ask for."""
    others = {"an older mariadb": lambda: mariadb_folder(MARIADB_OLDER)}
    return _THINGS | _OPTIONAL | others


def main() -> int:
    """Fetch all; say what took time. Return the exit code of the first that cannot be had, else 0."""
    for name, ensure in (_THINGS | _OPTIONAL).items():
        begun = time.monotonic()
        try:
            ensure()
        except SandboxError as error:
            if name in _OPTIONAL:
                click.echo(f"{name} left out: {error.message}", err=True)
                continue
            click.echo(str(error), err=True)
            return error.exit_code
        if (seconds := time.monotonic() - begun) > 1:
            click.echo(f"{name} fetched in {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
