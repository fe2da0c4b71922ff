"""`thl`: runs a command, which is imported when it is called, and shows its errors to the operator.

An error of `connector.errors` is shown as one message, never as a traceback, and sets the exit code. Any other
exception is a defect: one line, and with `--debug` or `THL_DEBUG=1` the traceback.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any, Final

import click

GROUPS: Final = {  # by what one wants to do
    "Run": {
        "produce": ("connector.commands.produce:produce", "Read MySQL's binary log into Kafka."),
        "apply": ("connector.commands.apply:apply", "Apply the log from Kafka to the target with Spark."),
    },
    "Look": {
        "status": ("connector.commands.status:status", "Print how far producer and applier are."),
        "serve": ("connector.commands.serve:serve", "Serve a page, an API and metrics about services."),
        "list": ("connector.commands.list:list_log", "Print events of the log."),
        "tail": ("connector.commands.tail:tail", "Print events as they arrive in the log."),
        "info": ("connector.commands.info:info", "Print what the log contains."),
        "index": ("connector.commands.index:index", "Print the offsets of the log's events."),
        "trace": ("connector.commands.trace:trace", "Print when an event was committed, published and applied."),
        "trapped": ("connector.commands.trapped:trapped", "List events that the source does not have (errant)."),
        "verify": ("connector.commands.verify:verify", "Compare the tables of source and target."),
        "support-bundle": ("connector.commands.support_bundle:support_bundle", "Write an archive for who helps you."),
    },
    "Steer": {
        "offline": ("connector.commands.offline:offline", "Ask the applier or the producer to go offline."),
        "wait": ("connector.commands.wait:wait", "Wait until the target has an event."),
        "load": ("connector.commands.load:load", "Load tables while replication goes on."),
        "heartbeat": ("connector.commands.heartbeat:heartbeat", "Write a heartbeat row on the source."),
        "undo": ("connector.commands.undo:undo", "Take the target back to an earlier event."),
    },
    "Files": {
        "binlog": ("connector.commands.binlog:binlog", "Print binary log files, without a server or Kafka."),
        "archive": ("connector.commands.archive:archive", "Copy the source's binary log to a folder."),
        "records": ("connector.commands.records:records", "Look at the producer's record store, or begin it again."),
        "purge": ("connector.commands.purge:purge", "Delete events of a relay."),
    },
    "Set up": {
        "init": ("connector.commands.init:init", "Write a commented configuration file."),
        "check": ("connector.commands.check:check", "Check source, grants, Kafka, target and Java."),
        "config": ("connector.commands.config:config", "Print the configuration in force, or its reference."),
        "acls": ("connector.commands.acls:acls", "Print or create the log's access rules on Kafka."),
    },
    "Try": {
        "demo": ("connector.commands.demo:demo", "Replicate under load on real servers, kill processes, compare."),
        "sandbox": ("connector.commands.sandbox:sandbox", "Start and stop disposable servers."),
    },
}
COMMANDS: Final = {name: entry for commands in GROUPS.values() for name, entry in commands.items()}
USAGE: Final = 2  # click's, for a wrong command line
ERROR: Final = 40  # logging's, whose import would make every start longer
DEFECT: Final = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED: Final = 130


class LazyGroup(click.Group):
    """Knows its commands by name and one line; imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of a command line, or name one that was meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(close)}?", ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands in groups, without importing any."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in commands.items()])


def print_reference(ctx: click.Context, _: click.Parameter, requested: bool) -> None:
    """Print docs/commands.md, and end."""
    if requested and not ctx.resilient_parsing:
        from connector.commands.grammar.reference import reference

        click.echo(reference(ctx, GROUPS), nl=False)
        ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="`thl COMMAND --help` has each command's options and examples.",
)
@click.version_option(package_name="thl-connector", prog_name="thl")
@click.option("--debug", is_flag=True, help="Show tracebacks of errors (or THL_DEBUG=1).")
@click.option(
    "--reference",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_reference,
    help="Print every command's options in Markdown, and exit.",
)
def thl(debug: bool) -> None:
    """MySQL's binary log as a Transaction History Log on Kafka, applied to other databases by Spark."""
    if debug:
        os.environ["THL_DEBUG"] = "1"


def main() -> None:
    """Run a command; the process ends here."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run a command.

    Returns:
        The exit code: 0, or that of the error.
    """
    from connector.errors import ConnectorError

    try:
        result: Any = thl.main(arguments, prog_name="thl", standalone_mode=False)
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        _show(error)
        return error.exit_code
    except ConnectorError as error:
        where = {name: str(value) for name, value in error.where.items() if value is not None}
        return _fail(str(error), error.exit_code, event=error.message, where=where, hint=error.hint)
    except BrokenPipeError:
        # The reader of our output has ended (`thl list | head`); Python must not try to flush it either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 (the last place before the operator)
        return _fail(f"this is a defect of thl: {type(error).__name__}: {error} (THL_DEBUG=1 shows where)", DEFECT)
    return result if isinstance(result, int) else 0


def _show(error: click.ClickException) -> None:
    """Print an error of the command line as click does, without superfluous arguments: one may be a password."""
    from connector import logs
    from connector.redaction import redacted

    said = error.format_message()
    if isinstance(error, click.UsageError):
        said = re.sub(r"(unexpected extra arguments?) \(.*\)", r"\1; --set is written section.field=value", said)
        if error.ctx is not None and not logs.are_json():
            click.echo(error.ctx.get_usage(), err=True)
    logs.echo(redacted(f"Error: {said}"), ERROR, exit_code=error.exit_code)


def _fail(message: str, code: int, *, event: str = "", **fields: object) -> int:
    """Show an error; where log lines are JSON, as one of them, with this event and these fields."""
    from connector import logs
    from connector.redaction import redacted

    debug = os.environ.get("THL_DEBUG") not in {None, "", "0"}
    if logs.are_json():
        logs.echo(event or message, ERROR, exc_info=debug, exit_code=code, **fields)
        return code
    if debug:
        import traceback

        click.echo(redacted(traceback.format_exc()), err=True)
    click.echo(redacted(f"thl: {message}"), err=True)
    return code
