"""Headless Chromium, from the distribution: looks at pages as a user does, and makes their pictures."""

from __future__ import annotations

import base64
import json
import os
import platform
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final, Self

from connector.errors import SandboxError
from connector.fetching.apt import unpack
from connector.fetching.cache import Cache

SUITE: Final = "bookworm"
NAME: Final = f"chromium-{SUITE}"


def chromium_folder() -> Path:
    """The folder with the unpacked packages.

    Raises:
        SandboxError: the distribution's packages cannot be fetched.
    """
    return Cache().ensure(
        NAME, lambda at: unpack(at, NAME, suite=SUITE, packages=["chromium", "chromium-driver", "fonts-dejavu-core"])
    )


class DriverError(Exception):
    """Raised when a command fails, e.g. a script because the page is being replaced by another."""


class Browser:
    """A headless Chromium that is told what to do by the WebDriver protocol.

    Args:
        folder: for its profile and logs.

    Raises:
        SandboxError: the packages cannot be fetched, or it does not start.
    """

    def __init__(self, folder: Path) -> None:
        root = chromium_folder()
        libraries = root / "usr" / "lib" / f"{platform.machine()}-linux-gnu"
        found = [libraries, root / "lib" / libraries.name, libraries / "pulseaudio"]
        fonts = folder / "fonts.conf"
        fonts.write_text(
            f'<?xml version="1.0"?><fontconfig><dir>{root}/usr/share/fonts</dir>'
            f"<cachedir>{folder}/fonts</cachedir></fontconfig>"
        )
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(map(str, found)),
            "FONTCONFIG_FILE": str(fonts),
            "HOME": str(folder),
        }
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        self._log = folder / "chromedriver.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(root / "usr/bin/chromedriver"), f"--port={port}"], env=environment, stdout=log, stderr=log
            )
        self._base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"]
        arguments += [f"--user-data-dir={folder}/profile", "--disable-background-networking", "--hide-scrollbars"]
        options = {"binary": str(root / "usr/lib/chromium/chromium"), "args": arguments}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            self._session = f"/session/{self._begun({'capabilities': {'alwaysMatch': capabilities}})}"
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _begun(self, body: dict[str, Any]) -> str:
        for _ in range(200):
            try:
                return str(self._send("POST", "/session", body)["sessionId"])
            except DriverError as error:
                raise SandboxError(f"Chromium does not start: {error}") from error
            except OSError:
                if self._process.poll() is not None:
                    break
                time.sleep(0.1)
        raise SandboxError(f"chromedriver does not start: {self._log.read_text()[-500:]}")

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._base + path, data=data, method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as error:
            raise DriverError(error.read().decode()[:1000]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._send("DELETE", self._session)
        finally:
            self._process.terminate()
            self._process.wait(30)

    def open(self, url: str) -> None:
        """Load a page."""
        self._send("POST", f"{self._session}/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """Return what a script in the page returns.

        Raises:
            DriverError: it cannot run.
        """
        return self._send("POST", f"{self._session}/execute/sync", {"script": script, "args": list(arguments)})

    def text(self) -> str:
        """Return the page's text; "" while the page is being replaced."""
        try:
            return str(self.run("return document.readyState === 'complete' ? document.body.innerText : ''"))
        except DriverError:
            return ""

    def devtools(self, command: str, **parameters: object) -> Any:
        """Run a command of the DevTools protocol."""
        return self._send("POST", f"{self._session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        body = {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}
        self._send("POST", f"{self._session}/actions", body)

    def size(self, width: int, height: int) -> None:
        """Set the size of the page's view."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def prefer(self, scheme: str) -> None:
        """Prefer light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", features=features)

    def picture(self) -> bytes:
        """Return a PNG of the view."""
        return base64.b64decode(self._send("GET", f"{self._session}/screenshot"))

    def errors(self) -> list[str]:
        """Return what the console has had since the last call."""
        found = self._send("POST", f"{self._session}/se/log", {"type": "browser"})
        return [str(one["message"]) for one in found]
