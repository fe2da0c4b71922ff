"""`thl`: the commands, each imported only when it is called, and how errors reach the operator.

What we raise on purpose is one message and an exit code, never a traceback. Anything else is a defect: one line,
and with `--debug` or `THL_DEBUG=1` the traceback.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from typing import Any

import click

COMMANDS = {
    "produce": ("connector.commands.produce:produce", "Read MySQL's binary log into Kafka."),
    "apply": ("connector.commands.apply:apply", "Apply the log from Kafka to the target, by Spark."),
    "undo": ("connector.commands.undo:undo", "Take the target back to an earlier event."),
    "offline": ("connector.commands.offline:offline", "Ask the applier to go offline."),
    "status": ("connector.commands.status:status", "Say how far producer and applier are."),
    "wait": ("connector.commands.wait:wait", "Wait until the target has an event."),
    "heartbeat": ("connector.commands.heartbeat:heartbeat", "Write a row on the source that is known in the log."),
    "binlog": ("connector.commands.binlog:binlog", "Print what binary log files hold, without a server or Kafka."),
    "archive": ("connector.commands.archive:archive", "Keep the source's binary log in a folder."),
    "list": ("connector.commands.list:list_log", "Print events of the log."),
    "tail": ("connector.commands.tail:tail", "Print events as they come into the log."),
    "info": ("connector.commands.info:info", "Say what the log is and holds."),
    "index": ("connector.commands.index:index", "Print which events are where in the log."),
    "trapped": ("connector.commands.trapped:trapped", "List events that the source does not have."),
    "verify": ("connector.commands.verify:verify", "Compare the tables of source and target."),
    "acls": ("connector.commands.acls:acls", "Say, or set, who may write where on Kafka."),
    "config": ("connector.commands.config:config", "Print the configuration in force, or its reference."),
    "sandbox": ("connector.sandbox.commands:sandbox", "Start and end disposable servers to try things on."),
    "demo": ("connector.commands.demo:demo", "Run everything on real servers: load, kill, compare."),
}
DEFECT = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130


class LazyGroup(click.Group):
    """Knows its commands by name and one line; imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import it."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List them without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="thl-connector", prog_name="thl")
@click.option("--debug", is_flag=True, help="Show tracebacks (or THL_DEBUG=1).")
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
        The exit code: 0, or what connector.errors says of the error.
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
        return _fail(str(error), error.exit_code)
    except BrokenPipeError:
        # Whoever read our output has enough (`thl list | head`); Python must not try to flush it either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 (the last place before the operator)
        return _fail(f"this is a defect of ours: {type(error).__name__}: {error} (THL_DEBUG=1 shows where)", DEFECT)
    return result if isinstance(result, int) else 0


def _show(error: click.ClickException) -> None:
    """As click does, but for arguments that belong nowhere: `--set source.password secret` has one."""
    from connector.redaction import redacted

    said = error.format_message()
    if isinstance(error, click.UsageError):
        said = re.sub(r"(unexpected extra arguments?) \(.*\)", r"\1; --set is written section.field=value", said)
        if error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
    click.echo(redacted(f"Error: {said}"), err=True)


def _fail(message: str, code: int) -> int:
    from connector.redaction import redacted

    if os.environ.get("THL_DEBUG") not in {None, "", "0"}:
        import traceback

        click.echo(redacted(traceback.format_exc()), err=True)
    click.echo(redacted(f"thl: {message}"), err=True)
    return code
