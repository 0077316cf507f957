"""Who is calling a service, and may the caller do it: what the WSGI and the ASGI middleware
share."""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import urlsplit

from .client import Client
from .errors import DoorwardError, Forbidden, Unauthenticated, Unavailable

_TIMEOUT = 3.0  # Doorward answers a check within 2 s
_TRIES = 3


class Identity(NamedTuple):
    """Who is calling. Of a server with an API key only tenant_id, role and key_id are set, of
    a person all but key_id; the others are empty."""

    user_id: str
    tenant_id: str  # the tenant whose data the caller may see, and no other
    role: str
    email: str
    session_id: str  # for logs; no credential
    key_id: str
    aal: int  # 2 after a second factor or a passkey, else 1; 0 of a server


def check(client: Client, method: str, headers: Mapping[str, str], action: Optional[str] = None, *,
          via: str = "check", ip: Optional[str] = None) -> Identity:
    """Returns who sent the request, or raises Unauthenticated, Forbidden, RateLimited or
    Unavailable. The names in headers are in lower case. With via="introspection" the client
    needs the key of a service."""
    if via == "introspection":
        return _introspected(client, method, headers, action, ip)
    sent = _forwarded(client, method, headers)
    answer = _again(lambda timeout: client.as_(None).send(
        "GET", "/api/v2/access/check", query={"action": action or None}, headers=sent, timeout=timeout))
    identity = _identity(answer.headers)
    if identity is None:
        raise Unavailable("The answer to the check names nobody.")
    return identity


def introspect(client: Client, credential: str, action: Optional[str] = None, ip: Optional[str] = None) -> Any:
    """Asks about a credential with the key of this service. A refusal of that key is
    Unavailable: passed on, it would look like one of the caller's credential."""
    question = {"credential": credential, **({"action": action} if action else {}), **({"ip": ip} if ip else {})}
    try:
        return _again(lambda timeout: client.as_service().post("/api/v2/access/introspect", question, timeout=timeout))
    except (Unauthenticated, Forbidden) as error:
        raise Unavailable("Doorward refuses the key of this service.", "service_key_refused") from error


