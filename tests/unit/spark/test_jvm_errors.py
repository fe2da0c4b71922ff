"""What Spark's JVM says as it starts: passed on, or the cause of an error."""

from __future__ import annotations

import os

import pytest

from connector.clock import SystemClock
from connector.spark import jvm_errors
from connector.spark.jvm_errors import JvmErrors

NOISE = b"WARNING: Using incubator modules: jdk.incubator.vector\n"


class NotStarted(Exception):
    pass


@pytest.mark.parametrize(
    ("said", "passed_on", "cause"),
    [
        (NOISE + b"a\nb\n", "a\nb\n", ""),
        (b"", "", ""),
        (
            b'Exception in thread "main" org.apache.spark.SparkException: Master must be one of these\n'
            b"\tat org.apache.spark.Some.thing(Some.scala:1)\n\t... 3 more\n",
            "",
            "org.apache.spark.SparkException: Master must be one of these",
        ),
        (
            b"first\nError occurred during initialization of VM\nToo small maximum heap\nfurther\n",
            "first\n",
            "Error occurred during initialization of VM: Too small maximum heap",
        ),
        (
            b"Unrecognized VM option 'X'\nError: Could not create the Java Virtual Machine.\n",
            "",
            "Unrecognized VM option 'X': Error: Could not create the Java Virtual Machine.",
        ),
    ],
)
def test_last_words_are_the_cause_and_the_rest_is_passed_on(
    said: bytes, passed_on: str, cause: str, capfd: pytest.CaptureFixture[str]
) -> None:
    errors = JvmErrors()
    with pytest.raises(NotStarted), errors as output:
        os.write(output, said)
        raise NotStarted
    assert errors.cause() == cause
    assert capfd.readouterr().err == passed_on


def test_a_jvm_that_has_started_may_say_anything(capfd: pytest.CaptureFixture[str]) -> None:
    errors = JvmErrors()
    with errors as output:
        os.write(output, b"Error: of a library\n")
        jvms = os.dup(output)
    os.write(jvms, b'Exception in thread "main"\n')
    os.close(jvms)
    errors._thread.join()
    assert sorted(capfd.readouterr().err.splitlines()) == ["Error: of a library", 'Exception in thread "main"']


def test_a_jvm_starts_where_standard_error_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, closed = os.pipe()
    os.close(reading)  # writing fails, as it does when no process reads the log any more
    monkeypatch.setattr(jvm_errors, "_STANDARD_ERROR", closed)
    errors = JvmErrors()
    with errors as output:
        os.write(output, b"Error: of a library\nfurther\n")
        while len(errors._last) < 2:
            SystemClock().sleep(0.01)
        jvms = os.dup(output)
    os.write(jvms, b"more\n")
    os.close(jvms)
    errors._thread.join()
    os.close(closed)
