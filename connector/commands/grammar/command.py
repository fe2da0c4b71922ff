"""The class of every `thl` command: its help in sections, examples, and the earlier forms of its options.

Earlier forms (Tungsten's single-dash options, and names that options had once) are rewritten to today's before click
reads the command line. So each option is declared once, and help and shell completion show today's name alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import click

OPTIONS: Final = "Options"
COMMON: Final = "Common options"


@dataclass(frozen=True, slots=True)
class ByValue:
    """An earlier form whose meaning depends on its value.

    Args:
        shown: today's form, for the reference.
        rewrite: makes today's words of the value.
    """

    shown: str
    rewrite: Callable[[str], tuple[str, str]]


# Today's name of an option that has one name more; today's words (`--format json`) of a flag; or a rewrite by value.
Form = str | ByValue
NEW_LAYOUT: Final = ByValue("--format tungsten", lambda name: ("--format", {"thl": "tungsten"}.get(name, name)))
JSON: Final[Mapping[str, Form]] = {"--json": "--format json"}


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Option(click.Option):
    """An option under a heading of its command's help.

    Args:
        section: the heading.
        attributes: click's.
    """

    def __init__(self, *names: Any, section: str = OPTIONS, **attributes: Any) -> None:
        super().__init__(*names, **attributes)
        self.section = section
        # The next word is always its value; but an optional value is never an option's name.
        self.takes_next = not (self.is_flag or self.count or "flag_value" in attributes)


def option(*names: str, section: str = OPTIONS, **attributes: Any) -> Decorator:
    """An option under a heading, as a decorator."""
    return click.option(*names, cls=Option, section=section, **attributes)


class Command(click.Command):
    """A command of `thl`.

    Args:
        examples: command lines, with what each does.
        earlier: earlier forms of options.
        attributes: click's.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: Mapping[str, str] | None = None,
        earlier: Mapping[str, Form] | None = None,
        **attributes: Any,
    ) -> None:
        super().__init__(*arguments, **attributes)
        self.examples = examples or {}
        self.earlier = earlier or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse today's options and their earlier forms."""
        try:
            words = self._rewritten(ctx, args)
        except click.UsageError:
            if not ctx.resilient_parsing:
                raise
            words = args  # the shell asks for completions of a line that is not finished
        return super().parse_args(ctx, words)

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """`-h` and `--help`, of a command or a group: click keeps the option that it makes for the first context."""
        return ["-h", "--help"]

    def sections(self, ctx: click.Context) -> dict[str, list[click.Parameter]]:
        """The options by heading, in the order of their declaration; those that every command has come last."""
        found: dict[str, list[click.Parameter]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and not parameter.hidden:
                section = parameter.section if isinstance(parameter, Option) else COMMON
                found.setdefault(section, []).append(parameter)
        return dict(sorted(found.items(), key=lambda item: item[0] == COMMON))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        for section, parameters in self.sections(ctx).items():
            records = [record for one in parameters if (record := one.get_help_record(ctx))]
            with formatter.section(section):
                formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write_dl(list(self.examples.items()))
        super().format_epilog(ctx, formatter)

    def _rewritten(self, ctx: click.Context, arguments: list[str]) -> list[str]:
        """Today's form of a command line.

        Raises:
            UsageError: an option is given by its earlier and by today's name: which of them counts is not guessed.
        """
        options = {
            name: parameter
            for parameter in self.get_params(ctx)
            if isinstance(parameter, Option)
            for name in (*parameter.opts, *parameter.secondary_opts)
        }
        words, found = deque(arguments), list[str]()
        given: dict[str, str] = {}  # by today's name
        while words:
            word = words.popleft()
            if word == "--":
                return [*found, word, *words]
            name, equals, value = word.partition("=")
            form, today, fixed = self.earlier.get(name), name, list[str]()
            earlier = name  # as it was given, for messages
            if isinstance(form, str):
                today, *fixed = form.split()
            elif form is not None:
                if not equals and not words:
                    raise click.BadOptionUsage(name, f"Option {name!r} requires an argument.", ctx)
                value = value if equals else words.popleft()
                today, rewritten = form.rewrite(value)
                fixed, equals = [rewritten], ""
                earlier = name if today != name or rewritten == value else f"{name} {value}"
            if fixed and equals:
                raise click.BadOptionUsage(name, f"Option {name!r} does not take a value.", ctx)
            found += [today + equals + value if equals else today, *fixed]
            parameter = options.get(today)
            if parameter is None:
                continue
            if not equals and not fixed and words and parameter.takes_next:
                found.append(words.popleft())
            if earlier != today:
                whole = " " in earlier or isinstance(form, str)
                _announce(ctx, earlier, " ".join((today, *fixed)) if whole else today)
            if given.setdefault(today, name) != name and not parameter.multiple:
                raise click.UsageError(f"{given[today]} and {name} are the same option: give one of them", ctx)
        return found


def command(name: str | None = None, **attributes: Any) -> Callable[[Callable[..., Any]], Command]:
    """A command of `thl`, as a decorator."""
    return click.command(name, cls=Command, **attributes)


def _announce(ctx: click.Context, earlier: str, today: str) -> None:
    """Name today's option where another is on its way out: neither Tungsten's single dashes nor `--json` are."""
    if earlier.startswith("--") and earlier not in JSON and not ctx.resilient_parsing:
        click.echo(f"thl: {earlier} is now {today}", err=True)
