"""Checks the Java that `thl apply` starts Spark with: that of JAVA_HOME, else of the PATH, else one that is fetched."""

from __future__ import annotations

from collections.abc import Mapping

from connector.check.result import Check, ok, warning
from connector.sandbox.fetching.java import installed_java, is_fetched
from connector.sandbox.fetching.versions import JAVA_LEAST_VERSION


def check_java(environ: Mapping[str, str]) -> Check:
    """Check that there is a Java, of a version that Spark runs on.

    Args:
        environ: its JAVA_HOME and PATH count.
    """
    if found := installed_java(environ):
        return ok("java", f"Java {found.version}, {found.home}")
    if is_fetched():
        return ok("java", f"Java {JAVA_LEAST_VERSION} in the cache")
    return warning(
        "java",
        f"no Java {JAVA_LEAST_VERSION} or newer in JAVA_HOME or on the PATH: `thl apply` fetches one with pip",
        f"on a machine without network install Java {JAVA_LEAST_VERSION} or newer, and set JAVA_HOME to its folder",
    )
