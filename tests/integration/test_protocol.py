#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RFC 6455 and HTTP as dsnetd speaks them: handshakes, violations and their codes, slow and hostile
peers."""
import contextlib
import json
import os
import socket
import struct
import time
import unittest

from ws import (BINARY, CLOSE, PING, PONG, TEXT, Answer, Client, Closed, Server, frame, handshake,
                pose_frame)

OPEN = b'{"type":"open"}'


class ServerTest(unittest.TestCase):
    arguments = ("--threads", "1")

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.arguments)

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        assert status == 0, cls.server.log

    def assert_still_serves(self):
        with Client(self.server) as client:
            client.open()
            client.send(BINARY, pose_frame(0))
            self.assertGreater(len(client.receive()), 16)


class HandshakeTest(ServerTest):
    arguments = ("--threads", "1", "--allowed-origin", "https://studio.example", "--handshake-timeout",
                 "2")

    def status(self, **changes):
        return self.server.request(handshake(**changes)).status

    def test_a_right_handshake_is_accepted_with_the_subprotocol(self):
        with Client(self.server) as client:
            self.assertEqual(client.answer.status, 101)
            self.assertEqual(client.answer.headers["sec-websocket-protocol"], "dsnet.v1")
            self.assertEqual(client.answer.headers["connection"].lower(), "upgrade")
            self.assertEqual(client.answer.headers["upgrade"].lower(), "websocket")
            self.assertNotIn("sec-websocket-extensions", client.answer.headers)

    def test_lists_and_case_are_as_http_has_them(self):
        for changes in (dict(Upgrade="WebSocket"), dict(Connection="keep-alive, Upgrade"),
                        dict(Sec_WebSocket_Protocol="chat, dsnet.v1"),
                        dict(Sec_WebSocket_Extensions="permessage-deflate"),
                        dict(Origin="https://studio.example")):
            with Client(self.server, **changes) as client:
                self.assertEqual(client.answer.status, 101, changes)
                self.assertNotIn("sec-websocket-extensions", client.answer.headers)

    def test_wrong_handshakes_are_refused_with_the_status_that_fits(self):
        cases = [
            (400, dict(Sec_WebSocket_Key=None)),
            (400, dict(Sec_WebSocket_Key="short")),
            (400, dict(Sec_WebSocket_Key="!" * 22 + "==")),
            (400, dict(Upgrade="h2c")),
            (426, dict(Upgrade=None)),
            (400, dict(Connection="keep-alive")),
            (426, dict(Sec_WebSocket_Version="8")),
            (426, dict(Sec_WebSocket_Version=None)),
            (400, dict(Sec_WebSocket_Protocol=None)),
            (400, dict(Sec_WebSocket_Protocol="dsnet.v2")),
            (403, dict(Origin="https://elsewhere.example")),
            (405, dict(line="POST /v1/stream HTTP/1.1")),
            (400, dict(line="GET /v1/stream HTTP/1.0")),
            (404, dict(line="GET /v1/streams HTTP/1.1")),
        ]
        for status, changes in cases:
            self.assertEqual(self.status(**changes), status, changes)
        answer = self.server.request(handshake(Sec_WebSocket_Version="8"))
        self.assertEqual(answer.headers["sec-websocket-version"], "13")
        self.assertEqual(answer.headers["content-type"], "application/problem+json")
        self.assertEqual(json.loads(answer.body)["status"], 426)

    def test_frames_may_come_with_the_handshake_or_byte_by_byte(self):
        early = frame(TEXT, OPEN) + frame(BINARY, pose_frame(0))
        with Client(self.server, extra=early) as client:
            self.assertEqual(json.loads(client.receive())["type"], "opened")
            self.assertGreater(len(client.receive()), 16)
        connection = self.server.connect()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in handshake() + frame(TEXT, OPEN):
            connection.sendall(bytes([byte]))
        answer = Answer(connection)
        self.assertEqual(answer.status, 101)
        connection.close()

    def test_a_request_that_trickles_is_cut_off(self):
        with self.server.connect() as connection:
            connection.sendall(b"GET /livez HTTP/1.1\r\nHost: t\r\nX-Slow: ")
            begun = time.monotonic()
            try:
                while time.monotonic() - begun < 15:
                    connection.sendall(b"a")
                    time.sleep(0.2)
                self.fail("the connection was left open")
            except (BrokenPipeError, ConnectionResetError):
                pass
        self.assert_still_serves()

    def test_leaving_in_mid_handshake_is_harmless(self):
        request = handshake()
        for size in range(1, len(request), 7):
            with self.server.connect() as connection:
                connection.sendall(request[:size])
        self.assert_still_serves()


class FrameTest(ServerTest):
    def close_code(self, *frames, opened=False):
        with Client(self.server) as client:
            if opened:
                client.open()
            client.socket.sendall(b"".join(frames))
            return client.close_code()

    def test_violations_close_with_the_code_of_the_rfc(self):
        text = b"{}"
        cases = [
            (1002, [frame(TEXT, text, mask=False)]),
            (1002, [frame(TEXT, text, rsv=4)]),
            (1002, [frame(TEXT, text, rsv=1)]),
            (1002, [frame(3, text)]),
            (1002, [frame(11, b"")]),
            (1002, [frame(0, text)]),
            (1002, [frame(TEXT, b"{", fin=False), frame(TEXT, b"}")]),
            (1002, [frame(PING, b"x", fin=False)]),
            (1002, [frame(PING, b"x" * 126)]),
            (1002, [frame(CLOSE, b"\x03")]),
            (1002, [frame(CLOSE, struct.pack(">H", 1005))]),
            (1002, [frame(CLOSE, struct.pack(">H", 999))]),
            (1007, [frame(CLOSE, struct.pack(">H", 1000) + b"\xff")]),
            (1007, [frame(TEXT, b"\xc3\x28")]),
            (1007, [frame(TEXT, b"\xe2\x82")]),
            (1007, [frame(TEXT, b"\xed\xa0\x80")]),
            (1007, [frame(TEXT, b"ab", fin=False), frame(0, b"\xff")]),
            (1009, [frame(BINARY, b"x", length=1 << 20)]),
            (1009, [frame(BINARY, b"x", length=1 << 62)]),
            (1009, [frame(BINARY, b"x" * 40000, fin=False), frame(0, b"x" * 40000)]),
            (1009, [frame(BINARY, b"x" * 100, fin=False)] + [frame(0, b"x" * 100, fin=False)] * 700),
        ]
        for code, frames in cases:
            self.assertEqual(self.close_code(*frames), code, frames[0][:16])
        self.assert_still_serves()

    def test_a_close_is_answered_with_its_code(self):
        for payload, code in ((b"", 1005), (struct.pack(">H", 1000), 1000),
                              (struct.pack(">H", 1001) + b"bye", 1001),
                              (struct.pack(">H", 4999), 4999)):
            self.assertEqual(self.close_code(frame(CLOSE, payload), opened=True), code)

    def test_results_of_frames_before_the_close_still_come(self):
        with Client(self.server) as client:
            client.open()
            client.socket.sendall(b"".join(frame(BINARY, pose_frame(s)) for s in range(3)) +
                                  frame(CLOSE, struct.pack(">H", 1000)))
            for seq in range(3):
                self.assertEqual(struct.unpack("<I", client.receive()[4:8])[0], seq)
            self.assertEqual(client.close_code(), 1000)

    def test_pieces_with_pings_between_are_one_message(self):
        with Client(self.server) as client:
            pieces = [OPEN[i:i + 1] for i in range(len(OPEN))]
            for index, piece in enumerate(pieces):
                client.send(TEXT if index == 0 else 0, piece, fin=index == len(pieces) - 1)
                client.send(PING, b"%d" % index)
            seen = []
            while True:
                opcode, payload = client.receive_frame()
                if opcode == TEXT:
                    break
                self.assertEqual(opcode, PONG)
                seen.append(payload)
            self.assertEqual(json.loads(payload)["type"], "opened")
            self.assertTrue(seen)
            message = pose_frame(0)
            client.send(BINARY, message[:5], fin=False)
            client.send(0, b"", fin=False)
            client.send(0, message[5:])
            while (answer := client.receive_frame())[0] == PONG:
                pass
            self.assertEqual(answer[0], BINARY)

    def test_pings_are_answered_and_a_flood_of_them_costs_nothing(self):
        with Client(self.server) as client:
            client.send(PING, b"hello")
            self.assertEqual(client.receive_frame(), (PONG, b"hello"))
            client.send(PONG, b"unasked")
            before = self.server.memory_kb()
            for _ in range(50):
                client.socket.sendall(frame(PING, b"x" * 125) * 200)
            client.open()
            self.assertLess(self.server.memory_kb() - before, 4096)

    def test_an_end_without_close_frees_the_session(self):
        client = Client(self.server)
        client.open()
        client.socket.shutdown(socket.SHUT_WR)
        with self.assertRaises(Closed):
            while True:
                client.receive()
        client.socket.close()
        self.assert_still_serves()


class HttpTest(ServerTest):
    def test_what_is_there_answers_get_and_head(self):
        for path in ("/", "/livez", "/readyz", "/v1/models", "/v1/models/default"):
            answer = self.server.get(path)
            self.assertEqual(answer.status, 200, path)
            head = self.server.get(path, method="HEAD")
            self.assertEqual((head.status, head.body), (200, b""), path)
            self.assertEqual(head.headers["content-length"], str(len(answer.body)))
            post = self.server.get(path, method="DELETE")
            self.assertEqual(post.status, 405, path)
            self.assertIn("GET", post.headers["allow"])
        model = json.loads(self.server.get("/v1/models/default").body)
        self.assertIs(model["trained"], True)

    def test_what_is_not_there_is_a_problem(self):
        for path in ("/nope", "/v1/models/none", "/v1/models/", "//", "/v1/models/default/../x"):
            answer = self.server.get(path)
            self.assertEqual(answer.status, 404, path)
            self.assertEqual(answer.headers["content-type"], "application/problem+json")
            self.assertEqual(json.loads(answer.body)["status"], 404)

    def test_a_stream_address_asked_for_a_page_says_what_it_is(self):
        answer = self.server.get("/v1/stream")
        self.assertEqual(answer.status, 426)
        self.assertEqual(answer.headers["upgrade"].lower(), "websocket")

    def test_a_body_nobody_asked_for_is_answered_at_once(self):
        body = b"x" * 400_000
        begun = time.monotonic()
        answer = self.server.request(
            b"POST /v1/models HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        self.assertEqual(answer.status, 405)
        self.assertLess(time.monotonic() - begun, 5)

    def test_malformed_requests_crash_nothing(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00\xff\x16\x03\x01" * 20,
                     b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n",
                     b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                     b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            try:
                with self.server.connect(3) as connection:
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    while connection.recv(65536):
                        pass
            except OSError:  # refused in mid-request: as good an answer as any
                pass
        self.assert_still_serves()

    def test_two_thousand_connections_leave_nothing_behind(self):
        self.server.get("/livez")
        descriptors, memory = self.server.descriptors(), self.server.memory_kb()
        for index in range(2000):
            if index % 2:
                self.server.get("/livez")
            else:
                with Client(self.server) as client:
                    client.send(CLOSE, struct.pack(">H", 1000))
                    client.close_code()
        time.sleep(0.3)
        self.assertLessEqual(abs(self.server.descriptors() - descriptors), 2)
        self.assertLess(self.server.memory_kb() - memory, 20_000)


class IdleTest(ServerTest):  # a server of its own: what others have freed would be used again
    @unittest.skipIf(os.environ.get("DSNET_SANITIZE"), "sanitizers add to every block")
    def test_an_idle_session_takes_less_than_16_kb(self):
        count = 500
        with contextlib.ExitStack() as clients:
            clients.enter_context(Client(self.server)).open()
            before = self.server.memory_kb()
            for _ in range(count):
                clients.enter_context(Client(self.server)).open()
            self.assertLess(self.server.memory_kb() - before, 16 * count)


if __name__ == "__main__":
    unittest.main(verbosity=1)
