"""Loads of new tables on PostgreSQL, whose rows go into the table without staging, however few they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from connector.errors import ConnectorError, Fenced, TargetDiffers, ValueNotRepresentable
from connector.targets.postgres import direct_copy, divided_commit
from connector.targets.postgres.direct_copy import DirectCopy, DirectRows
from tests.contract.target_load import *  # noqa: F403
from tests.contract.target_load import ANN, BOB, EVE, begin, end
from tests.contract.target_suite import CREATE_USERS, USERS, Applier
from tests.contract.target_suite import applier as applier  # noqa: PLC0414
from tests.contract.target_transactions import ALL, metadata, wide
from tests.contract.test_target_postgres import database as database  # noqa: PLC0414
from tests.contract.test_target_postgres_writers import WRITERS, WritersPlace
from tests.support.net import layout, net

NEVER = 1 << 60


class DirectPlace(WritersPlace):
    writers = 1

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.copies: list[bool] = []  # for each COPY, whether the table took it


@pytest.fixture(params=[1, WRITERS], ids=["one writer", "several writers"])
def place(request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[DirectPlace]:
    monkeypatch.setattr(divided_commit, "DIVIDED_ROWS", 1)
    monkeypatch.setattr(direct_copy, "DIRECT_ROWS", 1)
    made = DirectPlace(database)
    made.writers = request.param

    def seen(copy: DirectCopy, rows: DirectRows, copied: Callable[[DirectCopy, DirectRows], bool]) -> bool:
        made.copies.append(copied(copy, rows))
        return made.copies[-1]

    copied = DirectCopy.copied
    monkeypatch.setattr(DirectCopy, "copied", lambda copy, rows: seen(copy, rows, copied))
    yield made
    made.close()
    for (schema,) in made.query("SELECT quote_ident(nspname) FROM pg_namespace WHERE nspname !~ '^(pg_|information_)'"):
        made.reader.execute(f"DROP SCHEMA {schema} CASCADE".encode())
    made.reader.close()


@pytest.fixture
def loading(place: DirectPlace) -> Applier:
    made = Applier(place.open(audit=True))
    begin(made)
    return made


class TestRowsThatTheStreamBrought:
    def test_rows_of_new_keys_go_into_the_table_at_once(self, place: DirectPlace, loading: Applier) -> None:
        loading.rows(net(USERS, updates=[ANN, BOB]))
        loading.rows(net(USERS, updates=[EVE], inserts=[(4, None, None)]))
        assert place.copies
        assert all(place.copies)
        end(loading)
        assert place.read(USERS) == [ANN, BOB, EVE, (4, None, None)]
        with pytest.raises(TargetDiffers):
            loading.rows(net(USERS, updates=[(9, None, None)]))

    def test_row_that_was_there_is_replaced(self, place: DirectPlace, loading: Applier) -> None:
        loading.rows(net(USERS, inserts=[(2, "older", "x")]))
        loading.rows(net(USERS, updates=[ANN, BOB, EVE]))
        assert False in place.copies
        end(loading)
        assert place.read(USERS) == [ANN, BOB, EVE]
        assert [rows for _, rows in place.applied()][1:3] == [1, 3]

    def test_row_whose_unique_value_another_one_had_is_replaced(self, place: DirectPlace, loading: Applier) -> None:
        place.run("CREATE UNIQUE INDEX by_user ON shop.users (mail)")
        loading.rows(net(USERS, updates=[(1, "ann", "a")]))
        loading.rows(net(USERS, updates=[(1, "ann", "b"), (2, "bob", "a")]))
        assert False in place.copies
        end(loading)
        assert place.read(USERS) == [(1, "ann", "b"), (2, "bob", "a")]

    def test_changes_around_the_rows_apply_in_their_order(self, place: DirectPlace, loading: Applier) -> None:
        loading.target.stage([net(USERS, updates=[(1, "a", None), (2, "a", None)])], last=False)
        loading.target.stage(
            [
                net(USERS, deletes=[(1, "a", None)]),
                net(USERS, inserts=[(1, "b", None), (3, "b", None)]),
                net(USERS, changed=[({"id": 3, "name": "c"}, (3,))]),
                net(USERS, updates=[(4, "d", None)]),
            ],
            last=True,
        )
        loading.commit(rows=7)
        end(loading)
        assert place.read(USERS) == [(1, "b", None), (2, "a", None), (3, "c", None), (4, "d", None)]

    def test_rows_whose_metadata_come_later_have_them(self, place: DirectPlace) -> None:
        applier = Applier(place.open(columns=ALL))
        begin(applier)
        applier.target.stage([net(wide(USERS), updates=[(*ANN, *metadata(1))])], last=True)
        applier.target.set_metadata(metadata(5))
        applier.commit(rows=1)
        assert place.read(wide(USERS)) == [(*ANN, *metadata(5))]

    def test_table_that_the_stream_changes_much_is_tried_more_and_more_seldom(
        self, place: DirectPlace, loading: Applier
    ) -> None:
        for version in range(40):
            loading.rows(net(USERS, updates=[(1, str(version), None)]))
        # The first row is new. The other COPYs follow after 1, 2, 4, 8, 16 commits that do not try.
        assert place.copies == [True] + [False] * 6
        for key in range(2, 60):
            loading.rows(net(USERS, updates=[(key, "", None)]))
        assert place.copies.count(True) > 20
        end(loading)
        assert place.read(USERS) == [(1, "39", None), *((key, "", None) for key in range(2, 60))]


class TestRefusedRows:
    def failure(self, place: DirectPlace, monkeypatch: pytest.MonkeyPatch, least: int, row: tuple[object, ...]) -> str:
        """The error of a row, with everything that a user sees."""
        monkeypatch.setattr(direct_copy, "DIRECT_ROWS", least)
        applier = Applier(place.open())
        begin(applier, load=f"l{least}")
        place.run("ALTER TABLE shop.users DROP CONSTRAINT IF EXISTS by_user")
        place.run("ALTER TABLE shop.users ADD CONSTRAINT by_user CHECK (name <> 'bad')")
        with pytest.raises(ConnectorError) as stopped:
            applier.rows(net(USERS, updates=[ANN, row, EVE]))
        place.close()
        assert place.read(USERS) == []
        error = stopped.value
        where = {name: value for name, value in error.where.items() if name != "seqno"}
        return f"{type(error)} {error.message} {error.hint} {where} {error.tables}"

    @pytest.mark.parametrize("row", [(2, "a\0b", None), (2, "bad", None)], ids=["not representable", "refused"])
    def test_bad_row_is_told_as_with_staging(
        self, place: DirectPlace, monkeypatch: pytest.MonkeyPatch, row: tuple[object, ...]
    ) -> None:
        direct = self.failure(place, monkeypatch, 1, row)
        assert direct == self.failure(place, monkeypatch, NEVER, row)
        assert "users" in direct
        assert (ValueNotRepresentable.__name__ in direct) is ("\0" in str(row[1]))

    def test_unique_value_of_a_row_that_only_the_target_has_is_told_as_with_staging(
        self, place: DirectPlace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told = []
        for least in (1, NEVER):
            monkeypatch.setattr(direct_copy, "DIRECT_ROWS", least)
            applier = Applier(place.open())
            begin(applier, load=f"l{least}")
            place.run("CREATE UNIQUE INDEX IF NOT EXISTS by_user ON shop.users (mail)")
            place.run("INSERT INTO shop.users VALUES (77, 'mine', 'a')")
            with pytest.raises(ConnectorError) as stopped:
                applier.rows(net(USERS, updates=[ANN, BOB]))
            told.append((type(stopped.value), stopped.value.message, stopped.value.tables))
            place.close()
        assert told[0] == told[1]
        assert False in place.copies

    def test_fenced_applier_copies_nothing(self, place: DirectPlace, loading: Applier) -> None:
        loading.target.stage([net(USERS, updates=[ANN])], last=True)
        place.open().claim("shop")
        with pytest.raises(Fenced):
            loading.commit(rows=1)
        assert place.read(USERS) == []


class TestTableThatOthersHaveAltered:
    def loaded(self, place: DirectPlace, loading: Applier, *sql: str) -> None:
        for one in sql:
            place.run(one)
        loading.rows(net(USERS, updates=[ANN, BOB]))
        assert True not in place.copies

    def test_rows_are_cast_to_the_type_of_a_column(self, place: DirectPlace) -> None:
        numbers = layout("shop.users", ["id int", "n bigint"], ["id"])
        applier = Applier(place.open())
        begin(applier, "CREATE TABLE users (id INT PRIMARY KEY, n BIGINT)", of=numbers)
        place.run("ALTER TABLE shop.users ALTER n TYPE double precision")  # of as many bytes
        applier.rows(net(numbers, updates=[(1, 7)]))
        assert (place.query("SELECT n FROM shop.users"), True in place.copies) == ([(7.0,)], False)

    def test_trigger_sees_rows_as_before(self, place: DirectPlace, loading: Applier) -> None:
        body = "LANGUAGE plpgsql AS $$BEGIN NEW.name := 'f'; RETURN NEW; END$$"
        function = f"CREATE FUNCTION shop.f() RETURNS trigger {body}"
        trigger = "CREATE TRIGGER t BEFORE INSERT ON shop.users FOR EACH ROW EXECUTE FUNCTION shop.f()"
        self.loaded(place, loading, function, trigger)
        assert place.query("SELECT name FROM shop.users") == [("f",), ("f",)]

    def test_table_without_the_key_is_refused(self, place: DirectPlace, loading: Applier) -> None:
        with pytest.raises(ConnectorError, match="ON CONFLICT"):
            self.loaded(place, loading, "ALTER TABLE shop.users DROP CONSTRAINT users_pkey")
        assert place.read(USERS) == []

    def test_further_column_gets_its_default(self, place: DirectPlace, loading: Applier) -> None:
        place.run("ALTER TABLE shop.users ADD mine int NOT NULL DEFAULT 5, ALTER name TYPE varchar(50)")
        loading.rows(net(USERS, updates=[ANN, BOB]))
        assert place.query("SELECT id, name, mail, mine FROM shop.users ORDER BY 1") == [(*ANN, 5), (*BOB, 5)]


def test_rows_of_a_known_table_are_swept(place: DirectPlace) -> None:
    applier = Applier(place.open())
    applier.sql("CREATE DATABASE shop", CREATE_USERS)
    applier.rows(net(USERS, inserts=[ANN, (9, "gone", None)]))
    begin(applier)
    applier.rows(net(USERS, updates=[(1, "new", None), BOB]))
    end(applier)
    assert (place.read(USERS), place.copies) == ([(1, "new", None), BOB], [])
