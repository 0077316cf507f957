"""What a request to a service says about its caller. The rules are Doorward's own, so that a
check and an introspection judge the same credential. Names of headers are in lower case."""

from __future__ import annotations

import ipaddress
import re
import uuid
from typing import List, Mapping, Optional
from urllib.parse import urlsplit

_MAX_FORWARDED = 512  # characters; valid values are shorter, so Doorward refuses a truncated one, too
_MAX_HOPS = 8  # of X-Forwarded-For, the last ones: others can be forged
_PORTS = {"http": 80, "https": 443}


def forwarded(method: str, headers: Mapping[str, str], cookie_name: str, ip: Optional[str]) -> Mapping[str, str]:
    """Returns the headers that Doorward needs of a request, and no others: no cookie but the
    session's. ip is the address of the service's peer."""
    request_id = headers.get("x-request-id", "")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,128}", request_id):
        request_id = f"req_{uuid.uuid4().hex}"
    # The handshake of a WebSocket is a GET, but as unsafe as a POST: pages of other origins are refused.
    sent = {"X-Request-Id": request_id, "X-Forwarded-Method": "POST" if _is_upgrade(headers) else method}
    sessions = sessions_of(headers, cookie_name)
    if sessions:
        sent["Cookie"] = "; ".join(f"{cookie_name}={s}" for s in sessions[:2])
    if bearer_of(headers) is not None:
        sent["Authorization"] = _one_line(headers["authorization"])
    for name in ("origin", "sec-fetch-site"):
        if name in headers:
            sent[name] = _one_line(headers[name])
    hops = _hops(headers, ip)
    if hops:
        sent["X-Forwarded-For"] = hops
    return sent


def _one_line(value: str) -> str:
    """Removes line breaks, which some servers keep in a folded header, and truncates the value."""
    return re.sub(r"[\r\n]+", " ", value)[:_MAX_FORWARDED]


def _hops(headers: Mapping[str, str], ip: Optional[str]) -> Optional[str]:
    """Returns X-Forwarded-For as a proxy would send it, and nothing without the peer's address,
    since then all of it could be forged. Doorward believes it from --trusted-proxies alone."""
    peer = address_of(ip)
    if peer is None:
        return None
    before = [_one_line(hop).strip()[:64] for hop in headers.get("x-forwarded-for", "").split(",")]
    return ", ".join([hop for hop in [*before, peer] if hop][-_MAX_HOPS:])


def address_of(ip: Optional[str]) -> Optional[str]:
    """Returns ip if it is an IP address; a Unix socket has none."""
    try:
        return str(ipaddress.ip_address(ip or ""))
    except ValueError:
        return None


def sessions_of(headers: Mapping[str, str], name: str) -> List[str]:
    """Returns the distinct values of cookies that may be sessions. A program on the same host may
    use the same name for values of another form. Only spaces and tabs are trimmed: if other
    characters were, a cookie of another name would pass for this one."""
    pairs = (pair.strip(" \t").partition("=") for pair in headers.get("cookie", "").split(";"))
    found = (value for key, _, value in pairs if key == name and re.fullmatch(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]", value))
    return list(dict.fromkeys(found))


def bearer_of(headers: Mapping[str, str]) -> Optional[str]:
    """Returns what follows the scheme Bearer, perhaps nothing; None for another scheme."""
    found = re.fullmatch(r"[ \t]*bearer(?![^ \t]) *(.*?)[ \t]*", headers.get("authorization", ""), re.IGNORECASE | re.DOTALL)
    return found[1] if found else None


def _is_upgrade(headers: Mapping[str, str]) -> bool:
    return any(name in headers for name in ("upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-protocol"))


def is_cross_origin(method: str, headers: Mapping[str, str], public_url: str) -> bool:
    """Reports whether a page of another origin than Doorward's sent an unsafe request."""
    if method in ("GET", "HEAD", "OPTIONS", "TRACE") and not _is_upgrade(headers):
        return False
    site = headers.get("sec-fetch-site")
    if site:
        return site not in ("same-origin", "none")
    return "origin" in headers and _origin(headers["origin"]) != _origin(public_url, path=True)


def _origin(text: str, path: bool = False) -> Optional[tuple]:
    try:
        parts = urlsplit(text)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or (parts.path and not path):
        return None
    return parts.scheme, parts.hostname, port


def is_identity(name: str) -> bool:
    """Reports whether a header is one by which a gateway says who is calling: a client could
    have sent it."""
    return name.lower().replace("_", "-").startswith("x-auth-")
