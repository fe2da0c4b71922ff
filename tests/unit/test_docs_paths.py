"""The documents name what exists: files, links, modules, make targets, configuration fields and command lines."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click
import pytest
import yaml

from connector import cli
from connector.commands.grammar.command import Command
from connector.config.loading import find_field, load
from tests.unit.commands.test_earlier_forms import COMMANDS, GROUPS, parsed

ROOT: Final = Path(__file__).parents[2]
TOP: Final = [ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")]
DOCUMENTS: Final = sorted([*TOP, *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/README.md")])
INSIDE: Final = [ROOT / "ARCHITECTURE.md", *sorted(ROOT.glob("docs/internals/[a-z]*.md"))]
GENERATED: Final = {"commands.md", "configuration.md", "command-line.md"}
WRITTEN: Final = [page for page in DOCUMENTS if page.name not in GENERATED]

ROOMS: Final = sorted(folder.name for folder in (ROOT / "connector").iterdir() if (folder / "__init__.py").is_file())
SECTIONS: Final = ("source", "kafka", "registry", "publish", "target", "apply", "metrics", "serve")
NO_FIELDS: Final = {"source.filters", "source.file", "source.pos"}  # a section; fields of Debezium's envelope
ANYTHING: Final = {
    "service": "shop",
    "source": {"host": "127.0.0.1", "user": "thl", "password": "secret", "server_id": 7411},
    "kafka": {"bootstrap": "127.0.0.1:9092"},
    "target": {"url": "sqlite:///shop.db"},
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


pages = pytest.mark.parametrize("page", DOCUMENTS, ids=name_of)


def spans(page: Path) -> list[str]:
    """The texts between backticks outside of code blocks."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", text)]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def exists(path: str, page: Path) -> bool:
    return any(any(base.glob(path.rstrip("/"))) for base in (ROOT, ROOT / "connector", page.parent))


@pages
def test_every_path_in_backticks_exists(page: Path) -> None:
    first = "|".join([*ROOMS, "connector", "tests", "docs", "docker", "spark_apps", "schemas", "tools"])
    path = re.compile(
        rf"[\w.-]+(?:/[\w.*-]+)+\.(?:py|pyx|pxd|h|md|toml|ya?ml|avsc|java|go)|(?:{first})(?:/[\w.*-]+)+/?"
    )
    assert [span for span in spans(page) if path.fullmatch(span) and not exists(span, page)] == []


@pytest.mark.parametrize("page", INSIDE, ids=name_of)
def test_every_module_path_of_the_architecture_exists(page: Path) -> None:
    """In diagrams, too."""
    named = re.findall(rf"(?<![\w./-])((?:{'|'.join(ROOMS)})(?:/\w+)+(?:\.\w+)?)", page.read_text(encoding="utf-8"))
    assert named
    assert [path for path in named if not exists(path, page) and not exists(f"{path}.py*", page)] == []


@pages
def test_every_module_and_make_target_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    modules = re.findall(r"python -m (tests[\w.]*\w)", text)
    files = [ROOT / module.replace(".", "/") for module in modules]
    assert [
        file for file in files if not file.with_suffix(".py").is_file() and not (file / "__main__.py").is_file()
    ] == []
    targets = re.findall(r"`make ([a-z-]+)", text) + re.findall(r"^make ([a-z-]+)", text, re.MULTILINE)
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


@pages
def test_every_relative_link_resolves(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        file = (page.parent / path) if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(link)
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_architecture_has_at_most_2500_words() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split()) <= 2500


@pages
def test_every_configuration_field_exists(page: Path) -> None:
    field = re.compile(rf"((?:{'|'.join(SECTIONS)})(?:\.[a-z_]+)+)(?:: .*)?")
    named = {found[1] for span in spans(page) if (found := field.fullmatch(span)) and not found[1].endswith(".py")}
    assert [name for name in sorted(named - NO_FIELDS) if find_field(tuple(name.split("."))) is None] == []


def yaml_blocks() -> Iterator[Any]:
    for page in DOCUMENTS:
        for number, text in enumerate(blocks(page, "yaml")):
            yield pytest.param(text, id=f"{name_of(page)}-{number}")


@pytest.mark.parametrize("text", list(yaml_blocks()))
def test_every_yaml_block_loads_as_configuration(text: str, tmp_path: Path) -> None:
    for name in re.findall(r"/etc/thl/([\w.]+)", text):
        (tmp_path / name).write_text("a secret of some length")
    given = yaml.safe_load(text.replace("/etc/thl", str(tmp_path)))
    whole = ANYTHING | {name: merged(ANYTHING.get(name), value) for name, value in given.items()}
    if "password_file" in whole["source"]:
        del whole["source"]["password"]
    file = tmp_path / "thl.yaml"
    file.write_text(yaml.safe_dump(whole))
    assert load(file, environ={}).service == "shop"


def merged(before: object, after: object) -> object:
    return before | after if isinstance(before, dict) and isinstance(after, dict) else after


def command_lines() -> Iterator[Any]:
    for page in WRITTEN:
        name = name_of(page)
        found = [re.sub(r"[…()]", "", span) for span in spans(page) if re.match(r"thl [a-z]", span)]
        written = page.read_text(encoding="utf-8").replace("\\\n", " ")
        found += [line.partition(" #")[0] for line in re.findall(r"^(thl [a-z].*)$", in_blocks(written), re.MULTILINE)]
        for line in sorted(set(found)):
            yield pytest.param(line.partition(" > ")[0].partition(" ")[2], id=f"{name}: {line}")


def in_blocks(text: str) -> str:
    return "\n".join(re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("line", list(command_lines()))
def test_every_command_line_is_read(line: str) -> None:
    """With today's options; a text may leave out the values that a command needs."""
    words = line.split()
    if words[0] in GROUPS and len(words) == 1:
        assert words[0] in cli.COMMANDS
        return
    with contextlib.suppress(click.MissingParameter, click.BadOptionUsage):  # a value is left out
        parsed(re.sub(r"\bN\b", "3", line))
    command, _ = COMMANDS[" ".join(words[: 2 if words[0] in GROUPS else 1])]
    assert isinstance(command, Command)
    today = {word for option in command.params for word in option.opts}
    assert [word for word in words if word.startswith("-") and word.partition("=")[0] not in today] == []
