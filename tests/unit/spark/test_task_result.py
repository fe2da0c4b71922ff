"""A task's parts come out of their result as they went in, whole or in pieces, through Spark or in a file."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connector.errors import BrokerUnavailable, ConfigError, ConnectorError
from connector.kafka.consumer import OffsetMissing
from connector.kafka.large_messages import LARGE
from connector.kafka.message_batch import message_batch
from connector.log.compact.segment import Segment, Unread
from connector.spark.stream import task_result
from connector.spark.stream.parts import Batch, Part, size_of
from connector.spark.stream.segment_builder import SegmentBuilder
from connector.spark.stream.task_result import (
    FAILED,
    ResultPiece,
    deserialized,
    failure_as_bytes,
    failure_of,
    in_pieces,
    joined_pieces,
    serialized,
    written,
)
from tests.support.fragments import batch, encoded, record
from tests.unit.applier.test_core import TOPIC, insert


def segment(first: int, count: int, partition: int = 0) -> Segment:
    builder = SegmentBuilder(TOPIC, partition, events=True)
    values = [encoded(record(seqno, [insert(seqno)])) for seqno in range(first, first + count)]
    builder.add(batch(values, partition=partition, offset=first))
    (made,) = builder.finish()
    assert isinstance(made, Segment)
    return made


SEGMENT = segment(5, 3)


def test_result_of_a_task_that_fails_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> Iterator[Part]:
        yield SEGMENT
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        written(tmp_path, failing())
    assert list(tmp_path.iterdir()) == []


@st.composite
def parts(draw: st.DrawFn) -> list[Part]:
    """Any parts, messages mostly as slices of a batch."""
    found: list[Part] = []
    for _ in range(draw(st.integers(0, 5))):
        values = draw(st.lists(st.none() | st.binary(max_size=20), max_size=5))
        whole = batch(values, offset=draw(st.integers(0, 2**40)))
        first = draw(st.integers(0, len(values)))
        part: Part = draw(
            st.sampled_from([whole.slice(first), whole.slice(0, first), Unread(0, 3, 9, 4, 500), SEGMENT])
        )
        found.append(part)
    return found


def same(found: Sequence[Part], expected: Sequence[Part]) -> bool:
    """Return whether parts are equal, with their kinds."""
    return [type(one) for one in found] == [type(one) for one in expected] and all(
        one.equals(other) if isinstance(one, pa.RecordBatch) else one == other
        for one, other in zip(found, expected, strict=True)
    )


def whole(*contents: bytes | pa.Buffer) -> pa.Buffer:
    return pa.py_buffer(b"".join(contents))


@given(parts())
def test_parts_of_a_result_are_those_that_went_in(made: list[Part]) -> None:
    found = list(deserialized(whole(*serialized(made))))
    assert same(found, made)
    for part in found:
        if isinstance(part, pa.RecordBatch):
            part.validate(full=True)


@settings(max_examples=50)
@given(st.lists(parts(), max_size=4), st.integers(1, 200), st.randoms())
def test_pieces_in_any_order_give_the_results_of_each_partition_in_order(
    tasks: list[list[Part]], size: int, random: st.DataObject
) -> None:
    pieces = []
    kept, task_result.PIECE_BYTES = task_result.PIECE_BYTES, size  # type: ignore[misc]
    try:
        for number, made in enumerate(tasks):
            contents = list(in_pieces(made))
            assert b"".join(contents) == b"".join(serialized(made))
            assert all(size <= len(one) for one in contents[:-1])
            assert all(len(one) < 2 * size for one in contents)
            # Two partitions, whose ranges have the same offsets; more than ten pieces.
            pieces += [ResultPiece(number % 2, number // 2, n, content) for n, content in enumerate(contents)]
    finally:
        task_result.PIECE_BYTES = kept  # type: ignore[misc]
    random.shuffle(pieces)  # type: ignore[attr-defined]
    found = [list(deserialized(one)) for one in joined_pieces(pieces, None)]
    expected = [made for made in tasks[::2] + tasks[1::2] if made]
    assert len(found) == len(expected)
    assert all(map(same, found, expected))


@pytest.mark.parametrize("last", [batch([b"x" * 20, None]), SEGMENT], ids=["messages", "segment"])
def test_a_result_that_ends_too_early_is_an_error_wherever_it_ends(last: Part) -> None:
    before = Unread(0, 3, 9, 4, 500)
    result = whole(*serialized([before, last]))
    for end in range(1, len(result)):
        with pytest.raises(BrokerUnavailable, match="damaged"):
            list(deserialized(result[:end]))


def test_a_piece_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_result, "PIECE_BYTES", 100)
    pieces = [ResultPiece(3, 7, number, content) for number, content in enumerate(in_pieces([SEGMENT, batch([b"x"])]))]
    assert len(pieces) > 3
    for missing in range(len(pieces)):
        with pytest.raises(BrokerUnavailable, match="incomplete" if missing + 1 < len(pieces) else "damaged"):
            for one in joined_pieces(pieces[:missing] + pieces[missing + 1 :], None):
                list(deserialized(one))


def test_only_messages_and_what_a_task_has_pickled_is_read() -> None:
    content = whole(*serialized([SEGMENT]))
    assert content[:8].to_pybytes() == b"pickled "
    with pytest.raises(BrokerUnavailable, match=r"damaged.*kind"):
        list(deserialized(pa.py_buffer(b"another " + content[8:].to_pybytes())))


def test_numbers_in_a_result_are_where_arrow_reads_them_in_place() -> None:
    made = [Unread(0, 3, 9, 4, 500), batch([b"x"]), SEGMENT, batch([b"y"] * 3)]
    result = whole(*serialized(made))
    found = [part for part in deserialized(result) if isinstance(part, pa.RecordBatch)]
    for part in found:
        address = part["offset"].buffers()[1].address
        assert result.address <= address < result.address + len(result)
        assert (address - result.address) % 8 == 0


def test_a_task_without_messages_has_a_result_without_parts(tmp_path: Path) -> None:
    """Kafka's transaction markers, and what was aborted, have offsets and no messages."""
    assert list(in_pieces([])) == []
    assert list(joined_pieces([], None)) == []
    (found,) = joined_pieces([ResultPiece(0, 0, 0, written(tmp_path, []))], tmp_path)
    assert list(deserialized(found)) == []
    assert list(tmp_path.iterdir()) == []


