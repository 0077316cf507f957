"""Calls the API."""

from __future__ import annotations

import copy
import datetime
import json
import re
import ssl
import uuid
from typing import Any, Dict, Iterator, Mapping, NamedTuple, Optional, Union
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from .connections import Connections
from .errors import Forbidden, Unauthenticated, Unavailable, error_of
from .identity import Identity


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any


class Decision(NamedTuple):
    """Whether somebody may do something."""

    allowed: bool
    reason: str  # of a refusal, a sentence
    policy_id: str  # the policy that refuses; else empty
    step_up: Optional[Mapping[str, Any]]  # {"acr", "maxAge", "methods"}: the proof of identity that is missing


class Client:
    """Calls one Doorward with one credential, or with none. It may be used by several threads
    and forked processes; connections are kept and reused."""

    def __init__(self, base_url: str, credential: Optional[str] = None, *, key: Optional[str] = None, public_url: Optional[str] = None,
                 cookie_name: str = "JSESSIONID", timeout: float = 5.0, context: Optional[ssl.SSLContext] = None):
        """key is that of this service, for introspection. public_url is the address at which people
        open Doorward (--base-url); give it if base_url is another one. timeout is in seconds, for
        one request. context has certificates of your own."""
        parts = _address("base_url", base_url)
        _address("public_url", public_url or base_url)
        self.base_url, self.public_url = base_url.rstrip("/"), (public_url or base_url).rstrip("/")
        self.cookie_name = cookie_name
        self._path = parts.path.rstrip("/")
        self._credential, self._key, self._timeout = credential, key, timeout
        self._connections = Connections(parts, context)  # shared with what as_ returns

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"  # without the credential

    def as_(self, credential: Optional[str]) -> "Client":
        """Returns a client with the token of a session, an API key, or a service key."""
        other = copy.copy(self)
        other._credential = credential
        return other

    def as_service(self) -> "Client":
        """Returns a client with the key of this service, the parameter key. Raises ValueError
        without one: its calls would be those of nobody."""
        if not self._key:
            raise ValueError("the client needs the parameter key, a service key (dws_…)")
        return self.as_(self._key)

    def close(self) -> None:
        """Closes the idle connections, also of the clients that as_ returned. Later calls open
        others."""
        self._connections.close()

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
        if not path.startswith("/"):
            raise ValueError("the path must begin with a slash")
        merged: Dict[str, str] = {"Accept": "application/json", **(headers or {})}
        own = {"Idempotency-Key": idempotency_key, "If-Match": if_match, "Doorward-Tenant": tenant,
               "Authorization": _bearer(self._credential), "Content-Type": None if body is None else "application/json"}
        merged.update({name: value for name, value in own.items() if value})
        encoded = None if body is None else json.dumps(body).encode()
        repeatable = method == "GET" or path in ("/api/v2/access/introspect", "/access/v1/evaluation")
        raw = self._connections.exchange(
            method, self._path + _fill(path, params or {}) + _query(query or {}), encoded, merged, timeout or self._timeout, repeatable)
        return Answer(raw.status, raw.headers, _body(*raw))

    def list(self, path: str, *, query: Optional[Mapping[str, Any]] = None, **options: Any) -> Iterator[Any]:
        """Iterates over the items of all pages of a list."""
        query = dict(query or {})
        while True:
            page = self.get(path, query=query, **options)
            if not isinstance(page, dict) or "items" not in page:
                raise Unavailable("The answer is not a list.")
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
        """Returns {"user", "session"} of the credential, or raises Unauthenticated."""
        return self.get("/api/v2/auth/session")

    def logout(self) -> None:
        """Ends the session on every node. It is no error if the session has already ended."""
        self.post("/api/v2/auth/logout")

    def introspect(self, credential: str, action: Optional[str] = None, ip: Optional[str] = None, *,
                   resource: Optional[str] = None, timeout: Optional[float] = None) -> Any:
        """Returns whether a credential is valid, whose it is, and whether it may do the action,
        asked with the key of this service. resource="deferred" leaves policies that depend on the
        resource to a later call. If Doorward refuses that key, this raises Unavailable, since a 401
        or 403 would seem to be about the credential."""
        question = {"credential": credential, "action": action or None, "ip": ip, "resource": resource}
        return self._ask("/api/v2/access/introspect", {name: value for name, value in question.items() if value}, timeout)

    def can(self, subject: Union[Identity, str], action: str, resource: Optional[Mapping[str, Any]] = None, *,
            ip: Optional[str] = None, time: Optional[datetime.datetime] = None, timeout: Optional[float] = None) -> Decision:
        """Returns whether the subject, an Identity or the token of a session, may do the action on
        the resource, {"type", "id", "properties"}, or without one on the tenant of the Identity.
        ip is the caller's address, time the time of the request if it isn't now. The key of this
        service may access.evaluate. A refusal is a Decision; Unavailable is raised as by introspect."""
        if resource is None:
            if isinstance(subject, str):
                raise ValueError("with the token of a session, name the resource")
            resource = {"type": "tenant", "id": subject.tenant_id}
        about = {**({"ip": ip} if ip else {}), **({"time": time.astimezone().isoformat()} if time else {})}
        question = {"subject": _subject(subject), "action": {"name": action}, "resource": dict(resource), "context": about}
        answer = self._ask("/access/v1/evaluation", question, timeout)
        if not isinstance(answer, dict) or not isinstance(answer.get("decision"), bool):
            raise Unavailable("The answer is no decision.")
        refusal = answer.get("context") or {}
        return Decision(answer["decision"], refusal.get("reason") or "", refusal.get("policyId") or "", refusal.get("stepUp"))

    def _ask(self, path: str, question: Any, timeout: Optional[float]) -> Any:
        service = self.as_service()
        try:
            return service.post(path, question, timeout=timeout)
        except (Unauthenticated, Forbidden) as error:
            raise Unavailable("Doorward refuses the key of this service.", "service_key_refused", request_id=error.request_id) from error

    def invite(self, email: str, role: str, *, idempotency_key: Optional[str] = None, **more: Any) -> Any:
        """Invites a person. Repeated with the same idempotency_key, it makes one invitation only."""
        body = {"email": email, "role": role, **more}
        return self.post("/api/v2/auth/invite", body, idempotency_key=idempotency_key or str(uuid.uuid4()))


