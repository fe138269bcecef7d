#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that is told to end, as its clients and whoever routes to it see it."""
import signal
import struct
import time
import unittest

from ws import BINARY, Client, Server, pose_frame


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


class GraceTest(unittest.TestCase):
    """How long the grace lasts is not measured: every test ends it by a second signal."""

    def start(self):
        server = Server("--threads", "1", "--drain-grace", "50", "--drain-timeout", "60")
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: server.get("/readyz").status == 503)
        return server

    def test_while_it_lasts_streams_are_accepted_and_served_but_readiness_is_off(self):
        server = self.start()
        with Client(server) as late:
            self.assertEqual(late.answer.status, 101)
            late.open()
            for seq in range(3):
                late.send(BINARY, pose_frame(seq))
                self.assertGreater(len(late.receive()), 16)
            self.assertEqual(server.get("/readyz").status, 503)
            self.assertEqual(server.get("/livez").status, 200)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(late.close_code(), 1012)
            late.send(8, struct.pack(">H", 1012))
        self.assertEqual(server.wait(), 0)

    def test_afterwards_streams_are_refused(self):
        server = self.start()
        with Client(server) as client:  # never answers the close, so that the drain takes its time
            client.open()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(client.close_code(), 1012)
            with Client(server) as late:
                self.assertEqual(late.answer.status, 503)
                self.assertIn("retry-after", late.answer.headers)
        self.assertEqual(server.wait(), 0)

    def test_it_ends_by_itself(self):
        server = Server("--threads", "1", "--drain-grace", "0.5")
        with Client(server) as client:
            client.open()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(client.close_code(), 1012)
        self.assertEqual(server.wait(), 0)

    def test_a_terminal_does_not_wait_for_it(self):
        server = Server("--threads", "1", "--drain-grace", "50", "--drain-timeout", "60")
        self.assertEqual(server.stop(signal.SIGINT, timeout=30), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
