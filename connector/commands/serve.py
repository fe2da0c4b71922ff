"""`thl serve`: a page, an API and metrics about one or many services."""

from __future__ import annotations

import os
from pathlib import Path

import click

from connector.commands.grammar.command import command, option
from connector.commands.grammar.ending import stop_at_signals


@command(
    examples={
        "thl serve": "Serve the service of thl.yaml on http://127.0.0.1:8090/.",
        "thl serve --config shop.yaml --config crm.yaml": "Serve two services; or one with two targets.",
        "thl serve --set serve.token_file=/etc/thl/serve.token": "Also with buttons.",
    }
)
@option(
    "--config",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Configuration file of a service (YAML). Repeatable; those of one service are its targets. By default "
    "thl.yaml in the working directory, if it exists. The section `serve` of the first one counts.",
)
@option(
    "--set",
    "sets",
    multiple=True,
    metavar="SECTION.FIELD=VALUE",
    help="Set one configuration field of every service; overrides the files and the environment. Repeatable.",
)
@option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    envvar="THL_LOG_FORMAT",
    help="Format of log lines (on standard error).",
)
def serve(files: tuple[Path, ...], sets: tuple[str, ...], log_format: str) -> None:
    """Serve a page, a JSON API and metrics that show what `thl status` knows, until SIGTERM or SIGINT.

    It reads Kafka, source and target every few seconds, and claims nothing: any number of them may run anywhere.
    Needs the extra `serve`.
    """
    from connector.clock import SystemClock
    from connector.commands.grammar.unverified import warn_of_unverified
    from connector.config.loading import load
    from connector.errors import ConfigError
    from connector.logs import set_up_logs

    set_up_logs("json" if log_format == "json" else "text")
    try:
        from connector.serve.server import serve as run
        from connector.serve.services import served_services
    except ModuleNotFoundError as error:
        if error.name not in {"flask", "waitress"}:
            raise
        raise ConfigError(
            f"thl serve needs the package {error.name}", hint="pip install 'thl-connector[serve]'"
        ) from None
    configs = [(file, load(file, os.environ, sets)) for file in files or (None,)]
    services = served_services(configs)
    for service in services:
        warn_of_unverified(service.config, "source", "replicas")
        for target in service.targets:
            warn_of_unverified(target.config, "kafka", "target")
    run(services, configs[0][1].serve, SystemClock(), stop_at_signals(), sets)