def _subject(subject: Union[Identity, str]) -> Dict[str, Any]:
    """Returns what AuthZEN calls the subject."""
    if isinstance(subject, str):
        return {"type": "session", "id": subject}
    if subject.key_id:
        return {"type": "key", "id": subject.key_id}
    if not subject.user_id:
        raise ValueError("an Identity without user_id and key_id is nobody")
    return {"type": "user", "id": subject.user_id, **({"properties": {"tenantId": subject.tenant_id}} if subject.tenant_id else {})}


def _address(name: str, url: str) -> SplitResult:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.query or parts.fragment:
        raise ValueError(f"{name} must be http or https with a host, without user, query and fragment")
    return parts


def _bearer(credential: Optional[str]) -> Optional[str]:
    """Returns the value of Authorization, without the line break of a key read from a file. What
    can't be a credential is refused here as Doorward would, without repeating it."""
    if not credential:
        return None
    text = credential.strip()
    if not re.fullmatch(r"[!-~]+", text):
        raise Unauthenticated({"status": 401, "code": "unauthenticated", "detail": "The credential has characters that no credential has."})
    return f"Bearer {text}"


def _body(status: int, headers: Mapping[str, str], text: bytes) -> Any:
    """Returns the body of a success: parsed JSON, text such as CSV, or None if empty. An HTML page
    comes from another program."""
    parsed, is_json = _parse(text)
    if not 200 <= status < 300:
        raise error_of(status, headers, parsed)
    if not text:
        return None
    media = headers.get("Content-Type") or ""
    if "html" in media or (not is_json and "json" in media):
        raise Unavailable("The answer is not from Doorward.")
    return parsed if is_json else text.decode("utf-8", "replace")


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
