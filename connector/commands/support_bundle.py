"""`thl support-bundle`: writes what a helper needs to know about a service into one archive, without secrets."""

from __future__ import annotations

import io
import json
import tarfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from connector.commands.grammar.command import OPTIONS, command, option
from connector.commands.grammar.options import settings_options

if TYPE_CHECKING:
    from connector.config.loading import Settings
    from connector.config.model import Config

LOG_BYTES: Final = 16 << 20  # of the end of each log file
FOLDER: Final = "thl-support"
PACKAGES: Final = (
    "thl-connector",
    "confluent-kafka",
    "fastavro",
    "pyspark",
    "mysql-replication",
    "pymysql",
    "psycopg",
    "tenacity",
)


@command(
    "support-bundle",
    examples={
        "thl support-bundle": "Write thl-support.tar.gz.",
        "thl support-bundle --log /var/log/thl/apply.log": "With the end of a log file.",
    },
)
@settings_options
@option(
    "--out",
    section=OPTIONS,
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("thl-support.tar.gz"),
    show_default=True,
    metavar="FILE",
    help="The archive.",
)
@option(
    "--log",
    "logs",
    section=OPTIONS,
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A log file of producer or applier, of which the last 16 MiB are included. Repeatable.",
)
def support_bundle(settings: Settings, out: Path, logs: tuple[Path, ...]) -> None:
    """Write versions, configuration, checks, status, the log's description and log files into one archive.

    Secrets of the configuration are hidden in every file, and no rows of tables are included; names of hosts, schemas
    and tables are. A server that does not answer is described by its error. Nothing is changed anywhere.
    """
    from connector.clock import SystemClock
    from connector.errors import ConfigError, ConnectorError, escaped
    from connector.private_files import open_new
    from connector.redaction import redacted

    for path in logs:
        if not path.is_file():
            raise ConfigError("there is no such log file", hint="--log FILE", file=path)
    try:
        with open_new(out) as file, tarfile.open(fileobj=file, mode="w:gz") as archive:
            for name, describe in _parts(settings, logs):
                try:
                    text = describe()
                except ConnectorError as error:
                    text = f"{error.located}\n{error.hint}\n"
                except Exception:  # noqa: BLE001 - a defect is what the bundle is for, and must not cost the other parts
                    text = traceback.format_exc()
                content = redacted(text).encode("utf-8", "backslashreplace")
                entry = tarfile.TarInfo(f"{FOLDER}/{name}")
                entry.size, entry.mode, entry.mtime = len(content), 0o600, SystemClock().now() // 1_000_000
                archive.addfile(entry, io.BytesIO(content))
                click.echo(escaped(f"{name}: {len(content)} bytes"))
    except OSError as error:
        raise ConfigError(f"the archive cannot be written: {error.strerror}", hint="--out FILE", file=out) from error
    click.echo(escaped(f"written: {out}; read it before you send it"))


def _parts(settings: Settings, logs: tuple[Path, ...]) -> Iterator[tuple[str, Callable[[], str]]]:
    """The files of the archive, each with the function that gives its text."""
    from connector.config.reference import in_force

    config = settings.config
    yield "versions.txt", _versions
    yield "configuration.yaml", lambda: in_force(settings)
    yield "check.txt", lambda: _check(config)
    yield "status.json", lambda: _status(config)
    yield "loads.txt", lambda: _loads(config)
    yield "log.json", lambda: _log(config)
    yield "source-files.txt", lambda: _source_files(config)
    for number, path in enumerate(logs):
        yield f"logs/{number}-{path.name}", lambda path=path: _end_of(path)  # type: ignore[misc]


def _versions() -> str:
    import platform
    import sys
    from importlib.metadata import PackageNotFoundError, version

    lines = [f"Python {sys.version}", platform.platform()]
    for package in PACKAGES:
        try:
            lines.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            lines.append(f"{package}: not installed")
    return "\n".join(lines) + "\n"


def _check(config: Config) -> str:
    import os

    from connector.check.checks import check
    from connector.check.result import as_text

    return as_text(check(config, os.environ)) + "\n"


def _status(config: Config) -> str:
    from connector.status.collect import collect
    from connector.status.report import LagLimits, as_object

    return json.dumps(as_object(collect(config, LagLimits())), indent=2)


def _loads(config: Config) -> str:
    from connector.kafka.log_reader import LogReader
    from connector.log.epochs.newest_load import NewestLoad
    from connector.status.loads import LoadsStatus

    with LogReader(config) as reader:
        control = reader.control(may_lack=True)
    loads = list(NewestLoad.each(control.load_requests, control.loads, control.trapped))
    return LoadsStatus.of(config, loads).as_text() + "\n" if loads else "none\n"


def _log(config: Config) -> str:
    from connector.inspect.info import as_object, log_info

    return json.dumps(as_object(log_info(config)), indent=2)


def _source_files(config: Config) -> str:
    from connector.inspect.source_files import as_lines, source_files

    return "\n".join(as_lines(source_files(config))) + "\n"


def _end_of(path: Path) -> str:
    from connector.errors import ConfigError

    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_BYTES))
            return file.read(LOG_BYTES).decode("utf-8", "backslashreplace")
    except OSError as error:
        raise ConfigError(f"the log file cannot be read: {error.strerror}", file=path) from error
