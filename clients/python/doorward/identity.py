"""Who is calling."""

from __future__ import annotations

from typing import NamedTuple


class Identity(NamedTuple):
    """Who is calling. For a server with an API key only tenant_id, role and key_id are set, for
    a person all but key_id; the others are empty."""

    user_id: str = ""
    tenant_id: str = ""  # the tenant whose data the caller may see, and no other
    role: str = ""
    email: str = ""
    session_id: str = ""  # for logs; no credential
    key_id: str = ""
    aal: int = 0  # 2 after a second factor or a passkey, else 1; 0 for a server
