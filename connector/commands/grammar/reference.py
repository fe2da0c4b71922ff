"""The page docs/commands.md: every command of `thl` with its options, made from their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc

import click

from connector.commands.grammar.command import COMMON, OPTIONS, ByValue, Command
from connector.config.reference import cell

HEAD = """\
# Commands

<!-- Written by `thl --reference > docs/commands.md`; a test keeps it equal. -->

The options that all commands share are [at the end](#common-options); the words they share, shell completion and exit
codes are in [the reference of the command line](command-line.md).
"""


def reference(ctx: click.Context, groups: Mapping[str, Iterable[str]]) -> str:
    """The page.

    Args:
        ctx: the context of `thl` itself.
        groups: the commands' names by what one wants to do.
    """
    lines, common = [HEAD], dict[str, str]()
    for title, names in groups.items():
        lines += [f"## {title}", ""]
        for name in names:
            for command, inner in commands(ctx, name):
                lines += _described(command, inner, common)
    return "\n".join([*lines, "## Common options", "", *_table(common), ""])


def commands(ctx: click.Context, name: str) -> Iterator[tuple[click.Command, click.Context]]:
    """A command with its context; of a group, each of its commands."""
    command = ctx.command.get_command(ctx, name) if isinstance(ctx.command, click.Group) else None
    if command is None:
        return
    inner = click.Context(command, info_name=name, parent=ctx)
    if isinstance(command, click.Group):
        for one in command.list_commands(inner):
            yield from commands(inner, one)
    else:
        yield command, inner


def _described(command: click.Command, ctx: click.Context, common: dict[str, str]) -> Iterator[str]:
    yield from (f"### {ctx.command_path}", "")
    yield from (
        f"`{' '.join((ctx.command_path, *command.collect_usage_pieces(ctx)))}`",
        "",
        cleandoc(command.help or ""),
        "",
    )
    for section, options in _sections(command, ctx).items():
        records = dict(record for one in options if (record := one.get_help_record(ctx)))
        if section == COMMON:
            common.update(records)
        else:
            yield from (f"**{section}**", "", *_table(records), "")
    if not isinstance(command, Command):
        return
    if command.examples:
        yield from ("```", *(f"{line}  # {text}" if text else line for line, text in command.examples.items()), "```")
        yield ""
    if command.earlier:
        forms = (
            (f"{old} thl" if old == "--format" else old, new.shown if isinstance(new, ByValue) else new)
            for old, new in command.earlier.items()
        )
        yield f"Earlier forms: {', '.join(f'`{old}` ({new})' for old, new in forms)}."
        yield ""


def _sections(command: click.Command, ctx: click.Context) -> Mapping[str, list[click.Parameter]]:
    if isinstance(command, Command):
        return command.sections(ctx)
    return {OPTIONS: [one for one in command.get_params(ctx) if one.name != "help"]}


def _table(options: Mapping[str, str]) -> list[str]:
    rows = (f"| `{cell(name)}` | {cell(text)} |" for name, text in options.items())
    return ["| Option | |", "|---|---|", *rows]
