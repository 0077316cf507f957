import http.server
import os
import threading
import unittest
import unittest.mock

import doorward
from doorward import asgi, check, wsgi
from doorward.testing import start_doorward
from tests.server import PASSWORD, start


class WithServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = start()
        cls.addClassCleanup(cls.server.stop)
        cls.client = doorward.Client(cls.server.url)
        cls.addClassCleanup(cls.client.close)

    def signed_in(self, role):
        return self.server.sign_in(role)


class ClientTest(WithServer):
    def test_session_from_login_to_logout(self):
        answer = self.client.login("owner@acme.example", PASSWORD)
        owner = self.client.as_(answer["token"])
        self.assertEqual(owner.session()["user"]["id"], answer["user"]["id"])
        owner.logout()
        with self.assertRaises(doorward.Unauthenticated):
            owner.session()

    def test_each_refusal_has_a_class(self):
        with self.assertRaises(doorward.Unauthenticated) as caught:
            self.client.login("owner@acme.example", "not the password")
        self.assertEqual(caught.exception.code, "invalid_credentials")
        self.assertTrue(caught.exception.request_id)
        owner, viewer = self.signed_in("owner"), self.signed_in("viewer")
        with self.assertRaises(doorward.Forbidden):
            viewer.invite("x@acme.example", "USER")
        with self.assertRaises(doorward.NotFound):
            owner.get("/api/v2/users/{id}", params={"id": "../tenant"})
        with self.assertRaises(ValueError):
            owner.get("/api/v2/users/{id}", params={"id": ".."})
        owner.invite("twice@acme.example", "USER")
        with self.assertRaises(doorward.Conflict):
            owner.invite("twice@acme.example", "USER")
        with self.assertRaises(doorward.Invalid) as caught:
            owner.invite("no address", "USER")
        self.assertEqual(caught.exception.errors[0]["pointer"], "/email")
        # Uncaught, an error is all that a log has.
        self.assertEqual(str(caught.exception), f"{caught.exception.problem['detail']}\n/email: {caught.exception.errors[0]['message']}")
        with self.assertRaisesRegex(doorward.Invalid, "\nlimit: ."):
            owner.get("/api/v2/users", query={"limit": 1000})

    def test_a_repeated_invitation_is_made_once(self):
        owner = self.signed_in("owner")
        first, second = (owner.invite("again@acme.example", "VIEWER", idempotency_key="one-key") for _ in range(2))
        self.assertEqual(first["id"], second["id"])

    def test_all_pages_of_a_list(self):
        owner = self.signed_in("owner")
        for i in range(5):
            owner.invite(f"page{i}@acme.example", "USER")
        seen = [i["id"] for i in owner.list("/api/v2/invitations", query={"limit": 2})]
        self.assertGreaterEqual(len(seen), 5)
        self.assertEqual(len(seen), len(set(seen)))

    def test_a_closed_connection_is_replaced(self):
        owner = self.signed_in("owner")
        owner.session()
        owner._connections._idle[-1].sock.shutdown(2)
        self.assertEqual(owner.session()["user"]["role"], "OWNER")

    def test_the_credential_is_not_shown(self):
        self.assertNotIn("secret", repr(doorward.Client(self.server.url, "secret", key="secret")))

    def test_bad_addresses(self):
        for address in ("ftp://x.example", "http://a:b@x.example", "http://x.example/?a", "http://x.example/#a", "x"):
            with self.assertRaises(ValueError):
                doorward.Client(address)


class OtherProgram(http.server.BaseHTTPRequestHandler):
    """Something that isn't Doorward."""

    answer = (401, "text/html", b"<h1>Who are you?</h1>")

    def do_GET(self):
        status, media, body = self.answer
        self.send_response(status)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


def other_program(test, answer=OtherProgram.answer):
    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Other", (OtherProgram,), {"answer": answer}))
    threading.Thread(target=other.serve_forever, args=(0.01,), daemon=True).start()
    test.addCleanup(other.server_close)
    test.addCleanup(other.shutdown)
    return f"http://127.0.0.1:{other.server_port}"


class FaultTest(unittest.TestCase):
    def test_only_a_problem_from_doorward_is_a_refusal(self):
        problem = "application/problem+json"
        for answer in (
            OtherProgram.answer, (401, problem, b"{}"), (403, "application/json", b'{"code":"forbidden","status":403}'),
            (302, "text/html", b""), (502, "text/html", b""), (200, "application/json", b"{"),
            (401, problem, b'{"status":200,"code":"unauthenticated"}'), (401, problem, b"[]"),
        ):
            with self.subTest(answer), self.assertRaises(doorward.Unavailable) as caught:
                doorward.Client(other_program(self, answer)).session()
            self.assertEqual(caught.exception.status, 503)
        with self.assertRaises(doorward.Unavailable):
            doorward.Client("http://127.0.0.1:1").session()

    def test_without_a_key_nothing_is_asked_as_a_service(self):
        keyless = doorward.Client("https://auth.example")
        for call in (keyless.as_service, lambda: keyless.introspect("x"), lambda: keyless.can(doorward.Identity("usr_1", "tnt_1"), "message.send"),
                     lambda: wsgi.Protect(None, keyless, "message.send", via="introspection"), lambda: asgi.Protect(None, keyless, via="introspection")):
            with self.assertRaises(ValueError):
                call()

    def test_a_fault_is_logged_with_address_and_cause(self):
        with self.assertLogs("doorward") as logged, self.assertRaises(doorward.Unavailable):
            check.check(doorward.Client("http://127.0.0.1:1"), "GET", {}, "message.send")
        self.assertIn("access check of message.send at http://127.0.0.1:1 failed", logged.output[0])
        self.assertIn("Connection refused", logged.output[0])


class TestKitTest(unittest.TestCase):
    def test_a_missing_program_is_named(self):
        with unittest.mock.patch.dict(os.environ, {"DOORWARD_BIN": "", "PATH": "/nowhere"}), self.assertRaisesRegex(FileNotFoundError, "DOORWARD_BIN"):
            start_doorward()

    def test_a_server_that_ends_is_reported(self):
        with self.assertRaisesRegex(RuntimeError, "dev ended with"):
            start_doorward("--session-idle", "0s")

    def test_it_ignores_settings_of_the_environment(self):
        with unittest.mock.patch.dict(os.environ, {"DOORWARD_BASE_URL": "https://auth.example"}), start_doorward() as server:
            self.assertEqual(server.sign_in("viewer").session()["user"]["role"], "VIEWER")
        self.assertFalse(os.path.exists(server.folder))
