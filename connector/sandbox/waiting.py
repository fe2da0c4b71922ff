"""Waiting until a server answers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from connector.errors import SandboxError
from connector.sandbox.program import Program

_PAUSE = 0.05


def wait_until(program: Program, answers: Callable[[], bool], *, timeout: float) -> None:
    """Ask `answers` again and again until it says yes.

    Raises:
        SandboxError: when the program ends first, or `timeout` seconds pass; with the end of its log.
    """

    def ended_or_answers() -> bool:
        return not program.running or answers()

    try:
        Retrying(retry=retry_if_result(lambda yes: not yes), stop=stop_after_delay(timeout), wait=wait_fixed(_PAUSE))(
            ended_or_answers
        )
    except RetryError as error:
        program.kill()
        raise SandboxError(
            f"{program.name} did not answer within {timeout:.0f} s\n{program.log_tail()}", log=program.log
        ) from error
    if not program.running:
        raise SandboxError(f"{program.name} ended while starting\n{program.log_tail()}", log=program.log)


def exchange(host: str, port: int, request: bytes, *, answer_bytes: int = 1) -> bytes:
    """Send `request` and return the first bytes of the answer; empty when there is none."""
    try:
        with closing(socket.create_connection((host, port), timeout=2.0)) as connection:
            connection.sendall(request)
            answer = b""
            while len(answer) < answer_bytes and (more := connection.recv(answer_bytes - len(answer))):
                answer += more
            return answer
    except OSError:
        return b""