def _forwarded(client: Client, method: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    """Returns what Doorward needs of a request, and no more: no cookie but the session's."""
    request_id = headers.get("x-request-id", "")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", request_id):
        request_id = f"req_{uuid.uuid4().hex}"
    # The handshake of a WebSocket is a GET that acts: pages of other origins are refused.
    sent = {"X-Request-Id": request_id, "X-Forwarded-Method": "POST" if _upgrades(headers) else method}
    sessions = _sessions(client, headers)
    if sessions:
        sent["Cookie"] = "; ".join(f"{client.cookie_name}={s}" for s in sessions[:2])
    authorization = headers.get("authorization", "")
    if authorization[:6].lower() == "bearer":
        sent["Authorization"] = authorization[:512]
    for name in ("origin", "sec-fetch-site"):
        if name in headers:
            sent[name] = headers[name][:512]
    return sent


def _sessions(client: Client, headers: Mapping[str, str]) -> List[str]:
    """Returns the different values that may be sessions: a program beside may use the same
    name for values of another form."""
    pairs = (pair.strip().partition("=") for pair in headers.get("cookie", "").split(";"))
    found = (value for name, _, value in pairs if name == client.cookie_name and re.fullmatch(r"[A-Za-z0-9_-]{43}", value))
    return list(dict.fromkeys(found))


def _identity(headers: Mapping[str, str]) -> Optional[Identity]:
    user, tenant, role, email, session, key, aal = (
        headers.get(f"X-Auth-{name}") or "" for name in ("User", "Tenant", "Role", "Email", "Session", "Key", "AAL"))
    person = user and email and session and not key
    server = key and not (user or email or session)
    if not (tenant and role and (person or server)):
        return None
    return Identity(user, tenant, role, email, session, key, int(aal) if aal in ("1", "2") else 0)


def _introspected(client: Client, method: str, headers: Mapping[str, str], action: Optional[str], ip: Optional[str]) -> Identity:
    scheme, _, bearer = headers.get("authorization", "").partition(" ")
    sessions = _sessions(client, headers)
    credentials = sessions + ([bearer.strip()] if scheme.lower() == "bearer" and bearer.strip() else [])
    if len(credentials) != 1:
        raise _refused(Unauthenticated, 401, "unauthenticated", "The request has no credential, or several.")
    if sessions and _acts(method, headers) and _from_elsewhere(client, headers):
        raise _refused(Forbidden, 403, "cross_origin", "A page of another origin sent this request.")
    answer = introspect(client, credentials[0], action, ip)
    if not answer.get("active"):
        raise _refused(Unauthenticated, 401, "unauthenticated", "The credential isn't valid.")
    if action and answer.get("allowed") is not True:
        raise _refused(Forbidden, 403, "forbidden", f"{action} is not allowed.")
    key = answer.get("apiKey")
    if key:
        return Identity("", key["tenantId"], key["effectiveRole"], "", "", key["id"], 0)
    user, session = answer.get("user"), answer.get("session")
    if not user or not session:
        raise Unavailable("The answer to the introspection is incomplete.")
    return Identity(user["id"], user["tenantId"], user["role"], user["email"], session["id"], "", session.get("aal", 1))


def _refused(kind: Callable[..., DoorwardError], status: int, code: str, detail: str) -> DoorwardError:
    return kind({"status": status, "code": code, "detail": detail})


def _upgrades(headers: Mapping[str, str]) -> bool:
    return "upgrade" in headers or "sec-websocket-key" in headers


def _acts(method: str, headers: Mapping[str, str]) -> bool:
    return method not in ("GET", "HEAD", "OPTIONS") or _upgrades(headers)


def _from_elsewhere(client: Client, headers: Mapping[str, str]) -> bool:
    site = headers.get("sec-fetch-site")
    if site:
        return site not in ("same-origin", "none")
    own = urlsplit(client.base_url)
    return "origin" in headers and headers["origin"] != f"{own.scheme}://{own.netloc}"


def _again(call: Callable[[float], Any]) -> Any:
    """Repeats a call that is Unavailable while there is time."""
    end = time.monotonic() + _TIMEOUT
    for attempt in range(1, _TRIES + 1):
        try:
            return call(max(0.001, end - time.monotonic()))
        except Unavailable as error:
            wait = (0.05 * 2 ** attempt if error.retry_after is None else error.retry_after) * random.uniform(1, 1.5)
            if attempt == _TRIES or time.monotonic() + wait >= end:
                raise
            time.sleep(wait)


def is_identity(name: str) -> bool:
    """Reports whether a header is one by which a gateway says who is calling: a client could
    have sent it."""
    return name.lower().replace("_", "-").startswith("x-auth-")


def refusal(error: DoorwardError) -> Tuple[int, str, List[Tuple[str, str]], bytes]:
    """Returns status, its title, headers and body for a refused request. Every fault is 503:
    no restart of Doorward signs anybody out."""
    status = error.status if error.status in (401, 403, 429) else 503
    title = {401: "Unauthorized", 403: "Forbidden", 429: "Too Many Requests", 503: "Service Unavailable"}[status]
    headers = [("Content-Type", "application/problem+json"), ("Cache-Control", "no-store")]
    if status == 401:
        headers.append(("WWW-Authenticate", 'Bearer realm="doorward"'))
    if status in (429, 503):
        headers.append(("Retry-After", str(int(error.retry_after or 1))))
    body = {"type": "about:blank", "title": title, **error.problem, "status": status}
    if status == 503:
        body = {"type": "about:blank", "title": title, "status": 503, "code": "unavailable",
                "detail": "Doorward can't say now who is calling. Try again."}
    text = json.dumps(body).encode()
    return status, title, [*headers, ("Content-Length", str(len(text)))], text
