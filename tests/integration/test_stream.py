#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stream as its clients see it: sessions, results, refused frames, shutting down."""
import json
import math
import signal
import struct
import time
import unittest

from ws import BINARY, TEXT, Client, Closed, Server, frame, pose_frame

INFINITY = float("inf")


def displacement(result):
    return struct.unpack(f"<{(len(result) - 16) // 4}f", result[16:])


def motion(t):
    """A pose of a swaying body at frame t."""
    pose = [0.0] * 66
    pose[0] = math.pi / 2
    for k in range(1, 66):
        pose[k] = 0.2 * math.sin(0.1 * t + k)
    return pose, (0.1 * math.sin(0.2 * t), 0.0, 0.95)


class StreamTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--threads", "2", "--max-batch", "8")

    @classmethod
    def tearDownClass(cls):
        cls.status = cls.server.stop()
        assert cls.status == 0, cls.server.log

    def step(self, client, seq, t, **options):
        pose, trans = motion(t)
        client.send(BINARY, pose_frame(seq, pose, trans, **options))
        return client.receive()

    def test_a_session_opens_with_what_the_model_is(self):
        with Client(self.server) as client:
            opened = client.open()
        self.assertEqual(opened["model"], "default")
        self.assertIs(opened["trained"], True)
        self.assertEqual((opened["fps"], opened["next_seq"]), (60, 0))
        self.assertGreater(opened["latents"], 0)
        self.assertTrue(6500 <= opened["vertices"] <= 7500)
        self.assertTrue(opened["session"])

    def test_results_carry_seq_and_timestamp_and_are_finite(self):
        with Client(self.server) as client:
            vertices = client.open()["vertices"]
            for t, seq in enumerate((0, 1, 5, 2 ** 32 - 1)):
                result = self.step(client, seq, t, timestamp=1e9 + t / 3)
                kind, encoding, count, echoed, timestamp = struct.unpack("<BBHId", result[:16])
                self.assertEqual((kind, encoding, count, echoed), (2, 0, 0, seq))
                self.assertEqual(timestamp, 1e9 + t / 3)
                values = displacement(result)
                self.assertEqual(len(values), 3 * vertices)
                self.assertTrue(all(map(math.isfinite, values)))

    def test_equal_sessions_agree_whatever_else_is_served(self):
        clients = [Client(self.server) for _ in range(12)]
        for index, client in enumerate(clients):
            client.open(betas=[0.5, -1] if index % 2 else [])
        last = None
        for t in range(6):
            for index, client in enumerate(clients):
                pose, trans = motion(t if index != 5 else 3 * t)
                client.send(BINARY, pose_frame(t, pose, trans))
            last = [displacement(client.receive()) for client in clients]
        for index in (2, 4, 6):
            self.assertEqual(last[index], last[0])
        self.assertNotEqual(last[1], last[0])
        self.assertNotEqual(last[5], last[1])
        for client in clients:
            client.socket.close()

    def test_a_y_up_stream_is_the_same_motion(self):
        results = []
        for up in ("z", "y"):
            with Client(self.server) as client:
                client.open(up=up)
                for t in range(4):
                    if up == "z":
                        pose, trans = [math.pi / 2, 0, 0], (0.1 * t, -0.2 * t, 0.9)
                    else:
                        pose, trans = [0, 0, 0], (0.1 * t, 0.9, 0.2 * t)
                    client.send(BINARY, pose_frame(t, pose + [0.1 * t] * 63, trans))
                    last = displacement(client.receive())
                results.append(last)
        scale = max(map(abs, results[0]))
        self.assertLess(max(abs(a - b) for a, b in zip(*results)), 1e-4 * scale)

    def test_a_frame_that_cannot_be_used_leaves_the_session_as_it_was(self):
        bad_pose = [0.0] * 66
        cases = [
            ("bad_size", b""),
            ("bad_size", b"\x01\x00"),
            ("bad_size", pose_frame(9)[:-1]),
            ("bad_size", pose_frame(9) + b"\0"),
            ("bad_kind", pose_frame(9, kind=2)),
            ("bad_kind", pose_frame(9, kind=200)),
            ("bad_encoding", pose_frame(9, encoding=1)),
            ("bad_count", pose_frame(9, joints=21)),
            ("bad_count", pose_frame(9, joints=56)),
            ("not_finite", pose_frame(9, bad_pose[:-1] + [math.nan])),
            ("not_finite", pose_frame(9, trans=(0, INFINITY, 0))),
            ("not_finite", pose_frame(9, timestamp=math.nan)),
            ("out_of_range", pose_frame(9, [1e6] + bad_pose[1:])),
            ("out_of_range", pose_frame(9, trans=(0, 1e9, 0))),
            ("bad_seq", pose_frame(2)),
            ("bad_seq", pose_frame(0)),
        ]
        with Client(self.server) as plain, Client(self.server) as tried:
            plain.open()
            tried.open()
            for seq in range(3):
                self.step(plain, seq, seq)
                self.step(tried, seq, seq)
            for code, payload in cases:
                tried.send(BINARY, payload)
                answer = tried.error()
                self.assertEqual(answer["code"], code, answer)
                self.assertTrue(answer["message"])
            for seq in range(3, 6):
                self.assertEqual(self.step(plain, seq, seq), self.step(tried, seq, seq))

    def test_messages_that_cannot_be_used_are_answered_by_name(self):
        cases = [
            ("bad_json", b"{"), ("bad_json", b"[]"), ("bad_member", b'{"type":"open","type":"open"}'),
            ("bad_type", b'{"type":"dance"}'), ("bad_member", b'{"type":"open","fps":"fast"}'),
            ("bad_member", b'{"type":"open","betas":[1e999]}'), ("bad_json", b'{"a":' * 4000),
            ("no_model", b'{"type":"open","model":"other"}'),
            ("bad_member", b'{"type":"open","delivery":"some"}'),
            ("bad_member", b'{"type":"open","fps":0.5}'),
            ("bad_token", b'{"type":"open","resume":"token"}'),
            ("not_open", b'{"type":"checkpoint"}'),
            ("bad_type", b'{"type":"checkpoint","seq":1,"token":"token"}'),
        ]
        with Client(self.server) as client:
            for code, text in cases:
                client.send(TEXT, text[:16000])
                answer = client.error()
                # 1e999 is no JSON number to Jansson, so either code names what is wrong.
                self.assertIn(answer["code"], (code, "bad_json" if b"1e999" in text else code), text)
            client.send(BINARY, pose_frame(0))
            self.assertEqual(client.error()["code"], "not_open")
            client.open()
            client.send_json(type="open")
            self.assertEqual(client.error()["code"], "already_open")
            self.assertGreater(len(self.step(client, 0, 0)), 16)

    def test_many_frames_at_once_come_back_in_order(self):
        with Client(self.server) as client:
            client.open()
            data = b"".join(frame(BINARY, pose_frame(seq, *motion(seq))) for seq in range(200))
            client.socket.sendall(data)
            for seq in range(200):
                self.assertEqual(struct.unpack("<I", client.receive()[4:8])[0], seq)

    def test_a_slow_reader_is_held_back_and_nobody_else_notices(self):
        with Client(self.server) as slow, Client(self.server) as quick:
            slow.open()
            quick.open()
            before = self.server.memory_kb()
            slow.socket.setblocking(False)
            sent, data = 0, b"".join(frame(BINARY, pose_frame(s, *motion(s))) for s in range(3000))
            for _ in range(200):  # far more than the server may hold for it: 3000 x 83 kB
                try:
                    sent += slow.socket.send(data[sent:])
                except BlockingIOError:
                    time.sleep(0.01)
                if sent == len(data):
                    break
            for seq in range(100):
                self.step(quick, seq, seq)
            self.assertLess(self.server.memory_kb() - before, 30_000)
            # It still gets every frame whose pose was taken, in order.
            slow.socket.settimeout(20)
            for seq in range(100):
                self.assertEqual(struct.unpack("<I", slow.receive()[4:8])[0], seq)

    def test_clients_that_vanish_leave_nothing_behind(self):
        def vanish(index):
            client = Client(self.server)
            client.open()
            for seq in range(index % 5):
                client.send(BINARY, pose_frame(seq, *motion(seq)))
            if index % 2:  # with a reset instead of a close
                client.socket.setsockopt(1, 13, struct.pack("ii", 1, 0))
            client.socket.close()

        for index in range(50):
            vanish(index)
        time.sleep(0.5)
        descriptors, memory = self.server.descriptors(), self.server.memory_kb()
        for index in range(400):
            vanish(index)
        time.sleep(0.5)
        self.assertLessEqual(abs(self.server.descriptors() - descriptors), 2)
        self.assertLess(self.server.memory_kb() - memory, 20_000)
        with Client(self.server) as client:
            client.open()
            self.step(client, 0, 0)


