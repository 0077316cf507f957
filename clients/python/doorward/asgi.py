"""Middleware for ASGI: Starlette, FastAPI, Django."""

from __future__ import annotations

import asyncio
from typing import Any, Callable

from .check import check, is_identity, refusal
from .client import Client
from .errors import DoorwardError


class Protect:
    """Lets a request or a WebSocket pass whose caller may do the action, and puts the caller
    into scope["doorward"]. action is a name, None for everybody who is signed in, or a
    function of scope that returns either, or False for what is open to all."""

    def __init__(self, app: Callable, client: Client, action: Any = None, *, via: str = "check"):
        self._app, self._client, self._action, self._via = app, client, action, via

    async def __call__(self, scope: dict, receive: Callable, send: Callable) -> None:
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        action = self._action(scope) if callable(self._action) else self._action
        passed = {**scope, "headers": [(n, v) for n, v in scope["headers"] if not is_identity(n.decode("latin-1"))]}
        passed.pop("doorward", None)
        if action is not False:
            try:
                passed["doorward"] = await self._identify(scope, action)
            except DoorwardError as error:
                return await _refuse(scope, receive, send, error)
        await self._app(passed, receive, send)

    async def _identify(self, scope: dict, action: Any):
        headers: dict = {}
        for name, value in scope["headers"]:
            key, text = name.decode("latin-1").lower(), value.decode("latin-1")
            joined = "; " if key == "cookie" else ", "
            headers[key] = headers[key] + joined + text if key in headers else text
        method = scope.get("method", "GET")
        if scope["type"] == "websocket":
            headers.setdefault("upgrade", "websocket")
        ip = (scope.get("client") or [None])[0]
        return await asyncio.to_thread(check, self._client, method, headers, action, via=self._via, ip=ip)


async def _refuse(scope: dict, receive: Callable, send: Callable, error: DoorwardError) -> None:
    if scope["type"] == "websocket":
        await receive()  # websocket.connect
        # Without an extension a server answers every refused handshake with 403; the code of
        # the close keeps 503 apart for those that pass it on.
        return await send({"type": "websocket.close", "code": 1013 if error.status not in (401, 403) else 1008})
    status, _, headers, body = refusal(error)
    sent = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": sent})
    await send({"type": "http.response.body", "body": b"" if scope.get("method") == "HEAD" else body})