def test_results_in_files_are_read_in_order_and_removed(tmp_path: Path) -> None:
    tasks: list[list[Part]] = [[batch([b"a", None])], [segment(5, 2, partition=1), Unread(1, 7, 9, 1, 80)], [SEGMENT]]
    places = [(0, 0), (1, 5), (0, 2)]
    pieces = [ResultPiece(*place, 0, written(tmp_path, made)) for place, made in zip(places, tasks, strict=True)]
    assert len(list(tmp_path.iterdir())) == 3
    found = [list(deserialized(one)) for one in joined_pieces(reversed(pieces), tmp_path)]
    assert list(tmp_path.iterdir()) == []
    gc.collect()
    assert all(map(same, found, [tasks[0], tasks[2], tasks[1]]))


def test_files_of_results_are_for_this_user_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        written(tmp_path, [SEGMENT])
    finally:
        os.umask(before)
    assert [file.stat().st_mode & 0o777 for file in tmp_path.iterdir()] == [0o600]


def test_a_file_of_a_result_that_is_gone_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, [SEGMENT])
    Path(os.fsdecode(path)).unlink()
    with pytest.raises(ConfigError, match="cannot be read") as refused:
        list(joined_pieces([ResultPiece(0, 0, 0, path)], tmp_path))
    assert refused.value.where["file"] == os.fsdecode(path)


def test_messages_share_the_memory_of_their_file(tmp_path: Path) -> None:
    (result,) = joined_pieces([ResultPiece(0, 0, 0, written(tmp_path, [batch([b"a" * 5_000])]))], tmp_path)
    (part,) = deserialized(result)
    assert isinstance(part, pa.RecordBatch)
    address = part["value"].buffers()[2].address
    assert result.address <= address < result.address + len(result)


def test_messages_in_other_columns_are_refused() -> None:
    other = batch([b"a"]).rename_columns(["partition", "offset", "key"])
    small = pa.RecordBatch.from_pydict({"partition": [1], "offset": [2], "value": [b"a"]})
    for wrong in (other, small):
        with pytest.raises(ValueError, match="messages in columns"):
            list(serialized([wrong]))


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (ConfigError("no room", hint="make some", folder="/x"), ConfigError),
        (OffsetMissing("gone", partition=3, topic="t", begin=7), BrokerUnavailable),
    ],
)
def test_an_error_of_a_task_keeps_its_kind_ids_and_remedy(raised: ConnectorError, kind: type[ConnectorError]) -> None:
    found = failure_of(ResultPiece(0, 5, FAILED, failure_as_bytes(raised)))
    assert type(found) is kind
    assert (found.message, found.hint, found.where) == (raised.message, raised.hint, raised.where)


def test_large_messages_that_are_not_in_a_batch_count_as_large() -> None:
    small, large = batch([b"x"] * 3), message_batch([0, 0, 0], [3, 4, 5], [None, b"x", None])
    assert size_of(large) == large.nbytes + 2 * LARGE
    assert Batch.of([small, large]).size == small.nbytes + size_of(large)
