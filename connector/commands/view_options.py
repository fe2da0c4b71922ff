"""The options of commands that show events: layout, parts, time zone."""

from __future__ import annotations

import functools
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import click

PARTS = ("headers", "sql", "sizes")
KNOWN = {"thl": ("all", *PARTS), "json": ("all", "headers"), "avro": ("all",)}


def time_zone(_: click.Context, option: click.Parameter, value: str) -> tzinfo:
    """By its name in the time zone database."""
    try:
        return UTC if value == "UTC" else ZoneInfo(value)
    except (KeyError, ValueError, OSError) as error:
        raise click.BadParameter(f"{value!r} is not a time zone like Europe/Berlin", param=option) from error


def view_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--format`, `-headers`, `-sql`, `-sizes`, `-specs` and `-timezone`.

    It is called with `view: connector.inspect.formats.printing.View`.
    """

    @click.option(
        "--format",
        "layout",
        type=click.Choice(list(KNOWN)),
        default="thl",
        show_default=True,
        help="Tungsten's layout, a JSON object a line and fragment, or an Avro container file of the fragments.",
    )
    @click.option("-headers", "--headers", is_flag=True, help="Without what the events change; in a line each.")
    @click.option("-sql", "--sql", is_flag=True, help="Statements alone; rows, which have none, as comments.")
    @click.option("-sizes", "--sizes", is_flag=True, help="How much each fragment changes, in a line.")
    @click.option("-specs", "--specs", is_flag=True, help="Columns with their types.")
    @click.option(
        "-timezone", "--timezone", "zone", callback=time_zone, default="UTC", show_default=True, help="Of commit times."
    )
    @functools.wraps(command)
    def with_view(
        *, layout: str, headers: bool, sql: bool, sizes: bool, specs: bool, zone: tzinfo, **arguments: Any
    ) -> Any:
        from connector.inspect.formats.printing import Layout, Part, View

        if headers + sql + sizes + specs > 1:
            raise click.UsageError("-headers, -sql, -sizes and -specs exclude each other")
        asked = zip(PARTS, (headers, sql, sizes), strict=True)
        part = next((name for name, wanted in asked if wanted), "all")
        if part not in KNOWN[layout]:
            raise click.UsageError(f"--format {layout} has no -{part}")
        if specs and layout == "avro":
            raise click.UsageError("--format avro has no -specs: its schema tells the columns")
        return command(view=View(layout=Layout(layout), part=Part(part), specs=specs, zone=zone), **arguments)

    return with_view
