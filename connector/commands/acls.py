"""`thl acls`: who may write where on Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from connector.commands.options import configured

if TYPE_CHECKING:
    from connector.config.model import Config


@click.command()
@configured()
@click.option("--producer", "producers", multiple=True, metavar="User:NAME", help="Runs `thl produce`.")
@click.option("--consumer", "consumers", multiple=True, metavar="User:NAME", help="Runs `thl apply`, or reads the log.")
@click.option(
    "--operator", "operators", multiple=True, metavar="User:NAME", help="May also ask a producer to go offline."
)
@click.option("--create", "make", is_flag=True, help="Give them to the brokers; else they are only printed.")
def acls(
    config: Config, *, producers: tuple[str, ...], consumers: tuple[str, ...], operators: tuple[str, ...], make: bool
) -> None:
    """Print, or create, the access rules of the log's four topics, for brokers with an authorizer.

    Only producers may write events, positions and prepared transactions. Each option can be repeated. With --create
    the user of kafka.properties needs ALTER on the cluster.
    """
    from connector.commands.unverified import warn_of_unverified
    from connector.kafka.acls import create, described, rules

    named = (*producers, *consumers, *operators)
    if not named:
        raise click.UsageError("name who may do what: --producer User:NAME --consumer User:NAME …")
    if wrong := [name for name in named if ":" not in name or name.endswith(":*")]:
        raise click.UsageError(f"not a principal of Kafka's, as User:NAME: {', '.join(wrong)}")
    wanted = rules(config, producers=producers, consumers=consumers, operators=operators)
    for one in wanted:
        click.echo(described(one))
    if make:
        warn_of_unverified(config, "kafka")
        create(config, wanted)
        click.echo(f"{len(wanted)} rules are with the brokers", err=True)
