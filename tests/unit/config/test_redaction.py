"""No secret of a configuration leaves the process, not even when the configuration is refused."""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from connector import cli, redaction
from connector.config.kafka import Kafka
from connector.config.loading import load, load_settings
from connector.config.model import Config
from connector.config.reference import in_force
from connector.errors import ConfigError, ConnectorError, printable
from connector.logs import JsonFormatter, TextFormatter, set_up_logs
from connector.spark.settings import SETTINGS

PLANTED = "pl4nted-s3cret"


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


WRONG_FILES = {
    "syntax near a password": f"source:\n  password: {PLANTED}\n  user: [x\n",
    "syntax in a password": f"source: {{password: {PLANTED}: x: y}}\n",
    "a tab": f"source:\n\tpassword: {PLANTED}\n",
    "an alias": f"source: {{password: *{PLANTED}}}\n",
    "a tag": f"source: {{password: !{PLANTED} x}}\n",
    "a control character": f"source: {{password: {PLANTED}\0}}\n",
    "an unknown section": f"sauce: {{password: {PLANTED}}}\n",
    "an unknown key": f"source: {{pass: {PLANTED}}}\n",
    "no blank behind the colon": f"source: {{password:{PLANTED}}}\n",
    "an equals sign": f"source: {{password={PLANTED}}}\n",
    "a password and a wrong port": f"source: {{password: {PLANTED}, port: {PLANTED}}}\n",
    "a list": f"source: {{password: [{PLANTED}]}}\n",
    "a mapping": f"source: {{password: {{{PLANTED}: 1}}}}\n",
    "a url of nothing": f"target: {{url: 'postgresql://u:{PLANTED}@h:x/d'}}\n",
    "a url with a bare at": f"target: {{url: 'postgresql://u:@{PLANTED}@h/d'}}\n",
    "a url in a mapping": f"target: {{url: {{'postgresql://u:{PLANTED}@h/d': 1}}}}\n",
    "properties in a list": f"kafka: {{properties: ['sasl.password={PLANTED}']}}\n",
    "a number among properties": f"kafka: {{properties: {{sasl.password: {PLANTED}, retries: 1}}}}\n",
    "no blank in properties": f"kafka: {{properties: {{sasl.password:{PLANTED}}}}}\n",
    "an address to wait for": f"publish: {{wait_for: ['mysql://u:{PLANTED}@h/x']}}\n",
    "a short hash key": f"source: {{filters: {{hash_key: [{PLANTED}]}}}}\n",
    "a file and a value": f"source: {{password: {PLANTED}, password_file: x}}\n",
    "only text": PLANTED,
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_wrong_file_is_refused_without_its_content(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "thl.yaml").write_text(WRONG_FILES[name])
    monkeypatch.setenv("THL_DEBUG", "1")
    assert cli.run(["config"]) == ConfigError.exit_code
    said = capsys.readouterr()
    assert PLANTED not in said.out + said.err
    assert "thl.yaml" in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", "source.password", PLANTED],
        ["--set", f"source.password:{PLANTED}"],
        ["--set", f"source.password:{PLANTED}=1"],
        ["--set", f"postgresql://u:{PLANTED}@h/d"],
        ["--set", "target.url", f"postgresql://u:{PLANTED}@h/d"],
        ["--set", f"kafka.properties={{sasl.password: {PLANTED}"],
        ["--set", f"source.password={PLANTED}", "--set", f"source.port={PLANTED}"],
    ],
)
def test_wrong_arguments_are_refused_without_the_secret(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["config", *arguments]) == 2
    said = capsys.readouterr()
    assert PLANTED not in said.out + said.err


def test_secrets_are_read_from_files_and_variables(tmp_path: Path) -> None:
    def file(name: str, text: str) -> str:
        (tmp_path / name).write_text(f"{text}\n")
        return str(tmp_path / name)

    found = load(
        None,
        {
            "THL_SOURCE__PASSWORD_FILE": file("a", PLANTED),
            "THL_TARGET__URL_FILE": file("b", "postgresql://u@h/d"),
            "THL_REGISTRY__URL_FILE": file("c", "http://r"),
            "THL_KAFKA__PROPERTIES__SASL_PASSWORD_FILE": file("d", "of librdkafka"),
            "THL_KAFKA__SPARK_PROPERTIES__SASL_JAAS_CONFIG_FILE": file("e", "of Java"),
            "THL_REGISTRY__PROPERTIES__BASIC_AUTH_USER_INFO": "u:of the registry",
            "THL_APPLY__SPARK__spark.hadoop.fs.s3a.secretKey_file": file("f", "of Spark"),
        },
    )
    assert found.source.password.get_secret_value() == PLANTED
    assert found.target.url.get_secret_value() == "postgresql://u@h/d"
    assert found.registry.url.get_secret_value() == "http://r"
    assert found.kafka.properties == {"sasl.password": "of librdkafka"}
    assert found.kafka.spark_properties == {"sasl.jaas.config": "of Java"}
    assert found.registry.properties == {"basic.auth.user.info": "u:of the registry"}
    assert found.apply.spark == {"spark.hadoop.fs.s3a.secretKey": "of Spark"}


