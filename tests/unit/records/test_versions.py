"""The versions of a record store, against a list of plain dicts."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.errors import ConfigError, RecordsDamaged
from connector.log.ids import NO_SEQNO, Epoch, LogId, Seqno
from connector.records import versions as module
from connector.records.database import Database, remove, reserved
from connector.records.stored import content_of, definition_of, make_version, seqno_of
from connector.records.versions import StoreState, Versions

LOG = LogId("a" * 32)
KEYS = [b"r" + bytes([number]) for number in range(6)]


def opened(folder: Path, horizon: int = 1_000_000, cache_bytes: int = 1 << 20) -> Versions:
    return Versions(Database(folder, cache_bytes=1 << 20), LOG, horizon=horizon, cache_bytes=cache_bytes)


def version(seqno: int, text: bytes) -> bytes:
    return make_version(seqno, 0, text)


def write(store: Versions, seqno: int, changes: dict[bytes, bytes | None], epoch: int = 1) -> None:
    store.fetch(changes)
    for key, text in changes.items():
        store.put(key, None if text is None else version(seqno, text))
    store.finish(Seqno(seqno), Epoch(epoch))


def content(store: Versions) -> dict[bytes, bytes]:
    return {key: found[12:] for key in KEYS if (found := store.newest(key)) is not None}


CHANGES = st.dictionaries(st.sampled_from(KEYS), st.none() | st.binary(min_size=1, max_size=8), max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("event"), CHANGES),
        st.tuples(st.just("large"), CHANGES, CHANGES),  # written before its end
        st.tuples(st.just("abandoned"), CHANGES),
        st.tuples(st.just("back"), st.integers(0, 5)),
        st.tuples(st.just("flush")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("crash")),
    ),
    max_size=25,
)


@given(steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_random_events_have_the_versions_that_a_list_of_dicts_has(
    steps: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("store")
    store = opened(folder)
    model: list[dict[bytes, bytes]] = [{}]  # after event n - 1; a crash may lose the newest, never one between
    for step in steps:
        seqno = len(model) - 1
        match step:
            case ("event", dict(changes)):
                write(store, seqno, changes)
                model.append(changed(model[-1], changes))
            case ("large", dict(first), dict(second)):
                store.fetch({**first, **second})
                for key, text in first.items():
                    store.put(key, None if text is None else version(seqno, text))
                store.grew(module.SPILL_BYTES, Seqno(seqno))
                write(store, seqno, second)
                model.append(changed(changed(model[-1], first), second))
            case ("abandoned", dict(changes)):
                store.fetch(changes)
                for key, text in changes.items():
                    store.put(key, None if text is None else version(seqno, text))
                store.grew(module.SPILL_BYTES, Seqno(seqno))
                store.go_back(Seqno(seqno - 1))
            case ("back", int(count)):
                back = max(0, len(model) - 1 - count)
                store.go_back(Seqno(back - 1))
                del model[back + 1 :]
            case ("flush",):
                store.flush()
            case ("reopen",):
                store.close()
                store = opened(folder)
            case ("crash",):
                store._database.close()  # what was only in memory is lost
                store = opened(folder)
                del model[store.state.seqno + 2 :]
        assert store.state.seqno == len(model) - 2
        assert content(store) == model[-1]
    for after in reversed(range(len(model))):
        store.go_back(Seqno(after - 1))
        assert content(store) == model[after]
    store.close()


def changed(before: dict[bytes, bytes], changes: dict[bytes, bytes | None]) -> dict[bytes, bytes]:
    return {key: text for key, text in {**before, **changes}.items() if text is not None}


def test_versions_below_the_horizon_are_dropped_and_a_store_cannot_go_back_there(tmp_path: Path) -> None:
    store = opened(tmp_path / "s", horizon=5)
    for seqno in range(module.PRUNE_EVENTS + 20):
        write(store, seqno, {KEYS[0]: b"%d" % seqno})
    store.flush()
    last = module.PRUNE_EVENTS + 19
    assert store.state.oldest == last - 5
    assert sum(1 for _ in store._database.items(b"h", b"i")) == 6
    store.go_back(Seqno(last - 6))
    assert content(store) == {KEYS[0]: b"%d" % (last - 6)}
    with pytest.raises(RecordsDamaged, match="beyond its horizon"):
        store.go_back(Seqno(last - 7))
    store.close()


def test_a_flipped_byte_is_noticed_when_it_is_read(tmp_path: Path) -> None:
    folder, noise = tmp_path / "s", Random(1)
    store = opened(folder, cache_bytes=1)
    for seqno in range(2000):
        write(store, seqno, {b"r%06d" % seqno: noise.randbytes(300)})  # what cannot be compressed has a sum alone
    store.close()
    database = Database(folder, cache_bytes=1 << 20)
    database._db.flush()
    database.close()
    largest = max(folder.glob("*.sst"), key=lambda path: path.stat().st_size)
    damaged = bytearray(largest.read_bytes())
    damaged[len(damaged) // 3] ^= 0x10
    largest.write_bytes(damaged)
    store = opened(folder)
    with pytest.raises(RecordsDamaged, match="damaged") as caught:
        store.verify()
    assert "thl records rebuild" in caught.value.hint
    store.close()


def test_the_state_of_another_format_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordsDamaged, match="format of another version"):
        StoreState.from_json(b'{"format": 9}')
    with pytest.raises(RecordsDamaged, match="format of another version"):
        StoreState.from_json(b'{"format": 1}')
    with pytest.raises(RecordsDamaged, match="cannot be read"):
        StoreState.from_json(b"[]")


def test_the_state_knows_which_epoch_wrote_an_event() -> None:
    state = StoreState(LOG).after(Seqno(0), Epoch(1)).after(Seqno(1), Epoch(1)).after(Seqno(2), Epoch(4))
    assert [state.epoch_of(Seqno(seqno)) for seqno in (0, 1, 2, 3)] == [1, 1, 4, 4]
    assert state.back_to(Seqno(1)).epochs == ((0, 1),)
    assert state.back_to(Seqno(2)).epochs == ((0, 1), (2, 4))
    assert StoreState.from_json(state.to_json()) == state
    assert StoreState(LOG).epoch_of(NO_SEQNO) == 0


def test_only_this_user_can_read_the_files(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    write(store, 0, {KEYS[0]: b"secret"})
    store._database._db.flush()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "s").iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o700
    store.close()


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    with pytest.raises(ConfigError, match="another process has the record store open") as refused:
        opened(tmp_path / "s")
    assert "another service: each needs a folder of its own" in refused.value.hint
    store.close()


def test_an_open_store_is_found_without_opening_it(tmp_path: Path) -> None:
    program = "import sys, pathlib, connector.records.database as d\nwith d.reserved(pathlib.Path(sys.argv[1])): pass"

    def said() -> str:
        return subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "s")], capture_output=True, text=True, check=False
        ).stderr

    assert said() == ""
    store = opened(tmp_path / "s")
    assert "another process has the record store open" in said()
    store.close()
    assert said() == ""
    with reserved(tmp_path / "s"):
        assert "another process has the record store open" in said()
        store = opened(tmp_path / "s")
        assert "another process has the record store open" in said()
        store.close()
    assert said() == ""


def test_a_folder_with_something_else_is_not_removed(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    store.close()
    (tmp_path / "s" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="something else"):
        remove(tmp_path / "s")
    (tmp_path / "s" / "mine.txt").unlink()
    remove(tmp_path / "s")
    assert list((tmp_path / "s").iterdir()) == []


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**32 - 1), st.binary())
def test_a_version_has_its_event_its_definition_and_its_content(seqno: int, definition: int, content: bytes) -> None:
    made = make_version(seqno, definition, content)
    assert made == seqno.to_bytes(8, "big") + definition.to_bytes(4, "big") + content  # as earlier versions wrote it
    assert (seqno_of(made), definition_of(made), content_of(made)) == (seqno, definition, content)


def test_bytes_without_a_header_are_no_version() -> None:
    for read in (seqno_of, definition_of):
        with pytest.raises(ValueError, match="header"):
            read(bytes(11))


def test_rows_that_have_ended_are_deleted_below_the_horizon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRUNE_EVENTS", 1)
    ended, kept = b"r\x00\xff", b"r\x01\x00"  # one after the other
    store = opened(tmp_path / "s", horizon=3)
    write(store, 0, {ended + b"\xff\xff": b"old", kept: b"new"})
    store.end(ended, Seqno(1))
    write(store, 1, {})
    store.go_back(Seqno(0))  # nothing has ended
    write(store, 1, {})
    store.end(ended, Seqno(2))
    for seqno in range(2, 6):
        write(store, seqno, {KEYS[0]: b"%d" % seqno})
        store.flush()
        assert list(store.rows(ended)), seqno  # the store may go back to before
    write(store, 6, {KEYS[0]: b"6"})
    store.flush()
    assert not list(store.rows(ended))
    assert [key for key, _ in store.rows(kept)] == [kept]
    assert not list(store.rows(module.ENDED))
    store.close()


def written(store: Versions) -> int:
    """The last event that the database has."""
    found = store._database.get(module.STATE)
    return NO_SEQNO if found is None else StoreState.from_json(found).seqno


def test_events_are_written_once_they_are_large_and_a_large_event_before_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FLUSH_BYTES", 100)
    store = opened(tmp_path / "s")
    write(store, 0, {KEYS[0]: b"x"})
    assert written(store) == NO_SEQNO
    write(store, 1, {KEYS[0]: bytes(200)})
    assert written(store) == 1
    store.put(KEYS[1], version(2, b"open"))
    store.grew(module.SPILL_BYTES - 1, Seqno(2))
    assert store.open
    store.grew(1, Seqno(2))
    assert not store.open
    assert store._database.get(KEYS[1]) == version(2, b"open")
    store.go_back(Seqno(1))
    assert store._database.get(KEYS[1]) is None
    store.close()


def test_going_back_that_is_interrupted_is_finished_when_the_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 1)
    store = opened(tmp_path / "s")
    for seqno in range(6):
        write(store, seqno, {KEYS[seqno]: b"%d" % seqno, KEYS[0]: b"%d" % seqno})
    store.flush()
    write_all, left = store._database.write, 3

    def dies(*given: object, **options: object) -> None:
        nonlocal left
        if left == 0:
            raise KeyboardInterrupt
        left -= 1
        write_all(*given, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(store._database, "write", dies)
    with pytest.raises(KeyboardInterrupt):
        store.go_back(Seqno(0))
    monkeypatch.undo()
    store._database.close()
    store = opened(tmp_path / "s")
    assert store.state.seqno == 0
    assert content(store) == {KEYS[0]: b"0"}
    store.close()


def test_a_store_that_begins_within_a_log_cannot_go_back_before_it(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    store.begin_at(Seqno(5), Epoch(2))
    write(store, 5, {KEYS[0]: b"5"}, epoch=2)
    store.go_back(Seqno(4))
    assert content(store) == {}
    with pytest.raises(RecordsDamaged, match="beyond its horizon"):
        store.go_back(Seqno(3))
    store.close()


def test_a_store_is_safe_from_a_power_failure_when_it_is_closed(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    database, writes = store._database, []
    options = database._write_options

    def noted() -> object:
        writes.append(options())
        return writes[-1]

    database._write_options = noted
    write(store, 0, {KEYS[0]: b"x"})
    store.flush()
    store.close()
    assert [one.sync for one in writes] == [False, True]


def test_what_an_event_replaces_is_kept_when_rows_are_listed_within_it(tmp_path: Path) -> None:
    """As at the end of a load, which deletes the rows that it has not brought."""
    store = opened(tmp_path / "s", cache_bytes=1)
    write(store, 0, {KEYS[0]: b"old"})
    store.flush()
    store.fetch((KEYS[0],))
    store.put(KEYS[0], version(1, b"new"))
    assert [found[12:] for _, found in store.rows(b"r")] == [b"old"]
    store.finish(Seqno(1), Epoch(1))
    assert content(store) == {KEYS[0]: b"new"}
    store.go_back(Seqno(0))
    assert content(store) == {KEYS[0]: b"old"}
    store.close()


def test_new_rows_count_as_memory_and_are_forgotten_once_they_are_written(tmp_path: Path) -> None:
    store = opened(tmp_path / "s", cache_bytes=1000)
    write(store, 0, {KEYS[0]: bytes(900)})
    store.flush()
    assert store.known
    write(store, 1, {KEYS[1]: bytes(100)})
    store.flush()
    assert (store.known, store.forgot) == ({}, 1)
    assert content(store) == {KEYS[0]: bytes(900), KEYS[1]: bytes(100)}
    store.close()


def test_a_store_that_is_discarded_may_be_closed_and_discarded_again(tmp_path: Path) -> None:
    store = opened(tmp_path / "s")
    write(store, 0, {KEYS[0]: b"x"})
    store.discard()
    store.close()
    store.discard()
    assert not (tmp_path / "s" / "CURRENT").exists()


@pytest.mark.parametrize("dies_at", range(4))
def test_dropping_versions_that_is_interrupted_lets_the_store_go_back_no_further_than_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_at: int
) -> None:
    monkeypatch.setattr(module, "PRUNE_EVENTS", 1)
    ended = b"r\x00\xff"
    store = opened(tmp_path / "s")
    for seqno in range(9):
        write(store, seqno, {KEYS[0]: b"%d" % seqno})
    write(store, 9, {ended + b"\xff": b"old"})
    store.end(ended, Seqno(10))
    for seqno in range(10, 20):
        write(store, seqno, {KEYS[0]: b"%d" % seqno})
    store.flush()
    store._horizon = 5
    left = dies_at
    for name in ("delete_range", "write"):
        do = getattr(store._database, name)

        def dies(*given: object, do: Callable[..., None] = do, **options: object) -> None:
            nonlocal left
            if left == 0:
                raise KeyboardInterrupt
            left -= 1
            do(*given, **options)

        monkeypatch.setattr(store._database, name, dies)
    with pytest.raises(KeyboardInterrupt):
        store.flush()
    monkeypatch.undo()
    store._database.close()
    store = opened(tmp_path / "s")
    oldest = store.state.oldest
    assert oldest == (0 if dies_at < 2 else 14)
    with monkeypatch.context() as patched:
        patched.setattr(module, "PRUNE_EVENTS", 1)
        store._horizon = 5
        write(store, 20, {KEYS[0]: b"20"})
        store.flush()
    assert not list(store.rows(ended))  # it is finished with the next one
    store.go_back(Seqno(store.state.oldest - 1))
    assert content(store) == {KEYS[0]: b"%d" % store.state.seqno}
    with pytest.raises(RecordsDamaged, match="beyond its horizon"):
        store.go_back(Seqno(store.state.oldest - 2))
    store.close()