class ShutdownTest(unittest.TestCase):
    def test_sigterm_finishes_frames_closes_with_1012_and_exits_with_0(self):
        server = Server("--threads", "1")
        client = Client(server)
        client.open()
        for seq in range(3):
            client.send(BINARY, pose_frame(seq, *motion(seq)))
        for seq in range(3):
            client.receive()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(json.loads(client.receive())["type"], "checkpoint")
        with self.assertRaises(Closed) as closed:
            client.receive()
        self.assertEqual(closed.exception.code, 1012)
        client.send(8, struct.pack(">H", 1012))
        self.assertEqual(server.wait(), 0)
        client.socket.close()

    def test_a_draining_server_is_not_ready_and_refuses_streams(self):
        server = Server("--threads", "1", "--close-timeout", "2")
        client = Client(server)  # never answers the close, so that the drain takes its time
        client.open()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        self.assertEqual(server.get("/readyz").status, 503)
        self.assertEqual(server.get("/livez").status, 200)
        with Client(server) as late:
            self.assertEqual(late.answer.status, 503)
            self.assertIn("retry-after", late.answer.headers)
        self.assertEqual(server.wait(), 0)
        client.socket.close()

    def test_an_idle_server_stops_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = Server("--threads", "1")
            begun = time.monotonic()
            self.assertEqual(server.stop(number), 0)
            self.assertLess(time.monotonic() - begun, 5)

    def test_a_stuck_client_cannot_hold_the_server(self):
        server = Server("--threads", "1", "--drain-timeout", "1", "--close-timeout", "60")
        client = Client(server)
        client.open()
        self.assertIn(server.stop(timeout=10), (0, 1))
        client.socket.close()

    def test_a_second_signal_stops_at_once(self):
        server = Server("--threads", "1", "--drain-timeout", "60", "--close-timeout", "60")
        client = Client(server)
        client.open()
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)  # the drain waits for the client's close, which never comes
        self.assertIsNone(server.process.poll())
        self.assertEqual(server.stop(), 1)
        self.assertLess(time.monotonic() - begun, 20)
        client.socket.close()


