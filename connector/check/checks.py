"""Checks the source with its settings and grants, the brokers with the log's topics, the target, folders, and Java.

Nothing is created, claimed or fenced, and all servers are asked side by side: those that do not answer are reported
together after `PATIENCE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from connector.check.result import Check, failed, ok, warning
from connector.clock import SystemClock
from connector.config import Config
from connector.config.target_url import mysql_address, target_kind
from connector.errors import ConfigError, ConnectorError, MissingPrivilege, PreflightError, ValueNotRepresentable
from connector.fetching.java import installed_java, is_fetched
from connector.fetching.versions import JAVA_LEAST_VERSION
from connector.kafka.topics import Topics
from connector.log.compact.history import history_tables
from connector.log.transaction.layout import TableName
from connector.mysql.preflight.preflight import preflight
from connector.mysql.preflight.zero_dates import FIRST_ROWS, DateColumn, zero_dates
from connector.mysql.server.connection import Connection, connect, source_errors
from connector.mysql.server.dump import replica_uuid
from connector.mysql.snapshot.loadable import LoadCandidate, Purpose, by_reason, candidates, captured, unloadable
from connector.mysql.transforms.filters import Filter
from connector.private_files import guarded
from connector.targets.open import check_target

SOURCE: Final = "source"
GRANTS: Final = "grants"
KAFKA: Final = "kafka"
TARGET: Final = "target"
NAMED: Final = 10  # columns that a result names
WITHOUT_ZERO_DATES: Final = {"postgres": "PostgreSQL", "duckdb": "DuckDB"}
PATIENCE: Final = 4.0  # seconds for a server to answer; as long as that of the target's `check`


def check(config: Config, environ: Mapping[str, str]) -> list[Check]:
    """Check source, grants, Kafka, target, the folders of relay and record store, and Java.

    Args:
        config: the configuration.
        environ: the environment, for Java.

    Returns:
        At least one result for each, in this order; none for a folder that is not configured.
    """
    with ThreadPoolExecutor(max_workers=4) as pool:
        kafka = pool.submit(check_kafka, config)
        target = pool.submit(check_target_server, config)
        java = pool.submit(check_java, environ)
        source = check_source(config, lambda: kafka.result()[1])
        folders = [*check_relay(config), *check_records(config)]
        return [*source, *kafka.result()[0], *target.result(), *folders, java.result()]


def check_kafka(config: Config) -> tuple[list[Check], bool]:
    """Check that the brokers answer, and that the log's topics cannot lose data.

    Returns:
        The results; and whether the log exists.
    """
    try:
        found = Topics(config).inspect(PATIENCE)
    except ConnectorError as error:
        return [failed(KAFKA, error)], False
    if found.problems:
        return [failed(KAFKA, problem) for problem in found.problems], not found.missing
    log = "does not exist yet: thl produce creates it" if found.missing else "exists"
    if not found.missing and found.partitions != config.kafka.partitions:
        log += f" with {found.partitions} partition(s); kafka.partitions, {config.kafka.partitions}, is for a new log"
    brokers = "1 broker" if found.brokers == 1 else f"{found.brokers} brokers"
    answered = ok(KAFKA, f"{brokers} at {config.kafka.bootstrap}; the log {config.topic} {log}")
    copies = config.kafka.replication
    if found.missing and copies > found.brokers:
        text = f"{brokers} cannot hold {copies} copies of a topic"
        hint = "start more brokers, or set kafka.replication, kafka.min_isr and, for a sandbox, kafka.allow_unsafe"
        return [failed(KAFKA, PreflightError(text, hint=hint))], False
    return [answered], not found.missing


def check_source(config: Config, log_exists: Callable[[], bool]) -> list[Check]:
    """Check that the source answers, is set up, and grants the user what the producer needs.

    Args:
        config: the configuration.
        log_exists: called when the source has answered. Without a log an initial load may follow, which needs more
            privileges.
    """
    source = config.source
    try:
        with closing(connect(source, patience=PATIENCE)) as connection:
            snapshot = source.start == "snapshot" and not log_exists()
            try:
                uuid = replica_uuid(config.service, source)
                facts = preflight(connection, source, snapshot=snapshot, replica_uuid=uuid)
            except PreflightError as error:
                return list(_problems(f"{source.host}:{source.port} answers", error))
            filter = Filter.of(source, facts.lower_case_table_names)
            dates = list(_check_dates(config, connection, filter))
            with source_errors(source):
                tables = candidates(connection)
            loads = list(_check_loads(captured(tables, filter), filter, snapshot=snapshot))
            names = [filter.published_name(one.name) for one in tables if filter.captures(*one.name)]
            histories = list(check_histories(config.target.history, names))
    except ConnectorError as error:
        return [failed(SOURCE, error)]
    return [
        ok(SOURCE, f"{facts.server} at {source.host}:{source.port}"),
        ok(GRANTS, f"the user {source.user} has every privilege that is needed"),
        *(warning(SOURCE, text) for text in facts.warnings),
        *dates,
        *loads,
        *histories,
    ]


def _check_loads(tables: Sequence[LoadCandidate], filter: Filter, *, snapshot: bool) -> Iterator[Check]:
    """Check that the captured tables can be loaded: before an initial load all must, later `thl load` refuses some."""
    found = unloadable(tables, filter, Purpose.INITIAL if snapshot else Purpose.AGAIN)
    # Rules that publish only some of a table's changes are the user's choice.
    for one in by_reason(one for one in found.values() if Purpose.INITIAL in one.reason.purposes):
        if snapshot:
            yield failed(SOURCE, one.error)
        else:
            yield warning(SOURCE, f"thl load cannot load some tables: {one.error.located}", one.error.hint)


def check_histories(patterns: Sequence[str], names: Sequence[TableName]) -> Iterator[Check]:
    """Check that each pattern of `target.history` finds a table; one that is still to be created may be meant.

    Args:
        patterns: the patterns.
        names: those under which the captured tables are published.
    """
    for text in patterns:
        wanted = history_tables([text])
        if wanted is not None and not any(map(wanted.finds, names)):
            yield warning(
                SOURCE,
                f"target.history: {text} finds no captured table of the source",
                "correct it, unless its tables are still to be created; letters of another case are others",
            )


def _check_dates(config: Config, connection: Connection, filter: Filter) -> Iterator[Check]:
    """Check that the captured columns have no zero dates that the target lacks."""
    product = WITHOUT_ZERO_DATES.get(target_kind(config.target.url.get_secret_value()))
    if product is None:
        return
    found = zero_dates(connection, config.source, filter, SystemClock())
    remedy = (
        'for these tables zero_dates: ["*"] in a rule of source.filters.tables publishes NULL; in a key drop the rows'
    )
    if found.in_rows:
        text = f"rows hold the date 0000-00-00, which {product} has not: {_named(found.in_rows)}"
        yield failed(SOURCE, ValueNotRepresentable(text, hint=remedy))
    if found.in_defaults:
        text = f"the default is the date 0000-00-00, which {product} has not: {_named(found.in_defaults)}"
        yield warning(SOURCE, text, remedy)
    if found.accepted and (others := found.not_seen + found.not_read):
        looked = f"none in the index, or the first {FIRST_ROWS} rows, of {len(found.not_seen)}"
        text = (
            f"sql_mode lets clients write the date 0000-00-00, which {product} has not. Date columns without a rule: "
            f"{len(others)} ({looked})"
        )
        yield warning(SOURCE, text, f"sql_mode with NO_ZERO_DATE and STRICT_TRANS_TABLES; or {remedy}")


def _named(columns: Sequence[DateColumn]) -> str:
    more = len(columns) - NAMED
    return ", ".join(map(str, columns[:NAMED])) + (f" and {more} more" if more > 0 else "")


def check_target_server(config: Config) -> list[Check]:
    """Check that the target can be opened and written to, and is not the source."""
    try:
        found = [ok(TARGET, check_target(config.target))]
    except ConnectorError as error:
        return [failed(TARGET, error)]
    url = config.target.url.get_secret_value()
    if target_kind(url) == "mysql":
        address = mysql_address(url)
        if (address.host, address.port) == (config.source.host, config.source.port):
            same = "target.url names the source's own server: its tables are those that are read"
            found.append(warning(TARGET, same, "correct it, unless rules publish each table under another name"))
    return found


def check_relay(config: Config) -> Iterator[Check]:
    """Check that the relay's folder, or the one in which it will be created, can be written to by this user alone."""
    return _check_folder("relay", "relay.dir", config.relay.dir)


