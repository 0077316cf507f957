"""Middleware for ASGI: Starlette, FastAPI, Django."""

from __future__ import annotations

import asyncio
from typing import Any, Callable, Dict, Optional

from .check import check, options_of
from .client import Client
from .errors import DoorwardError, Unavailable
from .identity import Identity
from .incoming import is_identity
from .refusal import refusal


async def answer(error: DoorwardError, scope: dict, receive: Callable, send: Callable) -> None:
    """Answers a refused request, or the handshake of a WebSocket, with a problem."""
    if scope["type"] == "http":
        return await _respond("http", error, scope, send)
    await receive()  # websocket.connect
    if "websocket.http.response" in (scope.get("extensions") or {}):
        return await _respond("websocket.http", error, scope, send)
    # A server without this extension answers every refused handshake with 403, which would be
    # a decision.
    if isinstance(error, Unavailable):
        await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": 1013 if isinstance(error, Unavailable) else 1008})


async def _respond(kind: str, error: DoorwardError, scope: dict, send: Callable) -> None:
    status, _, headers, body = refusal(error)
    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    await send({"type": f"{kind}.response.start", "status": status, "headers": sent})
    await send({"type": f"{kind}.response.body", "body": b"" if scope.get("method") == "HEAD" else body})


class Protect:
    """Lets a request or a WebSocket pass if its caller may do the action, and puts the caller
    into scope["doorward"]. action is a name, or None for everybody who is signed in, or a
    function of scope that returns one of these, or False for what is open to all. on_refused
    answers refused requests in place of a problem; the other options are those of check. With
    resource="deferred" policies that depend on the resource are left to the handler, which calls
    identify with it."""

    def __init__(self, app: Callable, client: Client, action: Any = None, *, via: str = "check",
                 max_age: Optional[int] = None, aal: Optional[int] = None, resource: Optional[str] = None,
                 touch: bool = True, on_refused: Callable = answer):
        self._app, self._client, self._action, self._on_refused = app, client, action, on_refused
        self._options = options_of(client, via, max_age, aal, resource, touch)

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        action = self._action(scope) if callable(self._action) else self._action
        passed = {**scope, "headers": [(n, v) for n, v in scope["headers"] if not is_identity(n.decode("latin-1"))]}
        passed.pop("doorward", None)
        if action is not False:
            try:
                passed["doorward"] = await identify(self._client, passed, action, **self._options)
            except DoorwardError as error:
                return await self._on_refused(error, passed, receive, send)
        await self._app(passed, receive, send)


async def identify(client: Client, scope: dict, action: Optional[str] = None, **options: Any) -> Identity:
    """Returns who sent a request or opens a WebSocket. Options and errors are those of check. It
    calls Doorward in a thread of asyncio's pool."""
    headers: Dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        joined = "; " if key == "cookie" else ", "
        headers[key] = headers[key] + joined + text if key in headers else text
    if scope["type"] == "websocket":
        headers.setdefault("upgrade", "websocket")
    ip = (scope.get("client") or [None])[0]
    return await asyncio.to_thread(check, client, scope.get("method", "GET"), headers, action, **{"ip": ip, **options})
