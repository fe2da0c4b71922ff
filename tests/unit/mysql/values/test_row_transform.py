"""Rows transformed by a rule equal those of a model that works on decoded rows."""

from __future__ import annotations

import hmac
import io
from array import array
from dataclasses import replace
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.config.filters import Filters, Mask, TableRule
from connector.errors import ConfigError, CorruptBinlog, Unsupported
from connector.log.format import avro
from connector.log.ids import Action
from connector.log.transaction.layout import Column, TableLayout, TableName
from connector.mysql.transforms.table_rules import hash_key, row_transform
from connector.mysql.values.row_transform import Does, RowTransform
from connector.schema import fragment_schema

KEY = b"0123456789abcdef"
NAME = TableName("shop", "t")


def row_schema() -> Any:
    changes = next(field for field in fragment_schema()["fields"] if field["name"] == "changes")
    change = next(branch for branch in changes["type"]["items"] if branch["name"] == "RowChange")
    return fastavro.parse_schema(next(f for f in change["fields"] if f["name"] == "rows")["type"]["items"])


ROW = row_schema()
values = st.one_of(
    st.none(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False),
    st.text(max_size=6),
    st.binary(max_size=6),
    st.sampled_from(["0000-00-00", "0000-00-00 00:00:00.000", "2024-00-00", "0000-00-0"]),
)
parts = st.one_of(
    st.sampled_from([(Does.KEEP, 0, b""), (Does.DROP, 0, b""), (Does.ZERO_TO_NULL, 0, b""), (Does.HASH, 20, b"")]),
    st.builds(lambda value: (Does.FIX, 0, avro.union(value)), values),
    st.builds(lambda limit: (Does.CUT, limit, b""), st.integers(0, 4)),
)


def written(rows: list[dict[str, Any]]) -> tuple[bytes, bytes]:
    out, ends = io.BytesIO(), array("Q")
    for row in rows:
        fastavro.schemaless_writer(out, ROW, row)
        ends.append(out.tell())
    return out.getvalue(), bytes(ends)


def read(data: bytes, ends: bytes) -> list[dict[str, Any]]:
    places, source, found = array("Q", ends), io.BytesIO(data), []
    for end in places:
        found.append(fastavro.schemaless_reader(source, ROW, None))
        assert source.tell() == end
    assert source.tell() == len(data)
    return found  # type: ignore[return-value]


def expected(value: Any, part: tuple[Does, int, bytes]) -> Any:
    does, limit, fixed = part
    if does is Does.FIX:
        return fastavro.schemaless_reader(io.BytesIO(fixed), ["null", "long", "double", "string", "bytes"], None)
    if isinstance(value, str | bytes):
        if does is Does.HASH:
            raw = value.encode() if isinstance(value, str) else value
            return hmac.new(KEY, raw, "sha256").hexdigest()[:limit]
        if does is Does.CUT:
            return value[:limit]
        if does is Does.ZERO_TO_NULL and value[:10] in ("0000-00-00", b"0000-00-00"):
            return None
    return value


