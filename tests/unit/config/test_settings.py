"""File, environment and flags over each other, and errors that name the field and its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from connector.config.loading import load, load_settings
from connector.config.model import Config
from connector.config.reference import HIDDEN, Field, fields, in_force, reference
from connector.errors import ConfigError

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def a_file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "some.yaml"
    file.write_text(text)
    return file


def test_without_anything_the_defaults_are_in_force() -> None:
    assert load() == Config()


def test_later_layers_win(tmp_path: Path) -> None:
    file = a_file(tmp_path, "service: shop\nsource: {host: from-file, port: 3307, user: from-file}")
    environ = {"THL_SOURCE__PORT": "3308", "THL_SOURCE__USER": "from-environment"}
    config = load(file, environ, ["source.user=from-flag", "source.user=the-last"])
    assert (config.service, config.source.host, config.source.port) == ("shop", "from-file", 3308)
    assert config.source.user == "the-last"


def test_thl_yaml_in_the_working_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "thl.yaml").write_text("service: found")
    assert load().service == "found"
    assert load(a_file(tmp_path, "")).service == "default"


def test_lists_mappings_and_text_that_looks_like_a_number() -> None:
    config = load(
        None,
        {"THL_KAFKA__PROPERTIES__sasl.username": "007", "THL_SOURCE__FILTERS__IGNORE": "[a.*, b]"},
        ["source.filters.do=x.*, y", "kafka.properties.security.protocol=SSL", "source.password=1234"],
    )
    assert config.kafka.properties == {"sasl.username": "007", "security.protocol": "SSL"}
    assert (config.source.filters.do, config.source.filters.ignore) == (("x.*", "y"), ("a.*", "b"))
    assert config.source.password.get_secret_value() == "1234"


def test_variables_of_others_are_left_alone() -> None:
    assert load(None, {"THL_CACHE": "/x", "THL_DEBUG": "1", "HOME": "/", "THL_TEST_STACK": "compose"}) == Config()


@pytest.mark.parametrize(
    ("environ", "sets", "named"),
    [
        ({}, ["source.port=99999"], r"source\.port: .*\(from --set source\.port\)"),
        ({"THL_SOURCE__PORT": "x"}, [], r"source\.port: .*\(from THL_SOURCE__PORT\)"),
        ({"THL_SOURCE__PROT": "1"}, [], r"source\.prot: there is no such field \(from THL_SOURCE__PROT\)"),
        ({}, ["nothing.here=1"], r"nothing: there is no such field \(from --set nothing\.here\)"),
        ({}, ["source.port"], "not section.field=value"),
        ({}, ["=1"], "not section.field=value"),
        ({"THL_SOURCE": "1"}, [], "THL_SOURCE names a section"),
        ({}, ["source=1"], r"source: .*\(from --set source\)"),
        ({}, ["source.filters.do=[a"], r"source\.filters\.do: not YAML"),
    ],
)
def test_an_error_names_the_field_and_its_place(environ: dict[str, str], sets: list[str], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        load(None, environ, sets)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("source: {port: eleven}", r"source\.port: .*some\.yaml"),
        ("source: {prot: 1}", r"source\.prot: there is no such field \(from .*some\.yaml\)"),
        ("[1, 2]", "not a mapping"),
        ("a: [", "not YAML"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as raised:
        load(a_file(tmp_path, text))
    assert "some.yaml" in str(raised.value)


def test_several_errors_are_told_at_once() -> None:
    with pytest.raises(ConfigError, match=r"source\.port.*kafka\.partitions"):
        load(None, {}, ["source.port=0", "kafka.partitions=0"])


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(Path("nowhere.yaml"))


def test_a_secret_is_in_no_message() -> None:
    with pytest.raises(ConfigError) as raised:
        load(
            None, {"THL_SOURCE__PASSWORD": "hunter2"}, ["source.port=hunter2", "target.url=hunter2", "target.retries=x"]
        )
    assert "hunter2" not in str(raised.value)


def test_what_is_in_force_can_be_read_again(tmp_path: Path) -> None:
    settings = load_settings(
        None,
        {"THL_SERVICE": "shop"},
        ["source.filters.do=a.*", "kafka.properties.linger.ms=5", "apply.checkpoint_dir=/x y", "source.start=a:1"],
    )
    text = in_force(settings)
    assert load(a_file(tmp_path, text)) == settings.config
    assert "# from THL_SERVICE" in text
    assert "# from --set source.start" in text


def test_secrets_are_hidden() -> None:
    settings = load_settings(
        None,
        {"THL_KAFKA__PROPERTIES__sasl.password": "hunter2"},
        ["source.password=hunter2", "target.url=postgresql://me:hunter2@db:5432/shop"],
    )
    text = in_force(settings)
    assert "hunter2" not in text
    assert yaml.safe_load(text)["target"]["url"] == f"postgresql://me:{HIDDEN}@db:5432/shop"


ELSEWHERE = "postgresql://user@host/db" + in_force(load_settings(None, {}, []))


# A password that other settings hold by chance, as 0000, is hidden there too, which may be no YAML any more.
@given(password=st.text(min_size=3).filter(lambda text: text not in ELSEWHERE))
def test_no_password_in_an_address_is_shown(password: str) -> None:
    with pytest.raises(ConfigError) as known:
        load(None, {}, ["target.url=postgresql://user:@@@host/db"])
    for url in (f"postgresql://user:{password}@host/db", f"postgresql://user@host/db?password={password}"):
        try:
            load(None, {}, [f"target.url={url}"])
        except ConfigError as refused:
            assert str(refused) == str(known.value)
            continue
        shown = yaml.safe_load(in_force(load_settings(None, {}, [f"target.url={url}"])))["target"]["url"]
        assert password not in shown.replace(HIDDEN, "")


def test_every_field_is_documented_and_can_be_set_by_its_variable() -> None:
    for item in fields():
        if isinstance(item, Field):
            assert item.description.endswith("."), item.name
            environ = {} if item.default == "null" else {item.variable: item.default.strip('"')}
            settings = load_settings(None, environ)
            assert settings.config == Config(), item.name
            assert list(settings.origins.values()) == list(environ), item.name


def test_the_reference_page_is_what_the_model_says() -> None:
    assert (DOCS / "configuration.md").read_text() == reference(), "thl config --reference > docs/configuration.md"


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ("{gtid: g}", "seqno"),
        ("{seqno: n, gtid: N}", "a name of its own"),
        ("{seqno: 'a b'}", "pattern"),
        ("{seqno: n, time: t}", "commit_time"),
    ],
)
def test_columns_that_tell_the_transaction_have_an_order_and_names(tmp_path: Path, columns: str, named: str) -> None:
    file = a_file(tmp_path, f"target: {{transaction_columns: {columns}}}")
    with pytest.raises(ConfigError, match=rf"target\.transaction_columns|target.*{named}") as raised:
        load(file)
    assert named in str(raised.value)
    assert load(None, {}, ["target.transaction_columns.seqno=n"]).target.transaction_columns == {"seqno": "n"}
