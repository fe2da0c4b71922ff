"""The section `serve`: the page, the API and the metrics of `thl serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from pydantic import Field, SecretStr, field_validator, model_validator

from connector.config.secret_files import read_secret_files
from connector.config.section import Seconds, Section

LEAST_TOKEN: Final = 16  # characters: a token is guessed over the network


class Serve(Section):
    """The page, the API and the metrics of `thl serve`: see docs/serving.md. Of several `--config` the first counts."""

    host: str = Field(
        "127.0.0.1",
        description="Address on which `thl serve` listens; 0.0.0.0: all interfaces, by IPv4; ::, by IPv6 alone. It has "
        "no TLS, and everyone who reaches it may read: put a proxy before it that has both.",
    )
    port: int = Field(8090, ge=1, le=65535, description="Port of `thl serve`.")
    hosts: tuple[str, ...] = Field(
        (),
        description="Further names by which browsers and programs reach it (the Host header, without the port): that "
        "of a proxy, or of a container. Known are `localhost`, loopback addresses and `serve.host`; a request with "
        "another name is refused, except for /healthz and /readyz.",
    )
    interval: Seconds = Field(5.0, description="Seconds between two readings of a service.")
    history: Path | None = Field(
        None,
        description="File that keeps the history of lags and the last comparisons across restarts. None: in memory "
        "only.",
    )
    history_hours: float = Field(
        24.0, gt=0, le=24 * 31, description="Hours of history that are kept, one point a minute."
    )
    token: SecretStr = Field(
        SecretStr(""),
        description=f"Its holders may use the buttons: offline, heartbeat, load, verify. At least {LEAST_TOKEN} "
        "characters of ASCII; none: everything is read-only.",
    )
    token_file: Path | None = Field(None, description="File that holds the token.")
    command_timeout: Seconds = Field(
        21600.0,
        description="Seconds after which a command of a button is ended; a comparison of large tables may need more.",
    )
    max_behind: Seconds = Field(
        60.0, description="Seconds of lag of producer or applier from which on the page shows a problem."
    )
    min_purge: float = Field(
        3600.0,
        ge=0,
        description="The page shows a problem if the source may purge the next binary log file in fewer seconds.",
    )

    @model_validator(mode="before")
    @classmethod
    def _reads_files(cls, given: Any) -> Any:
        return read_secret_files(given, "token")

    @field_validator("token")
    @classmethod
    def _is_no_guess_and_fits_a_header(cls, token: SecretStr) -> SecretStr:
        if 0 < len(token.get_secret_value()) < LEAST_TOKEN:
            raise ValueError(f"a token of fewer than {LEAST_TOKEN} characters can be guessed: openssl rand -hex 32")
        if not (token.get_secret_value().isascii() and token.get_secret_value().isprintable()):
            raise ValueError("a token with other characters than ASCII has no place in a header: openssl rand -hex 32")
        return token
