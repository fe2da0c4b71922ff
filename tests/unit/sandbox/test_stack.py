"""A stack of which a server does not start, or that `up` has not made: what stays running, recorded and on the disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from connector.commands.sandbox import sandbox
from connector.errors import SandboxError
from connector.sandbox import state
from connector.sandbox.program import Program
from connector.sandbox.server import Server
from connector.sandbox.stack import Stack


class Sleeps(Server):
    """A program that listens nowhere.

    Args:
        folder: of its log.
        ready: whether it counts as ready; an error: somebody ends the command meanwhile.
    """

    name = "sleeps"
    start_timeout = 0.2

    def __init__(self, folder: Path, *, ready: bool | type[BaseException]) -> None:
        super().__init__(folder, 1)
        self.program = Program(self.name, ["sleep", "600"], log=folder / "log", die_with_parent=True)
        self._ready = ready

    def answers(self) -> bool:
        if isinstance(self._ready, bool):
            return self._ready
        raise self._ready


@pytest.mark.parametrize(("ready", "raised"), [(False, SandboxError), (KeyboardInterrupt, KeyboardInterrupt)])
def test_of_servers_one_of_which_does_not_start_the_others_run_and_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ready: bool | type[BaseException], raised: type[BaseException]
) -> None:
    made: list[Server] = []

    def make(stack: Stack, name: str, port: int | None) -> tuple[Server, str]:
        made.append(Sleeps(stack.folder / name, ready=name == "mysql" or ready))
        return made[-1], f"{name} is at {port}"

    monkeypatch.setattr(Stack, "_make", make)
    stack = Stack(tmp_path)
    try:
        with pytest.raises(raised):
            stack.up()
        mysql, kafka = made
        assert mysql.program.running
        assert not kafka.program.running
        assert [(server.name, server.address) for server in state.load(tmp_path)] == [("mysql", "mysql is at None")]
    finally:
        stack.down()
        for server in made:
            server.kill()


def test_down_deletes_no_folder_that_has_no_servers(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("of somebody else")
    done = CliRunner().invoke(sandbox, ["down", "--delete", "--folder", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "mine").read_text() == "of somebody else"


@pytest.mark.parametrize("text", ["", "{}", '{"servers": [7]}', '{"servers": [{"name": "kafka"}]}', "[" * 3, "\udcff"])
def test_a_damaged_record_of_servers_is_one_clear_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "stack.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(SandboxError, match="record of the sandbox's servers is damaged") as raised:
        state.load(tmp_path)
    assert raised.value.where["file"] == str(tmp_path / "stack.json")
    assert "delete the file" in raised.value.hint
