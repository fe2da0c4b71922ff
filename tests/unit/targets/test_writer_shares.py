"""Net changes divided by key: nothing is lost, and all changes of a key go to the same writer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connector.log.compact.net_changes import Images, NetChanges
from connector.targets.postgres.divide import divided
from connector.targets.postgres.writer_shares import HASH_VERSION, divide, divisible
from connector.targets.values import rows
from tests.support.net import Row, images, layout, net

# The key's columns in another order than the table's.
LAYOUT = layout("shop.orders", ["b varchar(20)", "v int", "a int"], ["a", "b"])
VALUES = st.tuples(st.sampled_from(["", "x", "ä", "x\0"]), st.integers(0, 9), st.integers(-3, 3))


def decoded(found: Images, columns: int) -> list[Row]:
    return rows(found.data, found.ends, columns)


@given(st.lists(VALUES, unique_by=lambda row: (row[0], row[2])), st.integers(1, 7))
def test_shares_are_the_whole_each_key_s_in_one(given_rows: list[tuple[str, int, int]], count: int) -> None:
    third = len(given_rows) // 3
    parts = [given_rows[:third], given_rows[third : 2 * third], given_rows[2 * third :]]
    shares = list(divide(net(LAYOUT, inserts=parts[0], updates=parts[1], deletes=parts[2]), count))
    assert len(shares) == count
    found = [share for share in shares if share is not None]
    for name, part in zip(("inserts", "updates", "deletes"), parts, strict=True):
        mine = [decoded(getattr(share, name), 3) for share in found]
        assert Counter(row for rows_ in mine for row in rows_) == Counter(part)
        for rows_ in mine:  # in their order: a target walks its index once
            assert rows_ == [row for row in part if row in rows_]
    assert all(len(share) == share.changes > 0 for share in found)


def writer_of(shares: Sequence[NetChanges | None]) -> int:
    (number,) = [number for number, share in enumerate(shares) if share is not None]
    return number


@given(VALUES, st.integers(1, 7), st.booleans())
def test_whole_and_partial_images_of_a_key_go_to_the_same_writer(
    row: tuple[str, int, int], count: int, again: bool
) -> None:
    b, v, a = row
    whole = net(LAYOUT, deletes=[row])
    whole.again = again
    partial = net(LAYOUT, changed=[({"v": v}, (a, b))])
    one, other = list(divide(whole, count)), list(divide(partial, count))
    assert writer_of(one) == writer_of(other)
    share = other[writer_of(other)]
    assert share is not None and share.partial is not None and partial.partial is not None
    assert bytes(share.partial.changed.data) == bytes(partial.partial.changed.data)
    assert [one.again for one in one if one is not None] == [again]


def test_the_hash_is_that_of_its_version() -> None:
    """A commit that was divided by one version of the connector is finished by another."""
    table = layout("shop.users", ["id int", "name varchar(10)"], ["id"])
    found = [
        number
        for key in range(12)
        for number, share in enumerate(divide(net(table, inserts=[(key, "x")]), 5))
        if share is not None
    ]
    assert (HASH_VERSION, found) == (1, [4, 0, 3, 2, 4, 3, 3, 1, 1, 0, 4, 1])


def test_keys_are_spread_and_tables_begin_with_different_writers() -> None:
    firsts = Counter[int]()
    for number in range(40):
        table = layout(f"shop.t{number}", ["id int"], ["id"])
        firsts[writer_of(list(divide(net(table, inserts=[(1,)]), 4)))] += 1
        sizes = [len(share or ()) for share in divide(net(table, inserts=[(key,) for key in range(4_000)]), 4)]
        assert min(sizes) > 800
    assert min(firsts[number] for number in range(4)) >= 3


@pytest.mark.parametrize(
    ("columns", "key", "can"),
    [
        (["id int"], ["id"], True),
        (["id int"], [], False),
        (["id double"], ["id"], False),
        (["id int", "f float"], ["id", "f"], False),
        (["id int", "f float"], ["id"], True),
        (["d decimal(10,2)"], ["d"], True),
    ],
)
def test_keys_that_only_the_target_takes_for_equal_are_not_divided(
    columns: list[str], key: list[str], *, can: bool
) -> None:
    assert divisible(layout("shop.t", columns, key)) == can


@pytest.mark.parametrize("cut", range(1, 6))
def test_damaged_images_are_refused(cut: int) -> None:
    found = images([(1, "abc")])
    with pytest.raises(ValueError, match=r"image|value"):
        divided(found.data[:-cut], found.ends, bytes([1, 0]), 2, 0)
    with pytest.raises(ValueError, match="more values"):
        divided(found.data, found.ends, bytes([1]), 2, 0)
    with pytest.raises(ValueError, match="key"):
        divided(found.data, found.ends, bytes([0, 0]), 2, 0)
