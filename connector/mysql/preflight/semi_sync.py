"""Checks that the source can wait for acknowledgements, if `source.semi_sync` asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from connector.errors import PreflightError
from connector.mysql.server.connection import Connection, query
from connector.mysql.server.semi_sync import AFTER_SYNC, SemiSyncSettings, read_settings
from connector.mysql.server.source_facts import SourceFacts

NEW_PLUGIN: Final = (8, 0, 26)
WAIT_POINT_SINCE: Final = (5, 7, 2)  # MySQL's; before, a commit waits after its changes are visible
LOAD_TIMEOUT: Final = 60_000  # milliseconds
LONG_TIMEOUT: Final = 3_600_000  # milliseconds: a producer that is away for longer is missed by its operators


def semi_sync_problems(connection: Connection, facts: SourceFacts, *, snapshot: bool) -> Iterator[PreflightError]:
    """Reports missing prerequisites of `source.semi_sync`."""
    if not facts.mariadb and facts.release < WAIT_POINT_SINCE:
        yield PreflightError(
            "source.semi_sync needs a source that waits before a commit's changes are visible, which this one cannot: "
            "other sessions would see transactions that a loss of the source takes away",
            hint="set source.semi_sync: false, or upgrade the source to MySQL 5.7",
            server=facts.server,
        )
        return
    settings = read_settings(connection)
    if settings is None:
        yield _no_plugin(connection, facts)
        return
    plugin, set_variable = settings.plugin, facts.set_variable
    if not settings.enabled:
        yield PreflightError(
            "source.semi_sync needs a source that waits for acknowledgements",
            hint=f"{set_variable} {plugin}_enabled = ON;{_and_in_its_configuration(facts)}",
            setting=f"{plugin}_enabled",
            found="OFF",
            needed="ON",
        )
    if settings.wait_point != AFTER_SYNC:
        yield PreflightError(
            "source.semi_sync needs a source that waits before a commit's changes are visible: else other sessions see "
            "transactions that a loss of the source takes away",
            hint=f"{set_variable} {plugin}_wait_point = 'AFTER_SYNC';{_and_in_its_configuration(facts)}",
            setting=f"{plugin}_wait_point",
            found=settings.wait_point,
            needed=AFTER_SYNC,
        )
    if snapshot and settings.enabled and settings.timeout > LOAD_TIMEOUT:
        yield PreflightError(
            "the source's commits would wait for the beginning of the initial load, and that for them: FLUSH TABLES "
            "WITH READ LOCK waits for commits",
            hint=f"begin with {plugin}_enabled = OFF and source.semi_sync: false, then set both; or meanwhile "
            f"{set_variable} {plugin}_timeout = 10000;",
            setting=f"{plugin}_timeout",
            found=settings.timeout,
            needed=f"at most {LOAD_TIMEOUT}",
        )


def semi_sync_warnings(connection: Connection, facts: SourceFacts, *, snapshot: bool) -> Iterator[str]:
    """Settings with which the source commits transactions that Kafka does not have yet."""
    settings = read_settings(connection)
    if settings is None:
        return
    yield from _timeout_warnings(settings, facts, snapshot=snapshot)
    if not settings.waits_without_replica:
        name = f"{settings.plugin}_wait_no_{'replica' if settings.plugin.endswith('source') else 'slave'}"
        yield (
            f"{name} is OFF: while the producer is not connected, commits do not wait: "
            f"{facts.set_variable} {name} = ON;"
        )


def locking_loads(facts: SourceFacts) -> Iterator[str]:
    """Loads that need the brief lock, which waits for commits that wait for the producer's acknowledgement."""
    if not facts.mariadb and facts.gtid_mode != "ON":
        yield (
            "with source.semi_sync a load locks a source without GTIDs for its position, and the lock waits for "
            "commits that wait for this producer: under writes a load may not get on, and each try stalls commits a "
            f"second; load at a quiet time, or with source.semi_sync: false [gtid_mode={facts.gtid_mode}]"
        )


def _timeout_warnings(settings: SemiSyncSettings, facts: SourceFacts, *, snapshot: bool) -> Iterator[str]:
    name, seconds = f"{settings.plugin}_timeout", settings.timeout / 1000
    if snapshot:
        yield (
            f"{name} is {settings.timeout}: until the initial load has begun the first commit waits {seconds:g} s, "
            "then the source is asynchronous until the producer has caught up"
        )
    elif settings.timeout < LONG_TIMEOUT:
        yield (
            f"{name} is {settings.timeout}: after {seconds:g} s without an acknowledgement (the producer or Kafka is "
            "down) commits do not wait until the producer has caught up, and a loss of the source can take them away; "
            f"if commits may wait for longer: {facts.set_variable} {name} = {LONG_TIMEOUT};"
        )


def _no_plugin(connection: Connection, facts: SourceFacts) -> PreflightError:
    name = "source" if facts.release >= NEW_PLUGIN else "master"
    hint = "the server was built without semi-synchronous replication: set source.semi_sync: false"
    if not facts.mariadb:
        folder = str(query(connection, "SELECT @@GLOBAL.plugin_dir AS d")[0]["d"]).rstrip("/")
        hint = (
            f"INSTALL PLUGIN rpl_semi_sync_{name} SONAME 'semisync_{name}.so'; "
            f"{facts.set_variable} rpl_semi_sync_{name}_enabled = ON;{_and_in_its_configuration(facts)} The file must "
            f"be in {folder} on the source's host; if it cannot be had, set source.semi_sync: false"
        )
    return PreflightError(
        "source.semi_sync needs the plugin for semi-synchronous replication on the source",
        hint=hint,
        setting=f"rpl_semi_sync_{name}_enabled",
        found="no such variable",
        needed="ON",
    )


def _and_in_its_configuration(facts: SourceFacts) -> str:
    return "" if facts.set_variable == "SET PERSIST" else " (and in the server's configuration)"
