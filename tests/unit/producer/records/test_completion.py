"""Partial images are completed from the rows that earlier events left, against a model of plain dicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.errors import Unsupported
from connector.log.epochs.loads import LoadState
from connector.log.ids import Action, Epoch, Kind, Outcome, Seqno
from connector.log.transaction.batch import Rows, Statement, TransactionBatch, TransactionEnd, TransactionStart
from connector.log.transaction.layout import TableLayout, TableName
from connector.log.transaction.position import SourcePosition
from connector.log.transaction.statement_options import TABLE_EXISTED
from connector.producer.encode.encoder import Encoder
from connector.producer.encode.numbering import Limits, Numbering
from connector.producer.records.completion import FLUSH_SECONDS
from connector.records.versions import STATE, StoreState
from tests.unit.producer.records.event_log import CREATE, LAYOUT, NAME, Log, delete, insert, known, rows, update, values


def test_an_insert_gets_the_defaults_of_its_absent_columns(log: Log) -> None:
    (found,) = log.event(insert({0: 1}))
    assert values(found) == [(None, [1, 5, "d"])]
    log.ddl("ALTER TABLE shop.t ALTER COLUMN v SET DEFAULT 'new'")
    (found,) = log.event(insert({0: 2, 1: None}))
    assert values(found) == [(None, [2, None, "new"])]


def test_updates_and_deletes_get_the_columns_of_earlier_events(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    (found,) = log.event(update(({0: 1}, {2: "ONE"}), ({0: 2}, {2: "TWO"})))
    assert values(found) == [([1, 10, "one"], [1, 10, "ONE"]), ([2, 20, "two"], [2, 20, "TWO"])]
    (found,) = log.event(delete({0: 2}))
    assert values(found) == [([2, 20, "TWO"], None)]


def test_rows_of_one_event_see_each_other(log: Log) -> None:
    found = log.event(insert({0: 1}), update(({0: 1}, {1: 6})), update(({0: 1}, {2: "x"})), delete({0: 1}))
    assert [values(one) for one in found] == [
        [(None, [1, 5, "d"])],
        [([1, 5, "d"], [1, 6, "d"]), ([1, 6, "d"], [1, 6, "x"])],  # joined, as whole images are
        [([1, 6, "x"], None)],
    ]


def test_swapped_keys_take_their_columns_along(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}, {0: 2, 1: 20, 2: "two"}))
    (found,) = log.event(update(({0: 1}, {0: -1}), ({0: 2}, {0: 1}), ({0: -1}, {0: 2})))
    assert [after for _, after in values(found)] == [[-1, 10, "one"], [1, 20, "two"], [2, 10, "one"]]
    (found,) = log.event(delete({0: 1}, {0: 2}))
    assert values(found) == [([1, 20, "two"], None), ([2, 10, "one"], None)]


def test_an_after_image_alone_is_completed_by_its_before_image(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")  # as MariaDB's FULL_NODUP: the row need not be known
    (found,) = log.event(update(({0: 1, 1: 10, 2: "one"}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]
    (found,) = log.event(delete({0: 1}))
    assert values(found) == [([1, 11, "one"], None)]
    log.completion.close()


def test_whole_images_are_passed_on_as_they_are_and_known_afterwards(log: Log) -> None:
    given = insert({0: 1, 1: 10, 2: "one"})
    assert log.event(given) == [given]
    (found,) = log.event(update(({0: 1}, {1: 11})))
    assert values(found) == [([1, 10, "one"], [1, 11, "one"])]
    assert found.logged == update(({0: 1}, {1: 11})).data  # by which the source is recognised


def test_a_row_that_is_not_known_stops_with_its_key_and_what_to_do(log: Log) -> None:
    with pytest.raises(Unsupported, match="does not know the row") as caught:
        log.event(update(({0: 7}, {1: 1})))
    assert caught.value.where["table"] == NAME
    assert caught.value.where["key"] == "id=7"
    assert "thl load shop.t" in caught.value.hint
    assert "source.records.partial" in caught.value.hint


def test_a_row_that_is_not_known_stays_partial_where_that_is_allowed(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    found = log.event(update(({0: 1}, {1: 1}), ({0: 7}, {1: 2}), ({0: 1}, {1: 3})))
    assert [(one.count, bool(one.after)) for one in found] == [(1, False), (1, True), (1, False)]
    assert b"".join(one.logged for one in found) == update(({0: 1}, {1: 1}), ({0: 7}, {1: 2}), ({0: 1}, {1: 3})).data
    assert values(found[2]) == [([1, 1, "one"], [1, 3, "one"])]
    log.completion.close()


def test_rows_may_be_missing_once_one_that_stays_partial_has_changed_its_key(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    log.event(update(({0: 7}, {1: 2})))
    assert log.completion.tables.entry(NAME).reason == ""
    log.event(update(({0: 7}, {0: 8})))
    assert "changed the key of a row that was not known" in log.completion.tables.entry(NAME).reason
    log.close()


def test_a_row_whose_after_image_is_whole_is_known_from_then_on(tmp_path: Path) -> None:
    log = Log(tmp_path / "s", ["shop.*"])
    log.ddl(CREATE)
    (found,) = log.event(update(({0: 7}, {0: 8, 1: 1, 2: "x"})))
    assert found.before
    (found,) = log.event(update(({0: 8}, {1: 2})))
    assert values(found) == [([8, 1, "x"], [8, 2, "x"])]
    log.close()


def test_rows_of_two_statements_keep_the_text_of_each(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    log.completion.loads = known(asked="l2", state=LoadState.CANCELLED)  # what is not known stays partial
    changes = []
    for key, query in ((1, "UPDATE one"), (1, "UPDATE one"), (1, "UPDATE two"), (9, "UPDATE three")):
        one = update(({0: key}, {1: 11}))
        changes.append(Rows(LAYOUT, one.action, one.data, one.ends, one.before, one.after, query))
    found = log.event(*changes)
    assert [(one.count, one.query) for one in found] == [(2, "UPDATE one"), (1, "UPDATE two"), (1, "UPDATE three")]


def test_an_insert_without_a_known_default_stops(tmp_path: Path) -> None:
    log = Log(tmp_path / "s")
    with pytest.raises(Unsupported, match="no value for column a, and its default is not known"):
        log.event(insert({0: 1}))
    log.completion.close()


@pytest.mark.parametrize(
    ("existed", "why"),
    [({}, "may have found it"), ({TABLE_EXISTED: "1"}, "the log begins without its rows"), ({TABLE_EXISTED: "0"}, "")],
    ids=["unsure", "existed", "made"],
)
def test_create_if_not_exists_gives_defaults_only_to_a_table_that_it_made(
    tmp_path: Path, existed: dict[str, str], why: str
) -> None:
    log = Log(tmp_path / "s")
    log.ddl(CREATE.replace("TABLE", "TABLE IF NOT EXISTS"), **existed)
    if why:
        with pytest.raises(Unsupported, match="no value for column a, and its default is not known"):
            log.event(insert({0: 1}))
        with pytest.raises(Unsupported, match=f"does not know the row: .*{why}"):
            log.event(update(({0: 1}, {1: 2})))
    else:
        assert values(log.event(insert({0: 1}))[0]) == [(None, [1, 5, "d"])]
    log.completion.close()


def test_a_table_without_a_key_is_completed_by_defaults_and_before_images_or_stops(log: Log) -> None:
    keyless = TableLayout(TableName("shop", "n"), LAYOUT.columns)
    log.ddl(CREATE.replace("shop.t", "shop.n").replace(" PRIMARY KEY", ""))
    given = rows(Action.INSERT, (None, {0: 1, 1: 2, 2: "x"}), layout=keyless)
    assert log.event(given) == [given]
    (found,) = log.event(rows(Action.INSERT, (None, {0: 1}), (None, {0: 2}), layout=keyless))
    assert values(found) == [(None, [1, 5, "d"]), (None, [2, 5, "d"])]
    (found,) = log.event(rows(Action.UPDATE, ({0: 1, 1: 5, 2: "d"}, {1: 6}), layout=keyless))
    assert values(found) == [([1, 5, "d"], [1, 6, "d"])]
    with pytest.raises(Unsupported, match="without a key"):
        log.event(rows(Action.DELETE, ({0: 1}, None), layout=keyless))


def test_rows_that_are_read_ahead_are_completed_by_what_comes_between(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    changes = [update(({0: 1}, {1: 11})), update(({0: 1}, {2: "uno"}))]
    batches = [TransactionBatch(begin, [change], end) for change in changes]
    log.completion.versions.flush()
    log.completion.versions._known_bytes = 1 << 30
    log.completion.versions.flush()  # forgets what it has in memory
    log.completion.prefetch([*batches, "another item"])
    log.completion.versions._known_bytes = 1 << 30
    log.completion.versions.flush()  # and so what was read ahead
    found = [log.completion.complete(batch, Seqno(log.seqno + n), Epoch(1)) for n, batch in enumerate(batches)]
    assert [values(one.changes[0]) for one in found] == [
        [([1, 10, "one"], [1, 11, "one"])],
        [([1, 11, "one"], [1, 11, "uno"])],
    ]


def test_an_event_is_recognised_by_what_the_source_logged(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    end = TransactionEnd(SourcePosition("f", 9), 0, Outcome.COMMIT)
    begin = TransactionStart(1, 1, None, 0, 0, SourcePosition("f", 4), Kind.TRANSACTION, {})
    changes = [update(({0: 1}, {1: 11})), update(({0: 1}, {1: 12})), delete({0: 1})]  # two are joined
    small = TransactionBatch(begin, [*changes], end)
    noted = [Statement("shop", "SAVEPOINT a", {}), *small.changes]
    for batch in (small, TransactionBatch(begin, noted, end)):  # the quick way to encode, and the other
        encoder = Encoder(
            service="s", source_id="db:1", partitions=1, limits=Limits(fragment=1 << 16, shard=1 << 20, message=1 << 20)
        )
        encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(log.seqno), tails={}, last_barrier=Seqno(-1)))
        logged = encoder.encode_logged(batch)[-1]
        encoder.begin(Numbering(epoch=Epoch(1), next_seqno=Seqno(log.seqno), tails={}, last_barrier=Seqno(-1)))
        encoder.completion = log.completion
        completed = encoder.encode(batch)[-1]
        assert completed.finished.digest == logged.finished.digest
        assert (b"one" in completed.value, b"one" in logged.value) == (True, False)  # it is completed
        log.completion.go_back(Seqno(log.seqno - 1))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "delete", "move", "event", "back"]),
        st.integers(0, 5),
        st.integers(0, 5),
        st.sets(st.sampled_from([1, 2])),
    ),
    max_size=40,
)


@given(steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_random_partial_changes_are_what_a_dict_says(steps: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    log = Log(tmp_path_factory.mktemp("s") / "store")
    log.ddl(CREATE)
    states: list[dict[int, list[Any]]] = [{}, {}]  # after each event
    now = dict(states[-1])
    changes: list[Rows] = []
    expected: list[Any] = []
    for number, (what, key, other, columns) in enumerate(steps):
        given = {1: number, 2: f"v{number}"}
        chosen = {at: given[at] for at in columns}
        if what == "insert" and key not in now:
            now[key] = [key, chosen.get(1, 5), chosen.get(2, "d")]
            changes.append(insert({0: key, **chosen}))
            expected.append((None, now[key]))
        elif what == "update" and key in now and chosen:
            after = [key, chosen.get(1, now[key][1]), chosen.get(2, now[key][2])]
            changes.append(update(({0: key}, chosen)))
            expected.append((now[key], after))
            now[key] = after
        elif what == "move" and key in now and other not in now:
            after = [other, chosen.get(1, now[key][1]), chosen.get(2, now[key][2])]
            changes.append(update(({0: key}, {0: other, **chosen})))
            expected.append((now.pop(key), after))
            now[other] = after
        elif what == "delete" and key in now:
            changes.append(delete({0: key}))
            expected.append((now.pop(key), None))
        elif what == "event":
            found = log.event(*changes)
            assert [one for change in found for one in values(change)] == expected
            states.append({at: list(row) for at, row in now.items()})
            changes, expected = [], []
        elif what == "back":
            back = min(key, len(states) - 2)
            del states[len(states) - back :]
            log.seqno = len(states) - 1
            log.completion.go_back(Seqno(log.seqno - 1))
            now = {at: list(row) for at, row in states[-1].items()}
            changes, expected = [], []
    log.completion.close()


def test_rows_that_were_read_ahead_under_another_name_are_read_again(log: Log) -> None:
    """Tables are swapped between transactions that were read together; the log's tables are the same objects."""
    other = replace(LAYOUT, name=TableName("shop", "n"))
    log.ddl(CREATE.replace("TABLE t", "TABLE n").replace("TABLE shop.t", "TABLE shop.n"))
    log.event(insert({0: 1, 1: 10, 2: "old"}))
    log.event(rows(Action.INSERT, (None, {0: 1, 1: 20, 2: "new"}), layout=other))
    log.completion.close()
    log.open()
    log.event(insert({0: 2, 1: 1, 2: "x"}))  # so that the table is known
    after = update(({0: 1}, {1: 30}))
    log.completion.prefetch([TransactionBatch(None, [after], None)])
    log.ddl("RENAME TABLE shop.t TO shop.o, shop.n TO shop.t")
    (found,) = log.event(after)
    assert values(found) == [([1, 20, "new"], [1, 30, "new"])]


def test_what_is_only_in_memory_is_written_after_some_time(log: Log) -> None:
    log.event(insert({0: 1, 1: 10, 2: "one"}))
    for now, written in ((0.0, True), (1.0, False), (FLUSH_SECONDS + 1, True)):
        log.completion.rest(now)
        found = log.completion.versions._database.get(STATE)
        assert found is not None
        assert (StoreState.from_json(found).seqno == log.seqno - 1) is written
        log.event(insert({0: 2 + int(now), 1: 10, 2: "one"}))
