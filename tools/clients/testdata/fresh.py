"""Uses the installed package, from a folder that has nothing else: fresh.py ADDRESS PASSWORD"""

import sys

import doorward
from doorward import asgi, testing, webhook, wsgi

address, password = sys.argv[1:]
client = doorward.Client(address)
try:
    client.login("owner@acme.example", "wrong")
    raise SystemExit("a wrong password was accepted")
except doorward.Unauthenticated:
    pass
owner = client.as_(client.login("owner@acme.example", password)["token"])
people = [person["email"] for person in owner.list("/api/v2/users", query={"limit": 2})]
assert len(people) >= 4 and callable(wsgi.Protect) and callable(asgi.Protect), people
assert callable(testing.start_doorward) and callable(webhook.verify)