def test_printed_configuration_with_secret_file_can_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "password").write_text(PLANTED)
    settings = load_settings(None, {}, [f"source.password_file={tmp_path / 'password'}"])
    (tmp_path / "again.yaml").write_text(in_force(settings))
    assert load(tmp_path / "again.yaml") == settings.config


@pytest.mark.parametrize(
    ("sets", "field", "names"),
    [
        (["source.password_file=none"], "source", ["password_file", "none"]),
        (["source.password_file=there", "source.password=x"], "source", ["password_file"]),
        (["kafka.properties.sasl.password_file=none"], "kafka.properties", ["sasl.password_file", "none"]),
        (["kafka.properties.a_file=there", "kafka.properties.a=x"], "kafka.properties", ["a_file"]),
    ],
)
def test_unusable_secret_file_is_named(sets: list[str], field: str, names: list[str], tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    with pytest.raises(ConfigError) as raised:
        load(None, {}, sets)
    assert list(raised.value.fields) == [field]
    assert all(name in str(raised.value) for name in names)


SECRETS: dict[str, Any] = {
    "source": {"password": "planted source €", "filters": {"hash_key": "planted hash key"}},
    "target": {"url": "postgresql://u:planted%20target@h/d?sslpassword=planted-key"},
    "registry": {"url": "http://u:planted-url@r", "properties": {"basic.auth.user.info": "u:planted-registry"}},
    "publish": {"wait_for": ["mysql://u:planted-replica@h"]},
    "kafka": {
        "properties": {"sasl.password": 'planted "kafka"', "ssl.key.password": "planted-key-password"},
        "spark_properties": {"sasl.jaas.config": 'x required username="u" password="planted-jaas";'},
    },
    "apply": {"spark": {"spark.driver.extraJavaOptions": "-Dx.trustStorePassword=planted-store -Dy=z"}},
}
VALUES = [
    "planted source €", "planted hash key", "planted target", "planted%20target", "planted-key", "planted-url",
    "planted-registry", "planted-replica", 'planted "kafka"', "planted-key-password",
    "planted-jaas", "planted-store",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES)
def test_errors_and_log_lines_hide_secrets(value: str) -> None:
    Config.model_validate(SECRETS)
    for known in (value, json.dumps(value)[1:-1], repr(value)[1:-1]):
        shown = str(ConnectorError(f"x {known} y", hint=f"or {known}", id=known))
        assert "planted" not in shown, shown
        record = logging.LogRecord("connector.x", logging.INFO, "", 0, f"said {known}", (), None)
        record.why = ValueError(known)
        for formatter in (TextFormatter(), JsonFormatter()):
            assert "planted" not in formatter.format(record)


def test_unknown_url_is_shown_without_password() -> None:
    assert redaction.redacted("at https://u:any@proxy/x") == "at https://u:**********@proxy/x"
    hint = "postgresql://user:password@host:port/database or mysql://[user[:password]@]host[:port]"
    assert redaction.redacted(hint) == hint


def test_word_containing_short_secret_is_kept() -> None:
    redaction.remember(["order", "x"])
    assert redaction.redacted("orders of order x") == "orders of ********** x"


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("Secret7x", "libpq said:\nSecret7x is wrong"),
        ("Secret7x", "a\tSecret7x"),
        ("Secret7x", "sasl \0user\0Secret7x"),
        ("Secret7x", "a\u2028Secret7x"),
        ("Secret7x", "a\U000e0001Secret7x"),
        ("Secret7x", "url thl%3ASecret7x%40host"),
        ("Secret7x", "repr: b'\\x00u\\x00Secret7x'"),
        ("pa\\ss\aSecret7x", "bad pa\\ss\aSecret7x here"),
    ],
)
@pytest.mark.parametrize("where", ["text", "json", "page", "error", "id of an error"])
def test_secret_beside_an_escaped_character_is_hidden(secret: str, text: str, where: str) -> None:
    redaction.remember([secret])
    record = logging.LogRecord("connector.x", logging.INFO, "", 0, text, (), None)
    shown = {
        "text": lambda: TextFormatter().format(record),
        "json": lambda: JsonFormatter().format(record),
        "page": lambda: printable(text, "\n"),
        "error": lambda: str(ConnectorError(text)),
        "id of an error": lambda: ConnectorError("x", id=text).located,
    }[where]()
    assert redaction.HIDDEN in shown
    assert "Secret7x" not in shown


def test_json_log_line_stays_json_whatever_the_secrets_are() -> None:
    redaction.remember(["level", "12345", "planted"])
    record = logging.LogRecord("connector.x", logging.INFO, "", 0, "m 12345", (), None)
    record.seqno, record.tables, record.why = (
        12345,
        ["planted", {"level": "planted", "n": 12345}],
        {ValueError("planted")},
    )
    event = json.loads(JsonFormatter().format(record))
    assert event.pop("why") == f"{{ValueError('{redaction.HIDDEN}')}}"
    del event["time"]
    assert event == {
        "level": "INFO",
        "logger": "connector.x",
        "event": f"m {redaction.HIDDEN}",
        "seqno": 12345,
        "tables": [redaction.HIDDEN, {"level": redaction.HIDDEN, "n": 12345}],
    }


