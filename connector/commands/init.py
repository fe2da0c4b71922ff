"""`thl init`: writes a commented configuration from options or questions."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from connector.commands.grammar.command import command, option

SECRET = ("source.password",)
TARGET = "target.url"


@command(
    examples={
        "thl init": "Asks for servers and tables, and writes thl.yaml.",
        "thl init --set source.host=db --set source.password_file=/run/secrets/db": "Asks for the other fields.",
        "thl init shop.yaml --defaults --set service=shop": "Asks nothing.",
    }
)
@click.argument("file", type=click.Path(path_type=Path), default="thl.yaml")
@option(
    "--set",
    "sets",
    multiple=True,
    metavar="SECTION.FIELD=VALUE",
    help="Set one configuration field, which is then not asked for. Repeatable.",
)
@option("--defaults", is_flag=True, help="Ask nothing: fields that are not set get their defaults.")
def init(file: Path, *, sets: tuple[str, ...], defaults: bool) -> None:
    """Write a commented configuration file, from --set and from answers to questions. Never overwrites a file.

    Without a terminal nothing is asked. Only the user may read the file, as it can hold a password.
    """
    from connector.config.starter import check_new, given, starter, todays, write_new
    from connector.logs import set_up_logs

    set_up_logs("text")
    assigned = todays(sets)
    check_new(file)
    answers = [] if defaults or not sys.stdin.isatty() else _answers(assigned)
    write_new(file, starter(given([*assigned, *answers])))
    used = "" if file == Path("thl.yaml") else f" --config {shlex.quote(str(file))}"
    click.echo(f"wrote {file}; next: thl check{used}, thl produce{used}, thl apply{used}")


def _answers(sets: Sequence[str]) -> list[str]:
    """Ask for the main fields that are not set yet."""
    from connector.config.reference import Field, fields
    from connector.config.starter import QUESTIONS

    known = {item.name: item for item in fields() if isinstance(item, Field)}
    have = {text.partition("=")[0].strip() for text in sets}
    answers = []
    for name, question in QUESTIONS.items():
        if name in have or f"{name}_file" in have:
            continue
        default = "" if known[name].default in {"[]", '""'} else known[name].default.strip('"')
        answer = click.prompt(
            question,
            default=default,
            show_default=bool(default),
            hide_input=name in SECRET,
            value_proc=partial(_checked, name),
            err=True,
        )
        if name == TARGET:
            answer = _with_password(answer)
        if answer != default:
            answers.append(f"{name}={answer}")
    return answers


def _with_password(url: str) -> str:
    """Return a target's URL with its user's password, which is asked for where the URL has none, and is not shown."""
    from urllib.parse import quote

    begin, user, rest = url.partition("@")
    if not user or ":" in begin.partition("://")[2]:
        return url
    password = click.prompt("Target: password", default="", show_default=False, hide_input=True, err=True)
    return f"{begin}:{quote(password, safe='')}@{rest}" if password else url


def _checked(name: str, text: str) -> str:
    """Return an answer that the field accepts; else the question is asked again."""
    from connector.config.starter import given
    from connector.errors import ConfigError

    try:
        given([f"{name}={text}"])
    except ConfigError as error:
        raise click.UsageError(error.message) from error
    return text
