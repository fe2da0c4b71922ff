"""Earlier names of options, and Tungsten's single-dash forms, mean the same as the current ones."""

from __future__ import annotations

import shlex
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete

from connector import cli
from connector.commands.grammar.command import Command
from connector.commands.grammar.reference import commands

# Every option of November 2026, but --config, --set and --log-format.
HAD = {
    "produce": "--from --accept-trapped --accept-partial",
    "apply": "--until-seqno --until-event --until-gtid --until-time --until-heartbeat --from-seqno --from-event "
    "--skip-seqno --done-seqno --without --because --submitted",
    "undo": "--to-seqno",
    "purge": "-low -high -y",
    "offline": "--producer --because --wait",
    "status": "--max-behind --min-purge --json",
    "wait": "-applied --applied --heartbeat --since -limit --timeout",
    "heartbeat": "--wait --timeout",
    "binlog": "--format --from-position --to-position --from-gtid --to-gtid --from-time --to-time --do --ignore "
    "--keep-invalid-text --rows-query --largest-event --stop-after --salvage",
    "archive": "--until-now --server-id --verify",
    "list": "--format -headers --headers -sql --sql -sizes --sizes -specs --specs -timezone --timezone -seqno --seqno "
    "-low --low -high --high -from --from -to --to -first --first -last --last -event --event -gtid --gtid --voided",
    "tail": "--format -headers --headers -sql --sql -sizes --sizes -specs --specs -timezone --timezone -last --last "
    "--until-seqno --voided",
    "info": "--json",
    "index": "--every --json",
    "trapped": "--json",
    "verify": "--table --without --patience --every --json",
    "acls": "--producer --consumer --operator --create",
    "config": "--reference",
    "sandbox up": "--folder --with",
    "sandbox down": "--folder --delete",
    "sandbox status": "--folder --json",
    "demo": "--folder --seconds --rows",
}
GTID = "cb11a404-e581-11f1-bd7c-02fc00000001:7"
# What was written, and what is written now.
SAME = [
    ("apply --until-seqno 3", "apply --to-seqno 3"),
    ("apply --until-event b.1:4", "apply --to-event b.1:4"),
    (f"apply --until-gtid {GTID}", f"apply --to-gtid {GTID}"),
    ("apply --until-time 2026-11-21", "apply --to-time 2026-11-21"),
    ("apply --until-heartbeat x", "apply --to-heartbeat x"),
    ("apply --without a.b --without=a.c --because why", "apply --exclude-table a.b --exclude-table a.c --reason why"),
    ("offline --because why --wait 3", "offline --reason why --timeout 3"),
    ("offline --producer --wait=3", "offline --producer --timeout=3"),
    ("status --json", "status --format json"),
    ("wait -applied 40 -limit 3", "wait --to-seqno 40 --timeout 3"),
    (f"wait --applied {GTID}", f"wait --to-gtid {GTID}"),
    ("wait --applied=40", "wait --to-seqno=40"),
    ("sandbox up --with postgres", "sandbox up --target postgres"),
    ("apply --from-relay /r", "apply --relay /r"),
    ("list --file /r --last", "list --relay /r --last"),
    ("index --file=/r", "index --relay=/r"),
    ("purge --file /r -low 5", "purge --relay /r --from-seqno 5"),
    ("wait --heartbeat x --since 2026-11-21", "wait --to-heartbeat x --from-time 2026-11-21"),
    ("binlog --format thl f", "binlog --format tungsten f"),
    ("binlog --format=thl f", "binlog --format tungsten f"),
    ("archive --until-now f", "archive --to-now f"),
    ("purge -low 3 -high 9 -y", "purge --from-seqno 3 --to-seqno 9 --yes"),
    ("list -seqno 3", "list --seqno 3"),
    ("list -low 3 -high 5", "list --from-seqno 3 --to-seqno 5"),
    ("list --low 3 --high=5", "list --from-seqno 3 --to-seqno 5"),
    ("list -from 3 -to 2026-11-21T06:00", "list --from-seqno 3 --to-time 2026-11-21T06:00"),
    ("list --from 2026-11-21 --to 5", "list --from-time 2026-11-21 --to-seqno 5"),
    ("list -first", "list --first"),
    ("list -first 2", "list --first 2"),
    ("list -last 2 --voided", "list --last 2 --voided"),
    ("list -event b.1:4", "list --event b.1:4"),
    (f"list -gtid {GTID}", f"list --gtid {GTID}"),
    ("list --format thl -headers", "list --format tungsten --headers"),
    ("list -sql", "list --format sql"),
    ("list --sql", "list --format sql"),
    ("list -json -headers", "list --format json --headers"),
    ("list --json", "list --format json"),
    ("list -charset latin1 -hex", "list --charset latin1 --hex"),
    ("list -no-checksum -by 7", "list --no-checksum --by 7"),
    ("list -sizes -timezone Asia/Kolkata", "list --sizes --timezone Asia/Kolkata"),
    ("list -specs", "list --specs"),
    ("tail --format thl -headers", "tail --format tungsten --headers"),
    ("tail -sql -last 3 --until-seqno 4", "tail --format sql --last 3 --to-seqno 4"),
    ("tail --sql", "tail --format sql"),
    ("tail -json", "tail --format json"),
    ("tail --json", "tail --format json"),
    ("tail -charset UTF-8 -hex", "tail --charset UTF-8 --hex"),
    ("tail -sizes -timezone UTC", "tail --sizes --timezone UTC"),
    ("tail -specs", "tail --specs"),
    ("info --json", "info --format json"),
    ("info -json", "info --format json"),
    ("index -json", "index --format json"),
    ("index --every 7 --json", "index --segment-size 7 --format json"),
    ("trapped --json", "trapped --format json"),
    ("verify --without a.* --patience 3 --json", "verify --ignore a.* --stall-timeout 3 --format json"),
    ("acls --producer User:p --producer User:q", "acls --producer-principal User:p --producer-principal User:q"),
    ("acls --consumer User:c --operator User:o", "acls --consumer-principal User:c --operator-principal User:o"),
    ("sandbox status --json", "sandbox status --format json"),
]


