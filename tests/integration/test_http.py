#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The HTTP interface as a whole: methods, media types, origins, bodies nobody asked for, and clients that stop."""
import json
import socket
import unittest

from ws import Answer, Server

ORIGIN = "https://studio.example"


class HttpTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--threads", "1", "--allowed-origin", ORIGIN, "--handshake-timeout", "3",
                            "--transfer-timeout", "3")

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        assert status == 0, cls.server.log

    def problem(self, answer, status, kind):
        self.assertEqual(answer.status, status)
        self.assertEqual(answer.headers["content-type"], "application/problem+json")
        document = json.loads(answer.body)
        self.assertEqual(document["type"], "/problems#" + kind)
        self.assertEqual(document["status"], status)
        return document

    def test_every_problem_is_listed(self):
        listed = json.loads(self.server.get("/problems").body)["problems"]
        types = {problem["type"]: problem["status"] for problem in listed}
        self.assertEqual(len(types), len(listed))
        self.assertEqual(types["/problems#not-found"], 404)

    def test_options_tell_the_methods(self):
        for path, methods in (("/livez", "GET, HEAD, OPTIONS"), ("/v1/stream", "GET, OPTIONS"), ("*", "OPTIONS")):
            answer = self.server.get(path, method="OPTIONS")
            self.assertEqual((answer.status, answer.body, answer.headers["allow"]), (204, b"", methods), path)
            self.assertNotIn("content-length", answer.headers)
        self.problem(self.server.get("/nope", method="OPTIONS"), 404, "not-found")
        self.problem(self.server.get("/livez", method="PATCH"), 405, "method-not-allowed")

    def test_pages_of_an_allowed_origin_may_read(self):
        answer = self.server.get("/v1/models", headers=[f"Origin: {ORIGIN}"])
        self.assertEqual(answer.headers["access-control-allow-origin"], ORIGIN)
        self.assertEqual(answer.headers["vary"], "Origin")
        self.assertIn("ETag", answer.headers["access-control-expose-headers"])
        asked = self.server.get("/v1/models", method="OPTIONS",
                                headers=[f"Origin: {ORIGIN}", "Access-Control-Request-Method: POST",
                                         "Access-Control-Request-Headers: idempotency-key"])
        self.assertEqual(asked.status, 204)
        self.assertIn("POST", asked.headers["access-control-allow-methods"])
        self.assertIn("Idempotency-Key", asked.headers["access-control-allow-headers"])
        # A refusal can be read as well.
        self.assertIn("access-control-allow-origin", self.server.get("/nope", headers=[f"Origin: {ORIGIN}"]).headers)

    def test_pages_of_other_origins_may_not(self):
        for origin in ("https://evil.example", "null", ORIGIN + ".evil.example"):
            answer = self.server.get("/v1/models", headers=[f"Origin: {origin}"])
            self.assertEqual(answer.headers["vary"], "Origin")
            self.assertNotIn("access-control-allow-origin", answer.headers)

    def test_accept_decides_whether_a_document_is_wanted(self):
        self.problem(self.server.get("/v1/models", headers=["Accept: text/html"]), 406, "not-acceptable")
        self.assertEqual(self.server.get("/v1/models", headers=["Accept: text/html, */*;q=0.1"]).status, 200)
        self.assertEqual(self.server.get("/metrics", headers=["Accept: text/plain"]).status, 200)

    def test_a_large_body_nobody_asked_for_is_refused_before_it_is_sent(self):
        for line, status, kind in (("POST /v1/models", 405, "method-not-allowed"), ("GET /nope", 404, "not-found"),
                                   ("GET /v1/models", 413, "content-too-large")):
            request = f"{line} HTTP/1.1\r\nHost: t\r\nContent-Length: 3000000\r\n\r\n".encode()
            answer = self.server.request(request + b"x" * 1000)
            self.problem(answer, status, kind)
            self.assertEqual(answer.headers["connection"], "close")

    def test_a_client_that_sends_on_gets_its_refusal_nevertheless(self):
        """Closing over bytes that were not read would reset the connection and lose the answer."""
        with self.server.connect() as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: t\r\nContent-Length: 9000000\r\n\r\n")
            for _ in range(9):
                connection.sendall(b"x" * 1_000_000)
            self.problem(Answer(connection), 413, "content-too-large")

    def test_chunks_without_end_are_refused_on_their_way(self):
        with self.server.connect() as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(20):
                connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            self.problem(Answer(connection), 413, "content-too-large")

    def test_a_small_body_nobody_asked_for_leaves_the_connection_usable(self):
        with self.server.connect() as connection:
            for _ in range(3):
                connection.sendall(b"POST /v1/models HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc")
                self.problem(Answer(connection), 405, "method-not-allowed")
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: t\r\n\r\n")
            self.assertEqual(Answer(connection).status, 200)

    def test_a_client_that_waits_for_leave_to_send_is_refused_at_once(self):
        answer = self.server.request(
            b"POST /v1/models HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 30\r\n\r\n")
        self.problem(answer, 405, "method-not-allowed")

    def test_a_body_that_stops_midway_is_cut(self):
        with self.server.connect(60) as connection:
            connection.sendall(b"POST /v1/models HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
            while connection.recv(65536):
                pass
        self.assertEqual(self.server.get("/livez").status, 200)

    def test_vanishing_clients_leave_nothing_behind(self):
        before = self.server.descriptors()
        for _ in range(50):
            connection = self.server.connect()
            connection.sendall(b"POST /v1/models HTTP/1.1\r\nHost: t\r\nContent-Length: 5000000\r\n\r\nabc")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
        self.assertEqual(self.server.get("/livez").status, 200)
        self.assertLess(self.server.descriptors(), before + 10)


if __name__ == "__main__":
    unittest.main(verbosity=1)
