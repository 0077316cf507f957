"""Verifies a signed assertion of Doorward (the header X-Auth-Assertion) in Python.

    verify = verifier("https://auth.example.com", "https://messages.example.com")
    who = verify(request.headers["X-Auth-Assertion"])  # raises jwt.PyJWTError if it isn't valid

Needs PyJWT 2.4 or newer and cryptography (Debian: python3-jwt, python3-cryptography).
"""

import jwt


def verifier(issuer, audience):
    # Keeps the keys for 300 s, and reads them again for an unknown one.
    keys = jwt.PyJWKClient(issuer + "/.well-known/jwks.json", cache_jwk_set=True, lifespan=300)

    def verify(assertion):
        if jwt.get_unverified_header(assertion).get("typ") != "doorward+jwt":
            raise jwt.InvalidTokenError("not an assertion")
        return jwt.decode(
            assertion,
            keys.get_signing_key_from_jwt(assertion).key,
            algorithms=["ES256"],
            issuer=issuer,
            audience=audience,
            options={"require": ["iss", "aud", "sub", "exp"]},
        )

    return verify
