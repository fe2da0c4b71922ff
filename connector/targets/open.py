"""Opens a target by its URL's scheme. Each kind of target is a folder with a module `entrance`, imported on demand."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from typing import Protocol, cast

from connector.clock import Clock
from connector.config.apply import Target as Options
from connector.config.target_url import missing_driver, target_kind
from connector.log.compact.metadata_columns import MetadataColumns, metadata_columns
from connector.log.transaction.layout import TableName
from connector.targets.position import TargetRow
from connector.targets.signal_table import SignalSession, SignalTable
from connector.targets.target import TargetDatabase

Databases = Callable[[], Collection[str] | None]


class TargetKind(Protocol):
    """The module `entrance` of a target's folder. Each function raises ConfigError for a malformed URL."""

    @staticmethod
    def open_target(options: Options, clock: Clock, columns: MetadataColumns | None) -> TargetDatabase:
        """Open the target for an applier; `columns` are its metadata columns."""

    @staticmethod
    def open_session(url: str) -> SignalSession:
        """Open a session for the signal tables; claims nothing."""

    @staticmethod
    def check(options: Options, databases: Databases) -> str:
        """Check that the target can be opened and written to, without writing; return a description of it."""

    @staticmethod
    def read_position(url: str, service: str) -> TargetRow | None:
        """Read the position of a service, with a session that claims nothing; None: nothing was applied yet."""

    @staticmethod
    def read_heartbeat(url: str, service: str, table: TableName, name: str) -> str | None:
        """Read the time of the newest heartbeat of a name, as the target's text; None: there is none."""

    @staticmethod
    def unverified(url: str) -> str:
        """Say why a password sent to this URL can be read by others; "" if it cannot."""


def open_target(options: Options, clock: Clock) -> TargetDatabase:
    """Open the target that the configuration names.

    Args:
        options: the URL, `audit` and the metadata columns.
        clock: for the time of each commit.

    Raises:
        ConfigError: the URL has an unknown scheme.
        TargetUnavailable: the target does not answer.
    """
    columns = metadata_columns(options.metadata_columns.items())
    return _kind(options).open_target(options, clock, columns)


def open_signal_table(options: Options) -> SignalTable:
    """Open the signal tables of the target that the configuration names, without claiming the target.

    Args:
        options: the URL.

    Raises:
        ConfigError: the URL has an unknown scheme.
        TargetUnavailable: the target does not answer, or does not exist yet.
    """
    return SignalTable(_kind(options).open_session(options.url.get_secret_value()))


def check_target(options: Options, databases: Databases = lambda: None) -> str:
    """Check that an applier could open the target and write to it; write nothing.

    Args:
        options: the URL, and what decides which privileges are needed.
        databases: called once the target has answered; returns the databases of the log, None where they are not known.

    Returns:
        The target's kind, version and location.

    Raises:
        ConfigError: an unknown scheme, or a URL or file that cannot be used.
        PreflightError: the server refuses the user, or the user lacks a privilege.
        TargetUnavailable: the server does not answer.
    """
    return _kind(options).check(options, databases)


def read_position(url: str, service: str) -> TargetRow | None:
    """Read the position of a service, with a session that claims nothing.

    Returns:
        None if nothing was applied yet.

    Raises:
        TargetUnavailable: the target does not answer.
        ConfigError: the URL has an unknown scheme, or libpq refuses it.
    """
    return _kind_of(url).read_position(url, service)


def read_heartbeat(url: str, service: str, table: TableName, name: str) -> str | None:
    """Read a heartbeat from the target's copy of the heartbeat table.

    Args:
        url: the target's URL.
        service: the service.
        table: the heartbeat table; some sources keep its name in lower case.
        name: the name of the heartbeat.

    Returns:
        The time of the newest one, by the source's clock, as the target's text; None: there is none.

    Raises:
        As `read_position`.
    """
    return _kind_of(url).read_heartbeat(url, service, table, name)


def unverified(options: Options) -> str:
    """The reason, as a sentence, why others can read the password on its way to the target; "" if they cannot.

    Raises:
        ConfigError: the URL has an unknown scheme.
    """
    return _kind(options).unverified(options.url.get_secret_value())


def _kind(options: Options) -> TargetKind:
    return _kind_of(options.url.get_secret_value())


def _kind_of(url: str) -> TargetKind:
    kind = target_kind(url)
    try:
        return cast(TargetKind, import_module(f"connector.targets.{kind}.entrance"))
    except ModuleNotFoundError as error:
        if error.name != kind:
            raise
        raise missing_driver(kind) from error