class LimitTest(unittest.TestCase):
    def test_connections_over_the_limit_wait_until_those_that_say_nothing_are_cut(self):
        server = Server("--threads", "1", "--max-sessions", "1", "--max-connections", "8",
                        "--handshake-timeout", "1")
        with Client(server) as client:
            client.open()
            silent = [server.connect() for _ in range(20)]
            self.assertEqual(server.get("/livez").status, 200)  # after at most three rounds of them
            client.send(BINARY, pose_frame(0))
            self.assertGreater(len(client.receive()), 16)
            for connection in silent:
                connection.close()
        self.assertEqual(server.stop(), 0)

    def test_a_full_server_refuses_streams_but_answers_probes(self):
        server = Server("--threads", "1", "--max-sessions", "3")
        clients = [Client(server) for _ in range(3)]
        for client in clients:
            client.open()
        with Client(server) as late:
            self.assertEqual(late.answer.status, 503)
            self.assertIn("retry-after", late.answer.headers)
            self.assertEqual(json.loads(late.answer.body)["status"], 503)
        for path in ("/livez", "/readyz", "/v1/models"):
            self.assertEqual(server.get(path).status, 200)
        clients[0].socket.close()
        time.sleep(0.3)
        with Client(server) as again:
            again.open()
        for client in clients[1:]:
            client.socket.close()
        self.assertEqual(server.stop(), 0)

    def test_idle_streams_are_closed_and_busy_ones_are_not(self):
        server = Server("--threads", "1", "--idle-timeout", "1")
        with Client(server) as idle, Client(server) as busy:
            idle.open()
            busy.open()
            for seq in range(12):
                busy.send(BINARY, pose_frame(seq, *motion(seq)))
                busy.receive()
                idle.send(9, b"ping")  # is answered, but does not count
                time.sleep(0.25)
            self.assertEqual(idle.close_code(), 1008)
            busy.send(BINARY, pose_frame(99, *motion(0)))
            self.assertGreater(len(busy.receive()), 16)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
