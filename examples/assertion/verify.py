"""Verifies a signed assertion of Doorward (the header X-Auth-Assertion) in Python.

    verify = verifier("https://auth.example.com", "https://messages.example.com")
    who = verify(request.headers["X-Auth-Assertion"])

It raises KeysUnavailable when Doorward's keys can't be read, which says nothing about the
assertion: answer 503; and jwt.PyJWTError when it isn't valid: answer 401.

Needs PyJWT 2.4 or newer and cryptography (Debian: python3-jwt, python3-cryptography).
"""

import json
import math
import threading
import time
import urllib.request

import jwt


class KeysUnavailable(Exception):
    pass


class Keys:
    """The published keys. They are kept for 300 s, and read again for an unknown one, at most
    every 5 s. While they can't be read, the known ones stay in use."""

    def __init__(self, address):
        self.address, self.known, self.read_at, self.tried_at = address, {}, -math.inf, -math.inf
        self.lock = threading.Lock()

    def of(self, key_id):
        with self.lock:
            now = time.monotonic()
            if now - self.read_at > (300 if key_id in self.known else 5) and now - self.tried_at > 5:
                self.read(now)
            if key_id in self.known:
                return self.known[key_id]
            if self.read_at < self.tried_at:
                raise KeysUnavailable("Doorward's keys can't be read")
        raise jwt.InvalidTokenError("the key isn't published")

    def read(self, now):
        self.tried_at = now
        try:
            with urllib.request.urlopen(self.address, timeout=3) as answer:
                found = json.load(answer)["keys"]
            self.known, self.read_at = {key["kid"]: jwt.PyJWK(key).key for key in found}, now
        except (OSError, ValueError, KeyError, jwt.PyJWTError):
            pass  # the known ones stay in use


def verifier(issuer, audience):
    keys = Keys(issuer + "/.well-known/jwks.json")

    def verify(assertion):
        header = jwt.get_unverified_header(assertion)
        if header.get("typ") != "doorward+jwt" or header.get("alg") != "ES256":
            raise jwt.InvalidTokenError("not an assertion")
        return jwt.decode(
            assertion,
            keys.of(header.get("kid")),
            algorithms=["ES256"],
            issuer=issuer,
            audience=audience,
            leeway=0,  # iat and nbf lie 5 s back already; more would prolong what a logout has ended
            options={"require": ["iss", "aud", "sub", "exp"]},
        )

    return verify