def check_records(config: Config) -> Iterator[Check]:
    """Check the same of the record store's folder."""
    return _check_folder("records", "source.records.dir", config.source.records.dir)


def _check_folder(name: str, option: str, folder: Path | None) -> Iterator[Check]:
    if folder is None:
        return
    existing = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        guarded(existing, option, shared=existing != folder.absolute())
        with TemporaryDirectory(dir=existing):  # asked of the system: root may not write everywhere either
            pass
        yield ok(name, f"{folder}" if existing == folder.absolute() else f"{folder}, which will be created")
    except ConnectorError as error:
        yield failed(name, error)
    except OSError as error:
        yield failed(name, ConfigError(f"{option} cannot be written to: {error.strerror}", folder=existing))


def check_java(environ: Mapping[str, str]) -> Check:
    """Check that there is a Java, of a version that Spark runs on.

    Args:
        environ: JAVA_HOME and PATH are used.
    """
    if found := installed_java(environ):
        return ok("java", f"Java {found.version}, {found.home}")
    if is_fetched():
        return ok("java", f"Java {JAVA_LEAST_VERSION} in the cache")
    return warning(
        "java",
        f"no Java {JAVA_LEAST_VERSION} or newer in JAVA_HOME or on the PATH: `thl apply` fetches one with pip",
        f"on a machine without network install Java {JAVA_LEAST_VERSION} or newer, and set JAVA_HOME to its folder",
    )


def _problems(answers: str, error: PreflightError) -> Iterator[Check]:
    yield ok(SOURCE, answers)
    for problem in error.problems or (error,):
        yield failed(GRANTS if isinstance(problem, MissingPrivilege) else SOURCE, problem)
