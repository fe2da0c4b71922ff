"""`thl check`: checks source, Kafka, target, grants and Java, each with its remedy."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import command
from connector.commands.grammar.options import configured, text_or_json

if TYPE_CHECKING:
    from connector.config.model import Config


@command(examples={"thl check": "Before the first start.", "thl check --format json": "For scripts."})
@configured("source", "kafka")
@text_or_json("One JSON array instead of text.")
@click.pass_context
def check(ctx: click.Context, config: Config, *, as_json: bool) -> None:
    """Check the source and its grants, Kafka, the target and Java, and print the remedy of each problem.

    Takes seconds, and leaves nothing behind. Each result is printed when it is known. For PostgreSQL and DuckDB it also
    looks for the date 0000-00-00: in defaults, through indexes, and in the first rows of each table. Exits with 0 if
    everything is there, else with the code of the first problem, in the order of the subjects.
    """
    from connector.check.checks import findings
    from connector.check.result import as_line, as_objects, exit_code, in_order
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.errors import ConfigError
    from connector.kafka.client import LOG

    LOG.setLevel(logging.CRITICAL)  # the results report a broker that does not answer, not librdkafka's log lines
    with suppress(ConfigError):  # a wrong target.url is a result beside the others
        warn_of_unverified(config, "target")
    found = []
    for one in findings(config, os.environ):
        found.append(one)
        if not as_json:
            click.echo(as_line(one))
    found = in_order(found)
    if as_json:
        click.echo(json.dumps(as_objects(found), indent=2))
    ctx.exit(exit_code(found))
