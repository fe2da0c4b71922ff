"""Tungsten's layout, character by character, and the other formats."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any
from zoneinfo import ZoneInfo

import fastavro
import pytest

from connector.errors import ConfigError
from connector.inspect.formats.json_fragment import as_object
from connector.inspect.formats.printing import FragmentPart, Layout, View, log_printer
from connector.inspect.formats.tungsten import lines, time_of
from connector.inspect.thl_events.attempts import Attempt
from connector.inspect.thl_events.choice import SLACK, Choice, EventLocation
from connector.inspect.thl_events.decoding import fragment_of
from connector.inspect.thl_events.log import Listed
from connector.log.ids import Epoch, Seqno
from connector.schema import fragment_schema, single_object_header
from tests.support.fragments import change, encoded, load_record, record

COLUMNS = [
    {"name": "id", "type": "bigint", "unsigned": True, "charset": "", "labels": [], "nullable": False},
    {"name": "name", "type": "varchar(20)", "unsigned": False, "charset": "utf8mb4", "labels": [], "nullable": True},
    {"name": "photo", "type": "blob", "unsigned": False, "charset": "", "labels": [], "nullable": True},
]


def a_fragment(*changes: dict[str, Any], voided: bool = False, **more: Any) -> Listed:
    fragment = {
        "seqno": 3582, "fragno": 0, "last_frag": True, "epoch": 2500, "kind": "transaction", "shard": "test",
        "prev_seqno": 1, "last_barrier": 1, "rows": 1, "server_id": 1687011, "thread_id": 0, "last_committed": 0,
        "sequence_number": 0, "outcome": "commit", "crc32": b"\0\0\0\0",
        "source_id": "host1", "gtid": None, "event_id": "mysql-bin.000007:0000000625753710;0",
        "commit_time": 1742382452000000, "changes": list(changes),
        "metadata": {"mysql_server_id": "1687011", "dbms_type": "mysql", "service": "firstrep", "shard": "test"},
    }  # fmt: skip
    return Listed("thl.firstrep", 0, 1234, fragment | more, voided)


def rows(
    action: str, *images: tuple[list[Any] | None, list[Any] | None], key: tuple[int, ...] = (0,)
) -> dict[str, Any]:
    return {
        "schema": "test", "table": "user", "columns": COLUMNS, "key_columns": list(key), "before_present": b"",
        "after_present": b"", "action": action, "rows": [{"before": b, "after": a} for b, a in images],
    }  # fmt: skip


def a_statement(schema: str, sql: str, **options: str) -> dict[str, Any]:
    return {"schema": schema, "sql": sql, "options": options}


SERVICE = "/* ___SERVICE___ = [firstrep] */"
HEADER = """\
SEQ# = 3582 / FRAG# = 0 (last frag)
- FILE = thl.firstrep-0@1234
- TIME = 2025-03-19 11:07:32.0
- EPOCH# = 2500
- EVENTID = mysql-bin.000007:0000000625753710;0
- SOURCEID = host1
- METADATA = [mysql_server_id=1687011;dbms_type=mysql;service=firstrep;shard=test]
- TYPE = com.continuent.tungsten.replicator.event.ReplDBMSEvent
"""


def text(listed: Listed) -> str:
    return "\n".join(lines(listed)) + "\n"


def shown(view: View, *fragments: Listed) -> str:
    out = io.BytesIO()
    printer = log_printer(view, out)
    for listed in fragments:
        printer.show(listed)
    printer.flush()
    return out.getvalue().decode()


def test_a_statement_is_shown_with_its_options_and_schema() -> None:
    first = {"schema": "test", "sql": "insert into t values (1)", "options": {"##charset": "UTF-8", "autocommit": "1"}}
    second = {"schema": "", "sql": "drop table t", "options": {}}
    assert text(a_fragment(first, second)) == HEADER + (
        "- OPTIONS = [##charset = UTF-8, autocommit = 1]\n"
        "- SCHEMA = test\n"
        "- SQL(0) = insert into t values (1) /* ___SERVICE___ = [firstrep] */\n"
        "- SCHEMA = \n"
        "- SQL(1) = drop table t /* ___SERVICE___ = [firstrep] */\n"
    )


def test_a_default_schema_is_shown_where_it_changes_and_after_rows() -> None:
    told = text(
        a_fragment(
            a_statement("a", "one"),
            a_statement("a", "two", autocommit="1"),
            a_statement("b", "three"),
            rows("insert", (None, [2, "", None])),
            a_statement("b", "four"),
        )
    )
    body = told.removeprefix(HEADER).splitlines()
    assert body[:6] == [
        "- SCHEMA = a",
        f"- SQL(0) = one {SERVICE}",
        "- OPTIONS = [autocommit = 1]",
        f"- SQL(1) = two {SERVICE}",
        "- SCHEMA = b",
        f"- SQL(2) = three {SERVICE}",
    ]
    assert body[-2:] == ["- SCHEMA = b", f"- SQL(4) = four {SERVICE}"]


def test_character_sets_of_a_statement_are_shown_by_numbers_and_javas_name() -> None:
    options = {
        "autocommit": "1", "character_set_client": "latin1", "##character_set_client": "8", "collation_connection": "8",
    }  # fmt: skip
    told = text(a_fragment(a_statement("", "x", **options)))
    assert (
        "- OPTIONS = [##charset = ISO8859_1, autocommit = 1, character_set_client = 8, collation_connection = 8]\n"
        in told
    )
    without = text(a_fragment(a_statement("", "x", character_set_client="koi8u")))  # as earlier versions wrote it
    assert "- OPTIONS = [##charset = KOI8_U, character_set_client = koi8u]\n" in without


def test_values_of_a_statement_are_statements_of_their_own_before_it() -> None:
    values = {"insert_id": "7", "last_insert_id": "6", "rand_seed1": "1", "rand_seed2": "2", "@a`b": "_utf8mb4 0x61"}
    told = text(a_fragment(a_statement("s", "insert", autocommit="1", **values), a_statement("s", "next")))
    assert told.removeprefix(HEADER).splitlines() == [
        "- SQL(0) = SET INSERT_ID = 7",
        "- SQL(1) = SET LAST_INSERT_ID = 6",
        "- SQL(2) = SET RAND_SEED1 = 1, RAND_SEED2 = 2",
        "- SQL(3) = SET @`a``b` := _utf8mb4 0x61",
        "- OPTIONS = [autocommit = 1]",
        "- SCHEMA = s",
        f"- SQL(4) = insert {SERVICE}",
        f"- SQL(5) = next {SERVICE}",
    ]


def test_a_block_of_a_file_and_a_statement_without_service_have_no_comment() -> None:
    block = a_statement("s", "/* block */", load_data_block="YQ==", load_data_file="f")
    assert "- SQL(0) = /* block */\n" in text(a_fragment(block))
    assert text(a_fragment(a_statement("s", "x"), metadata={})).endswith("- SQL(0) = x\n")


def test_metadata_names_the_connection_and_a_rollback_as_tungsten_does() -> None:
    told = text(a_fragment(thread_id=1748, outcome="rollback"))
    assert (
        "- METADATA = [mysql_server_id=1687011;mysql_thread_id=1748;dbms_type=mysql;service=firstrep;shard=test;"
        "rollback]\n" in told
    )


@pytest.mark.parametrize(
    ("charset", "hexadecimal", "name", "photo"),
    [
        (None, False, "ü", "0x6162fc"),
        (None, True, "ü (xc3bc)", "0x6162fc"),
        ("latin1", False, "ü", "abü"),
        ("latin1", True, "ü (xc3bc)", "abü (x6162fc)"),
        ("ISO-8859-15", False, "ü", "abü"),
        ("utf8mb4", True, "ü (xc3bc)", "0x6162fc"),  # it is not valid there
    ],
)
def test_values_are_shown_in_a_character_set_and_in_hexadecimal(
    charset: str | None, hexadecimal: bool, name: str, photo: str
) -> None:
    told = shown(
        View(charset=charset, hexadecimal=hexadecimal), a_fragment(rows("insert", (None, [2, "ü", b"ab\xfc"])))
    )
    assert f"  - COL(1: id) = 2\n  - COL(2: name) = {name}\n  - COL(3: photo) = {photo}\n" in told


def test_an_insert_is_shown_with_its_columns_and_key() -> None:
    assert text(a_fragment(rows("insert", (None, [2, "ü", None]), (None, [3, "", b"\x00\xff"])))) == HEADER + (
        "- SQL(0) =\n"
        " - ACTION = INSERT\n"
        " - SCHEMA = test\n"
        " - TABLE = user\n"
        " - ROW# = 0\n"
        "  - COL(1: id) = 2\n"
        "  - COL(2: name) = ü\n"
        "  - COL(3: photo) = NULL\n"
        "  - KEY(1: id) = 2\n"
        " - ROW# = 1\n"
        "  - COL(1: id) = 3\n"
        "  - COL(2: name) = \n"
        "  - COL(3: photo) = 0x00ff\n"
        "  - KEY(1: id) = 3\n"
    )


def test_an_update_and_a_delete_show_the_old_key() -> None:
    changes = rows("update", ([2, "a", None], [3, "b", None])), rows("delete", ([3, "b", None], None))
    assert text(a_fragment(*changes)) == HEADER + (
        "- SQL(0) =\n"
        " - ACTION = UPDATE\n"
        " - SCHEMA = test\n"
        " - TABLE = user\n"
        " - ROW# = 0\n"
        "  - COL(1: id) = 3\n"
        "  - COL(2: name) = b\n"
        "  - COL(3: photo) = NULL\n"
        "  - KEY(1: id) = 2\n"
        "- SQL(1) =\n"
        " - ACTION = DELETE\n"
        " - SCHEMA = test\n"
        " - TABLE = user\n"
        " - ROW# = 0\n"
        "  - KEY(1: id) = 3\n"
    )


def test_a_row_without_a_key_shows_the_whole_old_row() -> None:
    told = text(a_fragment(rows("delete", ([3, "b", None], None), key=())))
    assert told.endswith("  - KEY(1: id) = 3\n  - KEY(2: name) = b\n  - KEY(3: photo) = NULL\n")
    assert "KEY" not in text(a_fragment(rows("insert", (None, [3, "b", None]), key=())))


def test_absent_columns_are_not_shown() -> None:
    change = rows("update", ([3], [3, b"x"])) | {"before_present": b"\x01", "after_present": b"\x05"}
    told = text(a_fragment(change))
    assert told.endswith("  - COL(1: id) = 3\n  - COL(3: photo) = 0x78\n  - KEY(1: id) = 3\n")


def test_a_fragment_that_is_not_the_last_has_no_event_id() -> None:
    listed = a_fragment(last_frag=False, fragno=7, event_id=None, commit_time=None)
    told = text(listed)
    assert told.startswith("SEQ# = 3582 / FRAG# = 7\n")
    assert "- TIME = null\n- EPOCH# = 2500\n- EVENTID = null\n" in told


def test_metadata_without_a_value_is_shown_as_a_name() -> None:
    metadata = {"unsafe_for_block_commit": "", "dbms_type": "mysql"}
    assert "\n- METADATA = [unsafe_for_block_commit;dbms_type=mysql]\n" in text(a_fragment(metadata=metadata))


@pytest.mark.parametrize(
    ("microseconds", "told"),
    [
        (0, "1970-01-01 00:00:00.0"),
        (1742382452123456, "2025-03-19 11:07:32.123456"),
        (1742382452120000, "2025-03-19 11:07:32.12"),
        (1742382452000001, "2025-03-19 11:07:32.000001"),
    ],
)
def test_a_time_has_one_to_six_digits_of_a_second(microseconds: int, told: str) -> None:
    assert time_of(microseconds) == told


def test_a_time_is_shown_in_the_chosen_zone() -> None:
    listed, view = a_fragment(), View(zone=ZoneInfo("Asia/Kolkata"))
    assert "\n- TIME = 2025-03-19 16:37:32.0\n" in shown(view, listed)
    assert json.loads(shown(View(layout=Layout.JSON, zone=view.zone), listed))["time"] == "2025-03-19 16:37:32.0"


def test_specs_show_the_types_of_columns() -> None:
    told = shown(View(specs=True), a_fragment(rows("insert", (None, [2, "ü", None]))))
    assert told.endswith(
        "  - COL(index=1 name=id type=-5 [BIGINT] length=0 unsigned=true blob=false desc=bigint) = 2\n"
        "  - COL(index=2 name=name type=12 [VARCHAR] length=20 unsigned=false blob=false desc=varchar(20)) = ü\n"
        "  - COL(index=3 name=photo type=2004 [BLOB] length=0 unsigned=false blob=true desc=blob) = NULL\n"
        "  - KEY(index=1 name=id type=-5 [BIGINT] length=0 unsigned=true blob=false desc=bigint) = 2\n"
    )


def test_a_header_line_has_a_tab_after_every_field() -> None:
    view = View(part=FragmentPart.HEADERS)
    change = rows("insert", (None, [1, "", None]))
    assert shown(view, a_fragment(change), a_fragment(fragno=1, last_frag=False, event_id=None, voided=True)) == (
        "3582\t2500\t0\ttrue\t2025-03-19 11:07:32.0\tmysql-bin.000007:0000000625753710;0\thost1\t\t\n"
        "3582\t2500\t1\tfalse\t2025-03-19 11:07:32.0\tnull\thost1\tvoided\t\n"
    )


def test_a_sizes_line_counts_statements_and_rows() -> None:
    one = a_fragment(a_statement("s", "sélect"), rows("insert", (None, [1, "", None]), (None, [2, "", None])))
    assert shown(View(part=FragmentPart.SIZES), one, a_fragment(fragno=1)) == (
        "SEQ# Frag# Tstamp\n"
        "3582 0 2025-03-19 11:07:32.0 Event total: 2 chunks 7 bytes in SQL statements 2 rows\n"
        "3582 1 2025-03-19 11:07:32.0 Event total: 0 chunks 0 bytes in SQL statements 0 rows\n"
    )


def test_a_fragment_is_shown_as_a_json_object() -> None:
    listed = a_fragment(rows("update", ([2, "a", b"\x01"], [2, "b", None])), a_statement("s", "x"))
    found = as_object(listed)
    json.dumps(found)
    assert found["changes"][0]["rows"] == [
        {"before": {"id": 2, "name": "a", "photo": {"hex": "01"}}, "after": {"id": 2, "name": "b", "photo": None}}
    ]
    assert found["changes"][1] == {"schema": "s", "sql": "x", "options": {}}
    assert "changes" not in as_object(listed, headers=True)
    assert as_object(listed, specs=True)["changes"][0]["columns"] == COLUMNS
    assert shown(View(layout=Layout.JSON), listed).count("\n") == 1


def test_an_avro_container_file_holds_the_fragments_byte_for_byte() -> None:
    schema = fastavro.parse_schema(fragment_schema())
    fragments, bodies = [], []
    for number in range(300):
        body = io.BytesIO()
        fragment = a_fragment(rows("insert", (None, [number, "x" * 1000, None])), seqno=number).fragment
        fastavro.schemaless_writer(body, schema, fragment)
        value = body.getvalue()[:-4]
        bodies.append(value + zlib.crc32(value).to_bytes(4, "big"))
        fragments.append(Listed("t", 0, number, fragment, voided=False, value=single_object_header() + bodies[-1]))
    out = io.BytesIO()
    printer = log_printer(View(layout=Layout.AVRO), out)
    for listed in fragments:
        printer.show(listed)
    printer.flush()

    out.seek(0)
    reader = fastavro.block_reader(out)
    counts, found = [], []
    for block in reader:
        counts.append(block.num_records)
        found += list(block)
    assert [one["seqno"] for one in found] == list(range(300))
    assert len(counts) > 3  # several blocks
    assert reader.writer_schema["name"] in {"Fragment", "thl.Fragment"}
    for body_, one in zip(bodies, found, strict=True):
        again = io.BytesIO()
        fastavro.schemaless_writer(again, schema, one)
        assert again.getvalue() == body_  # its CRC-32, too


def test_an_avro_container_file_holds_loads_beside_other_events() -> None:
    read = [change("read", [(None, [1, "a"])])]
    values = [encoded(load_record(0, read)), encoded(record(1, [change("insert", [(None, [2, "b"])])]))]
    out = io.BytesIO()
    printer = log_printer(View(layout=Layout.AVRO), out)
    for listed in relisted(values):
        printer.show(listed)
    printer.flush()
    out.seek(0)
    found = list(fastavro.reader(out))
    assert [(one["kind"], one["changes"][0]["action"]) for one in found] == [
        ("load", "read"),
        ("transaction", "insert"),
    ]


def test_rows_of_a_load_are_shown_as_read() -> None:
    (listed,) = relisted([encoded(load_record(3, [change("read", [(None, [1, "a"])])]))])
    told = text(listed)
    assert "- METADATA = [load=l1;load_part=rows;load_schema=shop;load_table=orders]\n" in told
    assert told.endswith(
        " - ACTION = READ\n - SCHEMA = shop\n - TABLE = orders\n - ROW# = 0\n"
        "  - COL(1: id) = 1\n  - COL(2: v) = a\n  - KEY(1: id) = 1\n"
    )
    found = as_object(listed)
    assert (found["kind"], found["metadata"]["load_part"], found["changes"][0]["action"]) == ("load", "rows", "READ")
    assert found["changes"][0]["rows"] == [{"after": {"id": 1, "v": "a"}}]
    assert shown(View(part=FragmentPart.SIZES), listed).endswith(
        "Event total: 1 chunks 0 bytes in SQL statements 1 rows\n"
    )


def relisted(values: list[bytes]) -> list[Listed]:
    return [Listed("t", 0, at, fragment_of(value, f"t-0@{at}"), False, value) for at, value in enumerate(values)]


def test_an_empty_container_file_can_be_read() -> None:
    out = io.BytesIO()
    log_printer(View(layout=Layout.AVRO), out).flush()
    out.seek(0)
    assert list(fastavro.reader(out)) == []


@pytest.mark.parametrize(
    ("choice", "bounds"),
    [
        (Choice(), (None, None)),
        (Choice(low=12), (12, None)),
        (Choice(high=12), (None, 12)),
        (Choice(low=15, high=15), (15, 15)),
        (Choice(first=3), (10, 12)),
        (Choice(last=3), (18, 20)),
        (Choice(last=300), (0, 20)),
        (Choice(last=3, voided=True), (18, None)),
        (Choice(high=12, voided=True), (None, 12)),
    ],
)
def test_a_choice_has_bounds_of_seqnos(choice: Choice, bounds: tuple[int | None, int | None]) -> None:
    assert choice.bounds(lambda: (10, 20)) == bounds


def test_the_logs_ends_are_read_only_if_needed() -> None:
    assert Choice(low=1, high=2).bounds(lambda: pytest.fail("asked")) == (1, 2)


def an_attempt(**ending: Any) -> Attempt:
    known = {"commit_time": 1000, "event_id": "b.000002:0000000000000100;7", "gtid": "u:1"} | ending
    return Attempt(0, Seqno(1), Epoch(1), 5, 5, known, ())


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (Choice(), True),
        (Choice(since=1000), True),
        (Choice(since=1001), False),
        (Choice(until=1000), True),
        (Choice(until=999), False),
        (Choice(gtid="u:1"), True),
        (Choice(gtid="u:2"), False),
        (Choice(event=EventLocation.parse("b.000002:100")), True),
        (Choice(event=EventLocation.parse("b.000002:0000000000000100;7")), True),
        (Choice(event=EventLocation.parse("b.000002:100;8")), False),
        (Choice(event=EventLocation.parse("b.000003:100")), False),
    ],
)
def test_a_choice_includes_attempts_within_its_bounds(choice: Choice, wanted: bool) -> None:
    assert choice.includes(an_attempt()) is wanted


def test_an_attempt_that_was_given_up_is_included_by_its_seqno_alone() -> None:
    given_up = Attempt(0, Seqno(1), Epoch(1), 5, 5, None, ())
    assert Choice(voided=True).includes(given_up)
    assert not Choice().includes(given_up)
    assert not Choice(voided=True, since=0).includes(given_up)


def test_a_listing_by_time_ends_only_beyond_the_slack_of_clocks() -> None:
    assert not Choice(until=5).ends_before(an_attempt(commit_time=5 + SLACK))
    assert Choice(until=5).ends_before(an_attempt(commit_time=6 + SLACK))
    assert not Choice().ends_before(an_attempt(commit_time=6 + SLACK))


def test_a_malformed_event_id_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        EventLocation.parse("b.000002")
    assert refused.value.where == {"event": "b.000002"}
