"""docs/commands.md and docs/command-line.md equal the code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from connector import cli, errors
from connector.commands import demo, status, verify
from connector.commands.grammar.command import Command, command
from tests.unit.commands.test_earlier_forms import COMMANDS, parsed

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "command-line.md").read_text()


def test_commands_page_equals_the_generated_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--reference"]) == 0
    assert (DOCS / "commands.md").read_text() == capsys.readouterr().out, "thl --reference > docs/commands.md"


def test_exit_code_table_equals_the_codes() -> None:
    """By code: the errors that end with it, and whether trying again can help."""
    written = {}
    row = re.compile(r"\| (\d+) \|[^|]*\| (?:(yes|no) )?\| (?:((?:`\w+`(?:, )?)+) )?\|")
    for line in PAGE.splitlines():
        if found := row.fullmatch(line):
            code, retry, names = found.groups()
            written[int(code)] = (retry, set(re.findall(r"\w+", names or "")))
    named = (kind for kind in vars(errors).values() if isinstance(kind, type))
    kinds = [kind for kind in named if issubclass(kind, errors.ConnectorError)]
    ours = {kind.exit_code: {one for one in kinds if one.exit_code == kind.exit_code} for kind in kinds}
    for code, found in ours.items():
        retry, names = written[code]
        assert names == {kind.__name__ for kind in found}, code
        assert {kind.retry for kind in found} == {retry == "yes"}, code
    assert set(errors.EXIT_CODES) == set(written)
    for code, meaning in errors.EXIT_CODES.items():
        assert f"\n| {code} | {meaning} |" in PAGE
    others = {0, cli.USAGE, cli.DEFECT, cli.INTERRUPTED, status.UNWELL, demo.DIFFERENT, *verify.EXIT_CODES.values()}
    assert set(written) == set(ours) | others


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_of_the_help_is_a_command_line(name: str) -> None:
    command, _ = COMMANDS[name]
    assert isinstance(command, Command)
    for line in command.examples:
        thl, _, rest = line.partition(" > ")[0].partition(" ")
        assert thl == "thl"
        assert rest.startswith(name)
        parsed(rest)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_neither_earlier_forms_nor_options_without_a_text(name: str) -> None:
    command, context = COMMANDS[name]
    assert isinstance(command, Command)
    shown = {one for section in command.sections(context).values() for one in section}
    for one in shown:
        assert isinstance(one, click.Option)
        assert one.help, one.opts
        assert all(word.startswith("--") for word in one.opts if word != "-h")
    page = command.get_help(context)
    for form in set(command.earlier) - {"--format"}:
        assert not re.search(rf"^  {form}(?![\w-])", page, re.MULTILINE), form


def test_help_has_both_names_also_where_a_command_is_run_without_thl() -> None:
    @command()
    def alone() -> None:
        """Do nothing."""

    option = alone.get_help_option(click.Context(alone))
    assert option is not None
    assert set(option.opts) == {"-h", "--help"}


@pytest.mark.parametrize(
    ("line", "found"),
    [("thl ap", {"apply"}), ("thl list --to-", {"--to-seqno", "--to-time"}), ("thl wait --a", set())],
)
def test_a_shell_completes_commands_and_todays_options(line: str, found: set[str]) -> None:
    script = "import sys; from connector.cli import main; sys.argv[0] = 'thl'; main()"
    environment = {"_THL_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, cwd=DOCS.parent
    )
    assert {word.partition(",")[2] for word in done.stdout.split()} == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_line_prints_a_completion_script(shell: str) -> None:
    assert f"_THL_COMPLETE={shell}_source thl" in PAGE
