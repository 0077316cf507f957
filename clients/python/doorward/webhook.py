"""Receives Doorward's webhooks, which are signed by the rules of Standard Webhooks 1.0.0
(https://www.standardwebhooks.com)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from typing import Any, Callable, List, Mapping, NamedTuple, Union

_MAX_AGE = 300  # seconds between the signature and now, either way


class InvalidWebhook(Exception):
    """Why a request is no webhook of the sender who has the secret."""


class Message(NamedTuple):
    id: str  # the same when the message comes again
    type: str  # such as "user.role"
    timestamp: str  # RFC 3339
    data: Mapping[str, Any]  # the audit event


def verify(secrets: Union[str, List[str]], headers: Mapping[str, str], body: bytes, *, now: Callable[[], float] = time.time) -> Message:
    """Returns the message of a request, or raises InvalidWebhook. Each secret is a whsec_…: give
    both during the grace period of a new one. headers finds names in any case, as those of Flask
    and Django do, or has them in lower case. body has the bytes as they came. Raises ValueError for
    another kind of secret."""
    keys = [_key(secret) for secret in ([secrets] if isinstance(secrets, str) else secrets)]
    sent, at, signatures = (headers.get(name) or "" for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not sent or not re.fullmatch("[0-9]{1,12}", at) or not signatures:
        raise InvalidWebhook("the headers of a webhook are missing")
    signed = f"{sent}.{at}.".encode() + body
    valid = ["v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode() for key in keys]
    if not any(hmac.compare_digest(one.encode(), other.encode()) for one in valid for other in signatures.split(" ")):
        raise InvalidWebhook("the signature is wrong")
    if abs(now() - int(at)) > _MAX_AGE:
        raise InvalidWebhook("it was signed too long ago, or the clocks differ")
    message = json.loads(body)
    return Message(sent, message["type"], message["timestamp"], message["data"])


def _key(secret: str) -> bytes:
    found = re.fullmatch(r"whsec_([A-Za-z0-9+/]+=*)", (secret or "").strip())
    if not found:
        raise ValueError("the secret of a webhook begins with whsec_")
    return base64.b64decode(found[1])
