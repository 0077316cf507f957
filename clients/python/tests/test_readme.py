"""Runs the code blocks of README.md and docs/other-languages.md."""

import importlib.util
import pathlib
import re
import tempfile
import types
import unittest
import zipfile

import backend
import doorward
from doorward import webhook, wsgi
from doorward.testing import start_doorward
from tests.server import PASSWORD
from tests.test_client import WithServer
from tests.test_resource import MODEL, POLICY

HERE = pathlib.Path(backend.HERE)


def block(page, text, address):
    """Returns the Python block of a page that contains the text."""
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    found = next(one for one in blocks if text in one)
    return re.sub(r"https://auth\.example|http://localhost:8080", address, found).replace("ann@acme.example", "owner@acme.example")


class ReadmeTest(WithServer):
    def run_block(self, page, text, **given):
        names = {"doorward": doorward, "print": lambda *_: None, **given}
        exec(compile(block(page, text, self.server.url), str(page), "exec"), names)
        if "client" in names:
            self.addCleanup(names["client"].close)
        return names

    def test_calls(self):
        owner = self.signed_in("owner")
        viewer = next(owner.list("/api/v2/users", query={"q": "viewer"}))
        self.run_block(HERE / "README.md", "client.login", password=PASSWORD, user_id=viewer["id"])
        self.assertEqual(owner.get("/api/v2/users/{id}", params={"id": viewer["id"]})["role"], "ADMIN")

    @unittest.skipUnless(importlib.util.find_spec("flask"), "needs Flask: apt-get install python3-flask")
    def test_flask(self):
        import flask
        app = flask.Flask("readme")
        names = self.run_block(HERE / "README.md", "wsgi.Protect", app=app, client=self.client, request=flask.request)
        app.view_functions["messages"] = lambda: (names["messages"](), flask.request.environ["doorward"].role)[1]
        headers = {"Cookie": f"JSESSIONID={self.client.login('user@acme.example', PASSWORD)['token']}"}
        self.assertEqual(app.test_client(use_cookies=False).get("/messages", headers=headers).text, "USER")

    @unittest.skipUnless(importlib.util.find_spec("flask"), "needs Flask: apt-get install python3-flask")
    def test_a_resource(self):
        import flask
        with start_doorward(model=MODEL) as server:
            server.sign_in("owner").put("/api/v2/policy", {"text": POLICY}, headers={"If-Match": "*"})
            client = doorward.Client(server.url, key=server.create_service_key("access.evaluate"))
            app = flask.Flask("resource")
            self.run_block(HERE / "README.md", 'resource="deferred"', wsgi=wsgi, app=app, client=client, request=flask.request, amounts={"1": 10, "2": 1001})
            headers = {"Cookie": f"JSESSIONID={client.login('admin@acme.example', PASSWORD)['token']}"}
            answers = [app.test_client(use_cookies=False).post(f"/invoices/{number}/pay", headers=headers) for number in (1, 2)]
        self.assertEqual([(answer.status_code, (answer.json or {}).get("policyId")) for answer in answers], [(204, None), (403, "large")])
        self.assertEqual(answers[1].content_type, "application/problem+json")

    def test_a_webhook(self):
        self.assertRaises(webhook.InvalidWebhook, self.run_block, HERE / "README.md", "webhook.verify", secret="whsec_AAAA",
                          request=types.SimpleNamespace(headers={}, get_data=lambda: b""))

    def test_the_kit_for_tests(self):
        self.run_block(HERE / "README.md", "start_doorward")

    @unittest.skipUnless(importlib.util.find_spec("flask"), "needs Flask: apt-get install python3-flask")
    def test_a_session_on_the_servers_side(self):
        import flask
        app, tokens = flask.Flask("docs"), {"one": self.client.login("user@acme.example", PASSWORD)["token"], "two": "ended"}
        page = HERE.parents[1] / "docs" / "other-languages.md"
        names = self.run_block(page, "home.html", app=app, tokens=tokens, request=flask.request, render_template=lambda _, me: me["email"] if me else "nobody")

        def home(value):
            return app.test_client(use_cookies=False).get("/", headers={"Cookie": f"app={value}"} if value else {})

        self.assertEqual([home("one").text, home("two").text, home("other").text, home(None).text], ["user@acme.example", "nobody", "nobody", "nobody"])
        self.assertEqual(list(tokens), ["one"])
        names["client"].close()
        app.logger.disabled = True
        names["client"]._connections = doorward.Client("http://127.0.0.1:1")._connections
        self.assertEqual(home("one").status_code, 500)
        self.assertEqual(list(tokens), ["one"], "an outage signs nobody out")


class WheelTest(unittest.TestCase):
    def test_its_files(self):
        with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(pathlib.Path(folder) / backend.build_wheel(folder)) as wheel:
            names, record = wheel.namelist(), wheel.read(f"{backend.release()}.dist-info/RECORD").decode()
        self.assertEqual([line.split(",")[0] for line in record.splitlines()], names)
        for name in ("doorward/__init__.py", "doorward/py.typed", f"{backend.release()}.dist-info/LICENSE", f"{backend.release()}.dist-info/METADATA"):
            self.assertIn(name, names)