def bits(present: list[bool]) -> bytes:
    if all(present):
        return b""
    number = sum(1 << index for index, there in enumerate(present) if there)
    return number.to_bytes((len(present) + 7) // 8, "little")


Case = tuple[Action, list[Any], list[bool], list[bool], list[Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    done = draw(st.lists(parts, min_size=1, max_size=20))
    presence = st.one_of(st.just([True] * len(done)), st.lists(st.booleans(), min_size=len(done), max_size=len(done)))
    before, after = draw(presence), draw(presence)

    def image(present: list[bool]) -> st.SearchStrategy[Any]:
        return st.one_of(st.none(), st.lists(values, min_size=sum(present), max_size=sum(present)))

    row = st.fixed_dictionaries({"before": image(before), "after": image(after)})
    return draw(st.sampled_from(Action)), done, before, after, draw(st.lists(row, max_size=3))


@given(cases())
def test_transformed_rows_equal_the_model(case: Case) -> None:
    action, done, before, after, rows = case
    kept = [index for index, part in enumerate(done) if part[0] is not Does.DROP]
    made = RowTransform(TableLayout(NAME, ()), done, KEY)
    data, ends, old, new = made.rows(action, *written(rows), bits(before), bits(after))
    left = [after[index] for index in kept]
    if all(part[0] is Does.KEEP for part in done):  # another name alone: no row is looked at
        assert (data, ends, old, new) == (*written(rows), bits(before), bits(after))
        return
    if action is Action.UPDATE and kept and not any(left):  # no published column has changed
        assert (data, ends, old, new) == (b"", b"", b"", b"")
        return
    assert (old, new) == (bits([before[index] for index in kept]), bits(left))

    def image(values: list[Any] | None, present: list[bool]) -> list[Any] | None:
        if values is None:
            return None
        told = dict(zip([index for index, there in enumerate(present) if there], values, strict=True))
        return [expected(told[index], done[index]) for index in kept if index in told]

    assert read(data, ends) == [
        {"before": image(row["before"], before), "after": image(row["after"], after)} for row in rows
    ]


@given(st.binary(max_size=30), st.lists(parts, min_size=1, max_size=4))
def test_damaged_rows_are_never_read_beyond_their_end(data: bytes, done: list[Any]) -> None:
    try:
        RowTransform(TableLayout(NAME, ()), [(Does.HASH, 16, b""), *done], KEY).rows(Action.INSERT, data, b"", b"", b"")
    except CorruptBinlog:
        return
    assert not data


def table(*columns: Column, key: tuple[int, ...] = (0,)) -> TableLayout:
    return TableLayout(NAME, (Column("id", "int", nullable=False), *columns), key)


def rule(**fields: Any) -> TableRule:
    return TableRule.model_validate({"match": ["shop"], **fields})


def text(name: str, type: str = "varchar(64)") -> Column:
    return Column(name, type, charset="utf8mb4", nullable=False)


def test_layout_is_that_of_the_published_table() -> None:
    layout = table(text("a"), text("B"), Column("d", "datetime(3)", nullable=False), key=(3, 0))
    made = row_transform(layout, rule(drop=["b?", "A"], zero_dates=["*"], mask={"x": {"fixed": None}}), KEY)
    assert made is not None
    assert [column.name for column in made.layout.columns] == ["id", "B", "d"]
    assert made.layout.key == (2, 0)
    assert not made.layout.columns[2].nullable  # of the key: it stays as it is
    made = row_transform(table(*layout.columns[1:]), rule(zero_dates=["*"], mask={"a": {"fixed": None}}), KEY)
    assert made is not None
    assert [column.nullable for column in made.layout.columns] == [False, True, False, True]


def test_renamed_columns_change_the_layout_and_no_row() -> None:
    layout = table(text("a"), text("B"), key=(0, 2))
    made = row_transform(layout, rule(rename={"ID": "number", "b": "A2", "x": "y"}), KEY)
    assert made is not None
    assert made.layout == TableLayout(NAME, (replace(layout.columns[0], name="number"), text("a"), text("A2")), (0, 2))
    assert made.rows(Action.UPDATE, b"as it is", b"8 bytes.", b"b", b"a") == (b"as it is", b"8 bytes.", b"b", b"a")
    swapped = row_transform(layout, rule(rename={"a": "B", "b": "a"}), KEY)
    assert swapped is not None
    assert [column.name for column in swapped.layout.columns] == ["id", "B", "a"]
    assert row_transform(layout, rule(rename={"x": "y"}), KEY) is None
    assert row_transform(layout, rule(rename={"b": "B"}), KEY) is None


def test_masked_column_can_take_the_name_of_a_dropped_one() -> None:
    layout = table(text("mail"), text("hash"))
    fields = {"mask": {"MAIL": {"fixed": None}}, "drop": ["hash"], "rename": {"mail": "hash"}}
    made = row_transform(layout, rule(**fields), KEY)
    assert made is not None
    assert made.layout == table(replace(text("hash"), nullable=True))
    data, ends, _, _ = made.rows(Action.INSERT, *written([{"before": None, "after": [1, "m", "h"]}]), b"", b"")
    assert read(data, ends) == [{"before": None, "after": [1, None]}]
    with pytest.raises(Unsupported) as refused:
        row_transform(layout, rule(rename={"mail": "Id"}), KEY)
    assert refused.value.where["column"] == "mail"


def test_rule_without_effect_on_columns_makes_no_transform() -> None:
    assert row_transform(table(text("a")), rule(drop=["b"], mask={"c": {"truncate": 1}}, zero_dates=["*"]), KEY) is None


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"drop": ["i*"]}, "id"),
        ({"drop": ["*"]}, "id"),
        ({"mask": {"id": {"fixed": 1}}}, "id"),
        ({"mask": {"id": {"hash": 16}}}, "id"),
        ({"mask": {"short": {"hash": 17}}}, "short"),
        ({"mask": {"n": {"truncate": 1}}}, "n"),
        ({"mask": {"short": {"fixed": "x" * 17}}}, "short"),
        ({"mask": {"short": {"fixed": 1}}}, "short"),
        ({"mask": {"n": {"fixed": "1"}}}, "n"),
        ({"mask": {"d": {"fixed": "2024-01-01"}}}, "d"),
    ],
)
def test_rule_that_does_not_fit_a_column_is_refused(fields: dict[str, Any], column: str) -> None:
    layout = table(text("short", "varchar(16)"), Column("n", "bigint"), Column("d", "date"))
    with pytest.raises(Unsupported) as refused:
        row_transform(layout, rule(**fields), KEY)
    assert refused.value.where == {"table": layout.name, "column": column}


def test_all_columns_but_one_can_be_dropped_without_a_key() -> None:
    keyless = table(key=())
    with pytest.raises(Unsupported) as refused:
        row_transform(keyless, rule(drop=["*"]), KEY)
    assert refused.value.where == {"table": keyless.name}
    assert "source.filters.ignore" in refused.value.hint
    assert row_transform(table(text("a"), key=()), rule(drop=["id"]), KEY) is not None


@pytest.mark.parametrize(
    "mask", [{}, {"hash": None}, {"truncate": -1}, {"hash": 8}, {"fixed": 1, "hash": 16}, {"fixed": [1]}]
)
def test_mask_with_none_or_two_kinds_is_refused(mask: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="mask"):
        rule(mask={"a": mask})
    assert Mask(fixed=None).fixed is None


def test_hash_needs_a_key_of_16_bytes(tmp_path: Any) -> None:
    hashing = (rule(mask={"a": {"hash": 16}}),)
    with pytest.raises(ValueError, match="hash_key"):
        Filters(tables=hashing)
    with pytest.raises(ValueError, match="hash_key"):
        Filters.model_validate({"tables": hashing, "hash_key": "short"})
    assert hash_key(Filters.model_validate({"tables": hashing, "hash_key": KEY.decode()})) == KEY
    file = tmp_path / "key"
    filters = Filters.model_validate({"tables": hashing, "hash_key_file": str(file)})
    with pytest.raises(ConfigError) as refused:
        hash_key(filters)
    assert refused.value.where == {"file": file}
    assert isinstance(refused.value.__cause__, FileNotFoundError)
    file.write_bytes(b"short\n")
    with pytest.raises(ConfigError) as refused:
        hash_key(filters)
    assert refused.value.where == {"file": file}
    assert refused.value.__cause__ is None
    file.write_bytes(KEY + b"\n")
    assert hash_key(filters) == KEY
