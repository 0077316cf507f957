"""Requests that a hostile caller can send, and answers of other programs at Doorward's address."""

import http.server
import json
import os
import pathlib
import ast
import socket
import threading
import time
import unittest
from email.utils import formatdate

import doorward
from doorward import check
from doorward.incoming import forwarded, is_cross_origin
from doorward.refusal import refusal

TOKEN = "A" * 43
IDENTITY = {"X-Auth-User": "usr_1", "X-Auth-Tenant": "tnt_1", "X-Auth-Role": "USER", "X-Auth-Email": "ann@acme.example", "X-Auth-Session": "ses_1", "X-Auth-AAL": "1"}


class Stub:
    """A server in Doorward's place that records its requests. answer returns status, headers and
    body, by the number of the request."""

    def __init__(self, test, answer):
        asked, paths = self.asked, self.paths = [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                asked.append(dict(self.headers.items()))
                paths.append(self.path)
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, body = answer(len(asked))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(body))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.client = doorward.Client(f"http://127.0.0.1:{server.server_port}", key="dws_x")
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)
        test.addCleanup(self.client.close)


class ForwardedTest(unittest.TestCase):
    def forward(self, ip="127.0.0.1", **headers):
        return forwarded("GET", {name.replace("_", "-"): value for name, value in headers.items()}, "JSESSIONID", ip)

    def test_what_doorward_needs_and_nothing_else(self):
        plain = self.forward(x_auth_user="usr_forged", cookie="a=b", authorization="Basic YTpi")
        self.assertRegex(plain.pop("X-Request-Id"), "^req_")
        self.assertEqual(plain, {"X-Forwarded-Method": "GET", "X-Forwarded-For": "127.0.0.1"})
        self.assertEqual(self.forward(x_request_id="mine-1")["X-Request-Id"], "mine-1")
        self.assertRegex(self.forward(x_request_id="a\nb")["X-Request-Id"], "^req_")
        self.assertEqual(len(self.forward(authorization="bEARER " + "x" * 9000)["Authorization"]), 512)
        self.assertEqual(self.forward(sec_websocket_key="x")["X-Forwarded-Method"], "POST")
        # wsgiref keeps the line breaks of a folded header.
        self.assertEqual(self.forward(authorization="Bearer a\r\n X-Auth-User: b")["Authorization"], "Bearer a  X-Auth-User: b")

    # A neighbouring host can set these cookies. Browsers don't apply the rules of __Host- to them,
    # since another character comes first.
    def test_cookies(self):
        for name in ("\xa0JSESSIONID", "\x85JSESSIONID", "\x0cJSESSIONID", "JSESSIONID ", "jsessionid"):
            self.assertNotIn("Cookie", self.forward(cookie=f"{name}={TOKEN}"), name)
        # Only four bits of the last character count; Doorward ignores other spellings.
        self.assertEqual(self.forward(cookie=f"JSESSIONID={'A' * 42}B;\tJSESSIONID={TOKEN}")["Cookie"], f"JSESSIONID={TOKEN}")

    def test_the_callers_address(self):
        self.assertEqual(self.forward("::1", x_forwarded_for="192.0.2.7,198.51.100.1")["X-Forwarded-For"], "192.0.2.7, 198.51.100.1, ::1")
        for unknown in (None, "", "testclient"):
            self.assertNotIn("X-Forwarded-For", self.forward(unknown, x_forwarded_for="192.0.2.7"))
        self.assertEqual(self.forward(x_forwarded_for="192.0.2.7," * 800)["X-Forwarded-For"], "192.0.2.7, " * 7 + "127.0.0.1")

    def test_origins(self):
        for origin, is_foreign in (("https://auth.example", False), ("https://auth.example:443", False), ("https://AUTH.example", False), ("null", True),
                                  ("http://auth.example", True), ("https://auth.example:444", True), ("https://auth.example:x", True), ("", True)):
            self.assertEqual(is_cross_origin("POST", {"origin": origin}, "https://Auth.example/platform"), is_foreign, origin)


