"""The connections to one Doorward."""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import time
from typing import Any, List, Mapping, NamedTuple, Optional
from urllib.parse import SplitResult

from .errors import Unavailable

_MAX_IDLE = 32


class RawAnswer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: bytes


class Connections:
    """Sends requests, and keeps idle connections for the next ones. Threads share them. A forked
    process opens its own: two processes on one connection would get each other's answers."""

    def __init__(self, address: SplitResult, context: Optional[ssl.SSLContext]):
        self._address, self._context = address, context
        self._idle: List[http.client.HTTPConnection] = []
        self._process = os.getpid()

    def exchange(self, method: str, path: str, body: Optional[bytes], headers: Mapping[str, str], timeout: float, repeatable: bool) -> RawAnswer:
        """Sends a request. If it fails on an idle connection, which the server may have closed, it
        is sent again on a new one; so only repeatable requests use an idle one. No proxy is used
        and no redirect followed: either could see the credential. timeout, in seconds, is for both
        attempts together."""
        end = time.monotonic() + timeout
        reused = self._take_idle() if repeatable else None
        for connection in (reused, self._connect()) if reused else (self._connect(),):
            try:
                answered = _once(connection, method, path, body, headers, end)
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                if connection is not reused or isinstance(error, socket.timeout):
                    raise Unavailable("Doorward doesn't answer.") from error
            else:
                self._keep(connection, repeatable)
                return answered
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Closes the idle connections of this process."""
        while True:
            connection = self._take_idle()
            if connection is None:
                return
            connection.close()

    def _take_idle(self) -> Optional[http.client.HTTPConnection]:
        if self._process != os.getpid():
            for connection in self._idle:
                connection.close()  # the other process still has it
            self._idle, self._process = [], os.getpid()
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _keep(self, connection: http.client.HTTPConnection, repeatable: bool) -> None:
        if repeatable and len(self._idle) < _MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            return http.client.HTTPSConnection(host, port, context=self._context)
        return http.client.HTTPConnection(host, port)


def _once(connection: http.client.HTTPConnection, method: str, path: str, body: Optional[bytes], headers: Mapping[str, str], end: float) -> RawAnswer:
    connection.timeout = _seconds_left(end)
    if connection.sock:
        connection.sock.settimeout(_seconds_left(end))
    connection.response_class = lambda sock, **more: _response(sock, end, **more)  # type: ignore[assignment]
    connection.request(method, path, body, dict(headers))
    response = connection.getresponse()
    return RawAnswer(response.status, response.headers, response.read())


def _seconds_left(end: float) -> float:
    return max(0.001, end - time.monotonic())


def _response(sock: socket.socket, end: float, **more: Any) -> http.client.HTTPResponse:
    response = http.client.HTTPResponse(sock, **more)
    response.fp = io.BufferedReader(_Reader(response.fp.detach(), sock, end))
    return response


class _Reader(io.RawIOBase):
    """Reads from a socket until the time end. A socket's own timeout is for a single read, so an
    answer that comes byte by byte could take for ever."""

    def __init__(self, raw: Any, sock: socket.socket, end: float):
        self._raw, self._sock, self._end = raw, sock, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_seconds_left(self._end))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        super().close()
        self._raw.close()
