"""`thl acls`: the access rules (ACLs) of the log's topics on Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.grammar.command import command, option
from connector.commands.grammar.options import configured
from connector.logs import echo

if TYPE_CHECKING:
    from connector.config.model import Config

PRINCIPALS = "Kafka principals"


@command(
    earlier={
        "--producer": "--producer-principal",
        "--consumer": "--consumer-principal",
        "--operator": "--operator-principal",
    },
    examples={
        "thl acls --producer-principal User:thl-producer --consumer-principal User:thl-applier": "Print the rules.",
        "thl acls --producer-principal User:thl-producer --create": "Create a producer's rules on the brokers.",
    },
)
@configured()
@option(
    "--producer-principal",
    "producers",
    section=PRINCIPALS,
    multiple=True,
    metavar="User:NAME",
    help="Runs `thl produce`. Repeatable.",
)
@option(
    "--consumer-principal",
    "consumers",
    section=PRINCIPALS,
    multiple=True,
    metavar="User:NAME",
    help="Runs `thl apply` or reads the log. Repeatable.",
)
@option(
    "--operator-principal",
    "operators",
    section=PRINCIPALS,
    multiple=True,
    metavar="User:NAME",
    help="Reads the log and runs `thl offline --producer` or `thl load`. Repeatable.",
)
@option("--create", "make", is_flag=True, help="Create the rules on the brokers, too; they are always printed.")
def acls(
    config: Config, *, producers: tuple[str, ...], consumers: tuple[str, ...], operators: tuple[str, ...], make: bool
) -> None:
    """Print or create the access rules (ACLs) of the log's four topics, for brokers with an authorizer.

    Only producers may write events, positions and prepared transactions. --create needs ALTER on the cluster for the
    user of kafka.properties.
    """
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.kafka.acls import create, described, rules

    named = (*producers, *consumers, *operators)
    if not named:
        raise click.UsageError("name at least one principal, as in --producer-principal User:NAME")
    if wrong := [name for name in named if ":" not in name or name.endswith(":*")]:
        raise click.UsageError(f"not a Kafka principal like User:NAME: {', '.join(wrong)}")
    bindings = rules(config, producers=producers, consumers=consumers, operators=operators)
    for one in bindings:
        click.echo(described(one))
    if make:
        warn_of_unverified(config, "kafka")
        create(config, bindings)
        echo(f"{len(bindings)} rules are created")
