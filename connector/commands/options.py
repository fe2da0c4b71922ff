"""The options that every command with a configuration has."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from connector.commands.unverified import End


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--config`, `--set` and `--log-format`.

    It is called with `settings: connector.config.loading.Settings`.
    """

    @click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Configuration in YAML; default: thl.yaml where there is one.",
    )
    @click.option("--set", "sets", multiple=True, metavar="A.B=C", help="Set one field, over file and environment.")
    @click.option(
        "--log-format",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        envvar="THL_LOG_FORMAT",
        help="How log lines are written.",
    )
    @functools.wraps(command)
    def with_settings(config_file: Path | None, sets: tuple[str, ...], log_format: str, **arguments: Any) -> Any:
        # Imports wait until they are needed: `thl --help` does not.
        from connector.config.loading import load_settings
        from connector.logs import set_up_logs

        set_up_logs("json" if log_format == "json" else "text")
        return command(settings=load_settings(config_file, os.environ, sets), **arguments)

    return with_settings


def configured(*ends: End) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same for a command that wants no more than `config: connector.config.model.Config`.

    Args:
        ends: what it sends passwords to, whatever its own options say: it warns of those that are not verified.
    """

    def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
        @settings_options
        @functools.wraps(command)
        def with_config(settings: Any, **arguments: Any) -> Any:
            from connector.commands.unverified import warn_of_unverified

            warn_of_unverified(settings.config, *ends)
            return command(config=settings.config, **arguments)

        return with_config

    return with_options