def every_command() -> dict[str, tuple[click.Command, click.Context]]:
    root = click.Context(cli.thl, info_name="thl", **cli.thl.context_settings)
    return {
        inner.command_path.removeprefix("thl "): (command, inner)
        for name in cli.COMMANDS
        for command, inner in commands(root, name)
    }


COMMANDS = every_command()
GROUPS = {"records", "sandbox"}  # commands of several words


def parsed(line: str) -> dict[str, Any]:
    words = shlex.split(line)
    name = " ".join(words[: 2 if words[0] in GROUPS else 1])
    command, context = COMMANDS[name]
    given = words[len(name.split()) :]
    return command.make_context(context.info_name, given, parent=context.parent).params


@pytest.mark.parametrize(("earlier", "today"), SAME)
def test_earlier_form_is_read_as_the_current_one(earlier: str, today: str) -> None:
    nothing = today.partition(" --")[0] + " f" * today.endswith(" f")
    assert parsed(earlier) == parsed(today) != parsed(nothing)


def test_every_earlier_option_is_understood() -> None:
    """Each by its name, or in the list of earlier forms, which has no form too few or too many."""
    shown = {(words[0], word.partition("=")[0]) for line, _ in SAME for words in [line.split()] for word in words}
    for name, had in HAD.items():
        command, _ = COMMANDS[name]
        here = {word for option in command.params for word in option.opts}
        earlier = set(command.earlier) if isinstance(command, Command) else set()
        assert set(had.split()) <= here | earlier, name
        assert not earlier & here - {"--format"}, name
        assert {(name.split()[0], form) for form in earlier} <= shown, name


def test_a_value_that_looks_like_an_earlier_form_stays_a_value() -> None:
    assert parsed("apply --reason --because")["reason"] == "--because"
    assert parsed("apply --because --without")["reason"] == "--without"
    assert parsed("binlog -- --format thl")["files"] == ("--format", "thl")


@pytest.mark.parametrize(
    "line",
    [
        "apply --until-seqno 3 --to-seqno 4",
        "list -from 3 --from-seqno 4",
        "status --json --format text",
        "wait --applied",
        "status --json=x",
    ],
)
def test_an_option_given_by_two_names_or_without_its_value_is_refused(line: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(line)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("apply --until-seqno 3", "thl: --until-seqno is now --to-seqno\n"),
        ("wait --applied 3", "thl: --applied is now --to-seqno\n"),
        ("list --format thl", "thl: --format thl is now --format tungsten\n"),
        ("list --sql", "thl: --sql is now --format sql\n"),
        ("list -sql", ""),
        ("list -json", ""),
        ("list --format json", ""),
        ("wait -applied 3 -limit 4", ""),
        ("status --json", ""),
    ],
)
def test_renamed_option_warns_and_tungsten_form_does_not(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    parsed(line)
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ("options", "start", "files"),
    [
        (("--start", "now"), "now", ()),
        (("--from", "now"), "now", ()),
        (("--from-files", "a", "--from-files", "b"), None, ("a", "b")),
        (("--from", "tests"), None, ("tests",)),
        (("--from", "tests", "--from", "none"), None, ("tests", "none")),
    ],
)
def test_the_earlier_from_of_produce_is_a_position_or_files(
    options: tuple[str, ...], start: str | None, files: tuple[str, ...]
) -> None:
    from connector.commands.produce import _beginning

    found = parsed(" ".join(("produce", *options)))
    assert _beginning(found["start"], found["from_files"], found["given"]) == (start, files)


@pytest.mark.parametrize(
    "options",
    [
        ("now", ("f",), ()),
        ("now", (), ("earliest",)),
        ("now", (), ("tests",)),
        (None, ("f",), ("tests",)),
        (None, ("f",), ("now",)),
    ],
)
def test_mutually_exclusive_options_are_refused(options: tuple[Any, ...]) -> None:
    from connector.commands.produce import _beginning

    with pytest.raises(click.UsageError):
        _beginning(*options)


@pytest.mark.parametrize("line", ["list --format", "tail --format", "binlog --format", "list --from", "wait --applied"])
def test_an_unfinished_line_is_completed(line: str) -> None:
    words = ShellComplete(cli.thl, {}, "thl", "_THL_COMPLETE").get_completions(line.split(), "")
    assert ("json" in {word.value for word in words}) == line.endswith("format")
