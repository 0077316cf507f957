"""Calls the API."""

from __future__ import annotations

import copy
import http.client
import json
import re
import uuid
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional
from urllib.parse import quote, urlencode, urlsplit

from .errors import Unavailable, error_of


_MAX_IDLE = 32


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any


class Client:
    """Calls one Doorward with one credential, or with none. It may be used by several threads;
    connections are kept and reused."""

    def __init__(self, base_url: str, credential: Optional[str] = None, *, key: Optional[str] = None,
                 cookie_name: str = "JSESSIONID", timeout: float = 5.0):
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.query or parts.fragment:
            raise ValueError("base_url must be http or https with a host, without user, query and fragment")
        self.base_url = base_url.rstrip("/")
        self.cookie_name = cookie_name
        self._parts, self._path = parts, parts.path.rstrip("/")
        self._credential, self._key, self._timeout = credential, key, timeout
        self._idle: List[http.client.HTTPConnection] = []  # shared with what as_ returns

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"  # without the credential

    def as_(self, credential: Optional[str]) -> "Client":
        """Returns a client with the token of a session, an API key, or a service key."""
        other = copy.copy(self)
        other._credential = credential
        return other

    def as_service(self) -> "Client":
        return self.as_(self._key)

    def get(self, path: str, **options: Any) -> Any:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.request("POST", path, body=body, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.request("PUT", path, body=body, **options)

    def patch(self, path: str, body: Any = None, **options: Any) -> Any:
        return self.request("PATCH", path, body=body, **options)

    def delete(self, path: str, **options: Any) -> Any:
        return self.request("DELETE", path, **options)

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Returns the body of a successful answer, or raises a DoorwardError."""
        return self.send(method, path, **options).body

    def send(self, method: str, path: str, *, params: Optional[Mapping[str, str]] = None,
             query: Optional[Mapping[str, Any]] = None, body: Any = None, headers: Optional[Mapping[str, str]] = None,
             idempotency_key: Optional[str] = None, if_match: Optional[str] = None, tenant: Optional[str] = None,
             timeout: Optional[float] = None) -> Answer:
        """As request, and returns the status and the headers as well."""
        given: Dict[str, str] = {"Accept": "application/json", **(headers or {})}
        for name, value in (("Idempotency-Key", idempotency_key), ("If-Match", if_match), ("Doorward-Tenant", tenant)):
            if value:
                given[name] = value
        if self._credential:
            given["Authorization"] = f"Bearer {self._credential}"
        sent = None
        if body is not None:
            sent = json.dumps(body).encode()
            given["Content-Type"] = "application/json"
        address = self._path + _fill(path, params or {}) + _query(query or {})
        status, answered, text = self._exchange(method, address, sent, given, timeout or self._timeout)
        parsed, is_json = _parse(text)
        if not 200 <= status < 300:
            raise error_of(status, answered, parsed)
        if text and not is_json and "json" in (answered.get("Content-Type") or ""):
            raise Unavailable("The answer is no JSON.")
        return Answer(status, answered, parsed if is_json else (text.decode("utf-8", "replace") or None))

    def list(self, path: str, *, query: Optional[Mapping[str, Any]] = None, **options: Any) -> Iterator[Any]:
        """Iterates over the items of all pages of a list."""
        query = dict(query or {})
        while True:
            page = self.get(path, query=query, **options)
            yield from page["items"]
            if not page.get("nextCursor"):
                return
            query["cursor"] = page["nextCursor"]

    def login(self, email: str, password: str, tenant_id: Optional[str] = None) -> Any:
        """Returns {"token", "user", …}; as_(token) is the client of that session."""
        body = {"email": email, "password": password}
        if tenant_id:
            body["tenantId"] = tenant_id
        return self.as_(None).post("/api/v2/auth/login", body)

    def session(self) -> Any:
        return self.get("/api/v2/auth/session")

    def logout(self) -> None:
        self.post("/api/v2/auth/logout")

    def invite(self, email: str, role: str, *, idempotency_key: Optional[str] = None, **more: Any) -> Any:
        """Makes one invitation, also when it is repeated with the same key."""
        body = {"email": email, "role": role, **more}
        return self.post("/api/v2/auth/invite", body, idempotency_key=idempotency_key or str(uuid.uuid4()))

    def _exchange(self, method: str, address: str, body: Optional[bytes], headers: Mapping[str, str], timeout: float):
        """Sends once. A kept connection that the server has closed is replaced, so only requests
        that may be repeated use one. Neither a proxy nor a redirect is followed: it could see
        the credential."""
        repeatable = method == "GET" or address.endswith("/access/introspect")
        kept = self._kept() if repeatable else None
        for connection in (kept, None) if kept else (None,):
            fresh = connection is None
            connection = connection or self._connect()
            connection.timeout = timeout
            if connection.sock:
                connection.sock.settimeout(timeout)
            try:
                connection.request(method, address, body, dict(headers))
                response = connection.getresponse()
                text = response.read()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
                connection.close()
                if fresh:
                    raise Unavailable("Doorward doesn't answer.") from error
                continue
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                raise Unavailable("Doorward doesn't answer.") from error
            if repeatable and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
            else:
                connection.close()
            return response.status, response.headers, text
        raise AssertionError("unreachable")

    def _kept(self) -> Optional[http.client.HTTPConnection]:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self) -> http.client.HTTPConnection:
        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        return kind(self._parts.hostname, self._parts.port)


def _fill(path: str, params: Mapping[str, str]) -> str:
    def value(match: "re.Match[str]") -> str:
        given = str(params.get(match[1], ""))
        if given in ("", ".", ".."):  # dots would be removed from the path
            raise ValueError(f"the parameter {match[1]} of the path is missing")
        return quote(given, safe="")

    return re.sub(r"\{(\w+)\}", value, path)


def _query(query: Mapping[str, Any]) -> str:
    given = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items() if value is not None}
    return "?" + urlencode(given) if given else ""


def _parse(text: bytes):
    try:
        return json.loads(text), True
    except ValueError:
        return None, False