class AnswerTest(unittest.TestCase):
    def test_other_refusals_of_a_check_are_faults(self):
        for status, code in ((400, "invalid_query"), (404, "not_found"), (409, "conflict"), (410, "gone"), (413, "body_too_large"), (422, "validation_failed"), (500, "internal")):
            problem = json.dumps({"status": status, "code": code}).encode()
            client = Stub(self, lambda n, status=status, problem=problem: (status, {"Content-Type": "application/problem+json"}, problem)).client
            for via in ("check", "introspection"):
                with self.subTest(code, via=via), self.assertLogs("doorward"), self.assertRaises(doorward.Unavailable):
                    check.check(client, "GET", {"cookie": f"JSESSIONID={TOKEN}"}, via=via)

    def test_a_step_up_has_a_challenge_only_with_a_valid_acr(self):
        for acr, is_valid in (("aal2", True), (None, False), (2, False), ('a"b', False)):
            problem = {"status": 403, "code": "step_up_required", **({} if acr is None else {"acr": acr})}
            headers = dict(refusal(doorward.StepUpRequired(problem))[2])
            self.assertEqual("WWW-Authenticate" in headers, is_valid, acr)

    def test_introspection_asks_only_about_a_single_well_formed_credential(self):
        stub = Stub(self, lambda n: (200, {"Content-Type": "application/json"}, b'{"active":false}'))
        for headers in ({"authorization": "Bearer"}, {"authorization": "Bearer a b"}, {"authorization": "Bearer a\tb"}, {"authorization": "Bearer \xe9"},
                        {"authorization": "Bearer " + "x" * 9000}, {"cookie": f"JSESSIONID={TOKEN}", "authorization": "Bearer"}, {"cookie": f"\xa0JSESSIONID={TOKEN}"}):
            with self.subTest(headers), self.assertRaises(doorward.Unauthenticated):
                check.check(stub.client, "GET", headers, via="introspection")
        self.assertEqual(stub.asked, [])

    def test_retry_after(self):
        stub = Stub(self, lambda n: (503, {"Retry-After": "1"}, b"") if n == 1 else (200, IDENTITY, b""))
        began = time.monotonic()
        self.assertEqual(check.check(stub.client, "GET", {}).role, "USER")
        self.assertGreaterEqual(time.monotonic() - began, 1)
        for text, least, most in ((formatdate(time.time() + 3600, usegmt=True), 3400, 3601), ("60", 60, 60)):
            with self.assertRaises(doorward.Unavailable) as caught:
                Stub(self, lambda n, text=text: (503, {"Retry-After": text}, b"")).client.session()
            self.assertTrue(least <= caught.exception.retry_after <= most, caught.exception.retry_after)
        for text in ("9" * 400, "-1", "soon", "\xb2"):
            with self.assertRaises(doorward.Unavailable) as caught:
                Stub(self, lambda n, text=text: (503, {"Retry-After": text}, b"")).client.session()
            self.assertIsNone(caught.exception.retry_after)

    def test_a_page_of_another_program_is_no_answer(self):
        for media, body in (("text/html", b"<h1>Welcome</h1>"), ("application/json", b"{"), ("application/json", b"[]")):
            with self.assertRaises(doorward.Unavailable):
                next(Stub(self, lambda n, media=media, body=body: (200, {"Content-Type": media}, body)).client.list("/api/v2/users"))

    def test_what_cannot_be_a_credential_is_not_sent(self):
        stub = Stub(self, lambda n: (200, {"Content-Type": "application/json"}, b"{}"))
        for bad in ("a b", "a\nX-Auth-User: b", "\xe9"):
            with self.assertRaises(doorward.Unauthenticated) as caught:
                stub.client.as_(bad).session()
            self.assertNotIn(bad, str(caught.exception))
        with self.assertRaises(ValueError):
            stub.client.get(".evil.example/")
        self.assertEqual(stub.asked, [])
        stub.client.as_("from-a-file\n").session()
        self.assertEqual(stub.asked[0]["Authorization"], "Bearer from-a-file")


class ConnectionTest(unittest.TestCase):
    # A socket's own timeout is for a single read.
    def test_an_answer_byte_by_byte_times_out(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        ended = threading.Event()
        sent_all = threading.Event()

        def drip():
            connection, _ = listener.accept()
            with connection:
                for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000:
                    try:
                        connection.send(bytes([byte]))
                    except OSError:
                        break
                    if ended.wait(0.02):
                        break
                else:
                    sent_all.set()

        threading.Thread(target=drip, daemon=True).start()
        with self.assertRaises(doorward.Unavailable):
            doorward.Client(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.3).session()
        ended.set()
        self.assertFalse(sent_all.is_set())

    # Two processes on one connection would get each other's answers.
    def test_a_forked_process_opens_connections_of_its_own(self):
        stub = Stub(self, lambda n: (200, {"Content-Type": "application/json"}, b'{"n":%d}' % n))
        stub.client.session()
        idle = stub.client._connections._idle[-1].sock.getsockname()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            stub.client.session()
            os.write(write, str(stub.client._connections._idle[-1].sock.getsockname()).encode())
            os._exit(0)
        os.waitpid(child, 0)
        self.assertNotEqual(os.read(read, 100).decode(), str(idle))
        os.close(read)
        os.close(write)
        self.assertEqual(stub.client.session(), {"n": 3})
        self.assertEqual(stub.client._connections._idle[-1].sock.getsockname(), idle)

    def test_idle_connections_are_limited(self):
        barrier = threading.Barrier(40)

        def answer(n):
            barrier.wait(10)
            return 200, {"Content-Type": "application/json"}, b"{}"

        stub = Stub(self, answer)
        threads = [threading.Thread(target=stub.client.session) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(stub.client._connections._idle), 32)


class SyntaxTest(unittest.TestCase):
    def test_python_3_9_reads_it(self):
        for file in (pathlib.Path(doorward.__file__).parent).glob("*.py"):
            ast.parse(file.read_text(), feature_version=(3, 9))
