"""The options that several commands share: the configuration, the output's format, the reason, the end that is meant.

The types of bounds (`--from-X`, `--to-X`) are in `connector.commands.grammar.bounds`.
"""

from __future__ import annotations

import functools
import os
import pwd
import socket
from collections.abc import Callable
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from zoneinfo import ZoneInfo

import click

from connector.commands.grammar.command import COMMON, JSON, NEW_LAYOUT, Decorator, Form, option

if TYPE_CHECKING:
    from connector.commands.grammar.unverified import End
    from connector.config.model import Config
    from connector.patterns import ColumnPatterns

OUTPUT: Final = "Output"
CONFIGURED: Final = Path("relay.dir")  # stands for that folder, by identity
PARTS: Final = ("headers", "sizes")
# Parts, and further options, by format.
KNOWN: Final = {
    "tungsten": ("all", *PARTS, "specs", "charset", "hex"),
    "sql": ("all", "hex", "exclude-column"),
    "json": ("all", "headers", "specs"),
    "avro": ("all",),
}
VIEW_EARLIER: Final[dict[str, Form]] = {
    "--format": NEW_LAYOUT,
    "-json": "--format json",
    **JSON,
    "-sql": "--format sql",
    "--sql": "--format sql",
    "-headers": "--headers",
    "-sizes": "--sizes",
    "-specs": "--specs",
    "-charset": "--charset",
    "-hex": "--hex",
    "-timezone": "--timezone",
}


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--config`, `--set` and `--log-format`.

    It is called with `settings: connector.config.loading.Settings`.
    """

    @option(
        "--config",
        "config_file",
        section=COMMON,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Configuration file (YAML); by default thl.yaml in the working directory, if it exists.",
    )
    @option(
        "--set",
        "sets",
        section=COMMON,
        multiple=True,
        metavar="SECTION.FIELD=VALUE",
        help="Set one configuration field; overrides the file and the environment. Repeatable.",
    )
    @option(
        "--log-format",
        section=COMMON,
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        envvar="THL_LOG_FORMAT",
        help="Format of log lines (on standard error).",
    )
    @functools.wraps(command)
    def with_settings(config_file: Path | None, sets: tuple[str, ...], log_format: str, **arguments: Any) -> Any:
        # Imports wait until they are needed: `thl --help` does not need them.
        from connector.config.loading import load_settings
        from connector.logs import set_up_logs

        set_up_logs("json" if log_format == "json" else "text")
        return command(settings=load_settings(config_file, os.environ, sets), **arguments)

    return with_settings


def configured(*ends: End) -> Decorator:
    """Give a command the same options; it is called with `config: connector.config.model.Config`.

    Args:
        ends: the servers that the command always sends passwords to: it warns of those that are not verified.
    """

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @settings_options
        @functools.wraps(command)
        def with_config(settings: Any, **arguments: Any) -> Any:
            from connector.commands.grammar.unverified import warn_of_unverified

            warn_of_unverified(settings.config, *ends)
            return command(config=settings.config, **arguments)

        return with_config

    return with_options


def text_or_json(
    text: str = "One JSON object instead of text.",
) -> Decorator:
    """Give a command `--format text|json`; it is called with `as_json: bool`. Its earlier form is `--json`."""

    def with_format(command: Callable[..., Any]) -> Callable[..., Any]:
        @option(
            "--format",
            "layout",
            section=OUTPUT,
            type=click.Choice(["text", "json"]),
            default="text",
            show_default=True,
            help=text,
        )
        @functools.wraps(command)
        def formatted(*, layout: str, **arguments: Any) -> Any:
            return command(as_json=layout == "json", **arguments)

        return formatted

    return with_format


def view_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that prints events its format, part and time zone.

    It is called with `view: connector.inspect.formats.printing.View`. Earlier forms are in VIEW_EARLIER.
    """

    @option(
        "--format",
        "layout",
        section=OUTPUT,
        type=click.Choice(list(KNOWN)),
        default="tungsten",
        show_default=True,
        help="Tungsten's layout; SQL that MySQL executes; one JSON object per fragment and line; or an Avro container "
        "file of the fragments.",
    )
    @option("--headers", section=OUTPUT, is_flag=True, help="One line per fragment, without its changes.")
    @option("--sizes", section=OUTPUT, is_flag=True, help="One line per fragment with the number of its changes.")
    @option("--specs", section=OUTPUT, is_flag=True, help="Show each column's type.")
    @option(
        "--charset",
        section=OUTPUT,
        callback=charset,
        metavar="NAME",
        help="Show binary values as text in this character set (latin1, UTF-8 …) where they are valid in it.",
    )
    @option("--hex", section=OUTPUT, is_flag=True, help="Also show the bytes of text values; with SQL, only those.")
    @option(
        "--exclude-column",
        section=OUTPUT,
        multiple=True,
        callback=columns,
        metavar="PATTERN",
        help="Columns that the SQL does not set (schema.table.column, with * and ?): generated ones, which MySQL "
        "computes itself. Repeatable.",
    )
    @option(
        "--timezone",
        "zone",
        section=OUTPUT,
        callback=time_zone,
        default="UTC",
        show_default=True,
        metavar="ZONE",
        help="Time zone of commit times, e.g. Europe/Berlin.",
    )
    @functools.wraps(command)
    def with_view(
        *,
        layout: str,
        headers: bool,
        sizes: bool,
        specs: bool,
        zone: tzinfo,
        charset: str | None,
        hex: bool,
        exclude_column: ColumnPatterns,
        **arguments: Any,
    ) -> Any:
        from connector.inspect.formats.printing import FragmentPart, Layout, View

        if headers + sizes + specs > 1:
            raise click.UsageError("--headers, --sizes and --specs exclude each other")
        given = {
            "headers": headers,
            "sizes": sizes,
            "specs": specs,
            "charset": charset is not None,
            "hex": hex,
            "exclude-column": bool(exclude_column.patterns),
        }
        asked = [name for name, there in given.items() if there]
        for name in asked:
            if name not in KNOWN[layout]:
                raise click.UsageError(f"--format {layout} has no --{name}")
        part = next((name for name in asked if name in PARTS), "all")
        if part != "all" and (hex or charset is not None):
            raise click.UsageError(f"--{part} shows no values: it has no --hex and no --charset")
        view = View(
            layout=Layout(layout),
            part=FragmentPart(part),
            specs=specs,
            zone=zone,
            charset=charset,
            hexadecimal=hex,
            excluded_columns=exclude_column,
        )
        return command(view=view, **arguments)

    return with_view


def time_zone(_: click.Context, parameter: click.Parameter, value: str) -> tzinfo:
    """A time zone by its name in the time zone database."""
    try:
        return UTC if value == "UTC" else ZoneInfo(value)
    except (KeyError, ValueError, OSError) as error:
        raise click.BadParameter(f"{value!r} is not a time zone like Europe/Berlin", param=parameter) from error


def charset(_: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """The name of a character set."""
    from connector.inspect.formats.tungsten_values import is_charset

    if value is not None and not is_charset(value):
        raise click.BadParameter(f"{value!r} is not a character set like latin1, utf8mb4 or UTF-8", param=parameter)
    return value


def columns(_: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> ColumnPatterns:
    """Patterns of columns, of a repeatable option."""
    from connector.patterns import column_patterns

    try:
        return column_patterns(values)
    except ValueError as error:
        raise click.BadParameter(str(error), param=parameter) from error


class _RelayFolder(click.Path):
    """A relay's folder; without a name it stays `CONFIGURED`."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """See click."""
        return value if value is CONFIGURED else super().convert(value, parameter, context)


def relay_option(text: str, section: str) -> Decorator:
    """Give a command `--relay [FOLDER]`; it is called with `relay: Path | None`, for `relay_folder`."""
    return option(
        "--relay",
        section=section,
        type=_RelayFolder(),
        is_flag=False,
        flag_value=CONFIGURED,
        metavar="[FOLDER]",
        help=f"{text} Without FOLDER: that of relay.dir.",
    )


def relay_folder(config: Config, given: Path) -> Path:
    """Return the folder that `--relay` names, or the configuration for it.

    Raises:
        ConfigError: neither names one.
    """
    from connector.errors import ConfigError

    folder = config.relay.dir if given is CONFIGURED else given
    if folder is None:
        raise ConfigError("no relay: neither --relay nor relay.dir names its folder")
    return folder


def reason_option(text: str, section: str) -> Decorator:
    """Give a command `--reason`, which is noted beside who gave it (`who`). Its earlier form is `--because`."""
    return option("--reason", section=section, default="", metavar="TEXT", help=text)


def who() -> str:
    """The operating system's user and host, `user@host`, of this process."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container's user without a name
        user = str(uid)
    return f"{user}@{socket.gethostname()}"


def one_end(target: str, producer: str, default: Literal["target", "producer"] | None) -> Decorator:
    """Give a command `--target` and `--producer`; it is called with `end`, "target", "producer" or the default.

    Args:
        target, producer: the options' help.
        default: the end that is meant where neither is given; None: both.
    """

    def with_ends(command: Callable[..., Any]) -> Callable[..., Any]:
        @option("--target", is_flag=True, help=target)
        @option("--producer", is_flag=True, help=producer)
        @functools.wraps(command)
        def with_end(*, target: bool, producer: bool, **arguments: Any) -> Any:
            if target and producer:
                raise click.UsageError("--target and --producer exclude each other")
            end = "target" if target else "producer" if producer else default
            return command(end=end, **arguments)

        return with_end

    return with_ends
