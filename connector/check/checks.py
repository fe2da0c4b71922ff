"""Checks the source with its settings and grants, the brokers with the log's topics, the target, folders, and Java.

Nothing is created, claimed or fenced, and all servers are asked side by side. Each finding is told when it is known: a
server that hangs delays no finding about another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Final

from connector.check.result import (
    GRANTS,
    JAVA,
    KAFKA,
    RECORDS,
    RELAY,
    SOURCE,
    TARGET,
    Check,
    failed,
    in_order,
    ok,
    warning,
)
from connector.clock import SystemClock
from connector.config import Config
from connector.config.target_url import mysql_address, target_kind
from connector.errors import ConfigError, ConnectorError, MissingPrivilege, PreflightError, ValueNotRepresentable
from connector.fetching.java import installed_java, is_fetched
from connector.fetching.versions import JAVA_LEAST_VERSION
from connector.kafka.topics import Topics
from connector.log.compact.history import history_name, history_tables
from connector.log.transaction.layout import TableName
from connector.mysql.preflight.preflight import preflight, reads_definitions
from connector.mysql.preflight.zero_dates import FIRST_ROWS, DateColumn, zero_dates
from connector.mysql.server.connection import Connection, connect, source_errors
from connector.mysql.server.dump import replica_uuid
from connector.mysql.snapshot.loadable import LoadCandidate, Purpose, by_reason, candidates, captured, unloadable
from connector.mysql.transforms.filters import Filter
from connector.private_files import guarded, unusable
from connector.targets.open import check_target

NAMED: Final = 10  # columns that a result names
WITHOUT_ZERO_DATES: Final = {"postgres": "PostgreSQL", "duckdb": "DuckDB"}
PATIENCE: Final = 4.0  # seconds for a server to answer; as long as that of the target's `check`

Databases = Future[Collection[str] | None]
"""The databases of the log as far as tables of them exist, once the source has answered; None: they are not known."""


def check(config: Config, environ: Mapping[str, str]) -> list[Check]:
    """Return the `findings`, in the order of their subjects."""
    return in_order(findings(config, environ))


def findings(config: Config, environ: Mapping[str, str]) -> Iterator[Check]:
    """Check source, grants, Kafka, target, the folders of relay and record store, and Java.

    Args:
        config: the configuration.
        environ: the environment, for Java.

    Yields:
        Each finding when it is known; at least one of each subject, but none for a folder that is not configured.
    """
    found: SimpleQueue[Check | None] = SimpleQueue()

    def run(checks: Callable[[], Iterable[Check]]) -> None:
        try:
            for one in checks():
                found.put(one)
        finally:
            found.put(None)

    databases: Databases = Future()
    with ThreadPoolExecutor(max_workers=6) as pool:  # all of them at once
        kafka = pool.submit(check_kafka, config)
        subjects: list[Callable[[], Iterable[Check]]] = [
            lambda: kafka.result()[0],
            lambda: check_source(config, lambda: kafka.result()[1], databases),
            lambda: check_target_server(config, databases),
            lambda: [*check_relay(config), *check_records(config)],
            lambda: [check_java(environ)],
        ]
        running = [pool.submit(run, one) for one in subjects]
        for _ in running:
            yield from iter(found.get, None)
        for one in running:
            one.result()


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


def check_source(config: Config, log_exists: Callable[[], bool], databases: Databases) -> Iterator[Check]:
    """Check that the source answers, is set up, and grants the user what the producer needs.

    Args:
        config: the configuration.
        log_exists: called when the source has answered. Without a log an initial load may follow, which needs more
            privileges.
        databases: gets them.
    """
    try:
        yield from _check_source(config, log_exists, databases)
    except ConnectorError as error:
        yield failed(SOURCE, error)
    finally:
        if not databases.done():
            databases.set_result(None)


def _check_source(config: Config, log_exists: Callable[[], bool], databases: Databases) -> Iterator[Check]:
    source = config.source
    with closing(connect(source, patience=PATIENCE)) as connection:
        snapshot = source.start == "snapshot" and not log_exists()
        try:
            uuid = replica_uuid(config.service, source)
            facts = preflight(connection, source, snapshot=snapshot, replica_uuid=uuid)
            if reads_definitions(facts, source) and not log_exists():
                facts = preflight(connection, source, snapshot=True, replica_uuid=uuid)
        except PreflightError as error:
            yield from _problems(f"{source.host}:{source.port} answers", error)
            return
        yield ok(SOURCE, f"{facts.server} at {source.host}:{source.port}")
        yield ok(GRANTS, f"the user {source.user} has every privilege that is needed")
        yield from (warning(SOURCE, text) for text in facts.warnings)
        filter = Filter.of(source, facts.lower_case_table_names)
        with source_errors(source):
            tables = candidates(connection)
        names = [filter.published_name(one.name) for one in tables if filter.captures(*one.name)]
        histories = history_tables(config.target.history)
        beside = [history_name(name) for name in names if histories is not None and histories.finds(name)]
        databases.set_result({name.schema for name in (*names, *beside)})
        yield from _check_loads(captured(tables, filter), filter, snapshot=snapshot)
        yield from check_histories(config.target.history, names)
        yield from _check_dates(config, connection, filter)  # last: it reads rows


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
    try:
        product = WITHOUT_ZERO_DATES.get(target_kind(config.target.url.get_secret_value()))
    except ConfigError:
        return  # `check_target_server` reports it
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


def check_target_server(config: Config, databases: Databases) -> list[Check]:
    """Check that the target can be opened and written to, and is not the source.

    Args:
        config: the configuration.
        databases: has those that the target's user writes to.
    """

    def known() -> Collection[str] | None:
        try:
            return databases.result(PATIENCE)
        except TimeoutError:
            return None

    try:
        found = [ok(TARGET, check_target(config.target, known))]
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
    return _check_folder(RELAY, "relay.dir", config.relay.dir)


def check_records(config: Config) -> Iterator[Check]:
    """Check the same of the record store's folder."""
    return _check_folder(RECORDS, "source.records.dir", config.source.records.dir)


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
        yield failed(name, unusable(existing, error, option))


def check_java(environ: Mapping[str, str]) -> Check:
    """Check that there is a Java, of a version that Spark runs on.

    Args:
        environ: JAVA_HOME and PATH are used.
    """
    if found := installed_java(environ):
        return ok(JAVA, f"Java {found.version}, {found.home}")
    if is_fetched():
        return ok(JAVA, f"Java {JAVA_LEAST_VERSION} in the cache")
    return warning(
        JAVA,
        f"no Java {JAVA_LEAST_VERSION} or newer in JAVA_HOME or on the PATH: `thl apply` fetches one with pip",
        f"on a machine without network install Java {JAVA_LEAST_VERSION} or newer, and set JAVA_HOME to its folder",
    )


def _problems(answers: str, error: PreflightError) -> Iterator[Check]:
    yield ok(SOURCE, answers)
    for problem in error.problems or (error,):
        yield failed(GRANTS if isinstance(problem, MissingPrivilege) else SOURCE, problem)