def test_thread_failure_is_logged_without_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    Config.model_validate(SECRETS)
    before = threading.excepthook
    try:
        set_up_logs("text")
        thread = threading.Thread(target=int, args=("planted-url",))
        thread.start()
        thread.join()
    finally:
        threading.excepthook = before
        logging.basicConfig(handlers=[logging.StreamHandler(sys.__stderr__)], force=True)
    said = capsys.readouterr().err
    assert "a thread has failed" in said
    assert "invalid literal" in said
    assert "planted" not in said


def test_section_repr_hides_properties() -> None:
    assert PLANTED not in repr(Kafka(properties={"sasl.password": PLANTED}))


LONG = 100_000


@pytest.mark.parametrize(
    "text",
    [
        "a" * LONG,
        "password" * (LONG // 8),
        "password " * (LONG // 9),
        "password=" * (LONG // 9),
        'password="' + '\\"password=' * (LONG // 11),
        "password" + " " * LONG,
        "://a:" * (LONG // 5),
    ],
    ids=["a word", "names", "words", "assignments", "an open quote", "blanks", "addresses"],
)
def test_long_text_is_searched_in_linear_time(text: str) -> None:
    assert PLANTED not in list(redaction.secrets_of("x", text))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("url", "x://u:pa/planted-rest@h/d", "planted-rest"),
        ("url", "x://u:planted%2Frest@h/d", "planted%2frest"),
        ("url", "http://us%65r:planted%20one@h", "dXNlcjpwbGFudGVkIG9uZQ=="),
        ("basic.auth.user.info", "user:planted one", "dXNlcjpwbGFudGVkIG9uZQ=="),
        ("url", "postgresql://h/d?password=planted%20one", "planted one"),
        ("x", "x=password=planted", "planted"),
        ("x.jaas.config", r'x required password="planted\"one";', 'planted"one'),
        ("password", "planted€one", repr("planted€one".encode())[2:-1]),
        ("password", "two planted words", "two+planted+words"),
        ("password", "planted€'and\"both", repr("planted€'and\"both")[1:-1]),
        ("ssl.key.pem", "-----BEGIN KEY-----\nplantedplantedplanted\nx==\n-----END KEY-----", "plantedplantedplanted"),
        ("fs.azure.sas.box.account", "planted", "planted"),
        ("ssl.keystore.key", "planted", "planted"),
        ("fs.gs.auth.service.account.private.key", "planted", "planted"),
        ("fs.s3a.encryption.key", "planted", "planted"),
        ("fs.s3a.server-side-encryption.key", "planted", "planted"),
        ("x", "-----BEGIN PRIVATE KEY----- plantedplanted -----END PRIVATE KEY-----", "plantedplanted"),
        ("x", r"-----BEGIN PRIVATE KEY-----\nplantedplanted\n-----END PRIVATE KEY-----", "plantedplanted"),
    ],
)
def test_secret_is_hidden_in_every_encoding(name: str, value: str, said: str) -> None:
    redaction.remember(redaction.secrets_of(name, value))
    assert redaction.redacted(f"said {said} of it") == f"said {redaction.HIDDEN} of it"
    assert redaction.redacted("-----BEGIN KEY-----") == "-----BEGIN KEY-----"


@pytest.mark.parametrize("name", ["sasl.oauthbearer.assertion.private.key.file", "spark.io.encryption.keySizeBits"])
def test_name_of_file_or_size_is_no_secret(name: str) -> None:
    assert not redaction.is_secret(name)


def test_private_key_is_hidden_in_printed_configuration_whatever_its_name() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nplantedplantedplanted\n-----END RSA PRIVATE KEY-----"
    settings = load_settings(
        None,
        {},
        [f"kafka.spark_properties.ssl.keystore.key={PLANTED}", f"apply.spark.spark.hadoop.x={json.dumps(key)}"],
    )
    printed = in_force(settings)
    assert "planted" not in printed
    assert PLANTED not in printed


@pytest.mark.parametrize(
    "text",
    [
        "spark.kafka.ssl.keystore.key",
        "spark.hadoop.fs.s3a.encryption.key",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_spark_hides_keys_by_name_or_value(text: str) -> None:
    assert re.search(SETTINGS["spark.redaction.regex"], text)


def test_longer_of_two_secrets_with_same_start_is_hidden_whole() -> None:
    redaction.remember(["planted-first", "planted-first-and-more"])
    assert redaction.redacted("planted-first-and-more") == redaction.HIDDEN


def test_secrets_in_refused_list_are_hidden() -> None:
    with pytest.raises(ConfigError):
        load(None, {}, ["publish.wait_for=[nonsense://u:planted@h]", "source.port=x"])
    assert redaction.redacted("planted") == redaction.HIDDEN
