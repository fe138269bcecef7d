#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What operators see: /metrics read by a strict parser of the exposition format and compared with what was done,
the list of sessions and who may read it, and the refusals of a server that is at a limit."""
import json
import math
import os
import re
import struct
import subprocess
import tempfile
import time
import unittest

from ws import BINARY, Answer, Client, Server, handshake, pose_frame
from test_stream import motion

DSNET = os.path.join(os.environ["DSNET_BUILD"], "model/tool/dsnet")
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'({NAME})(?:\{{((?:{NAME}="(?:[^"\\\n]|\\\\|\\"|\\n)*",?)*)\}})? (\S+)$')


def parse(text):
    """Metrics by name: (type, {labels: value}). Raises on anything the format does not allow."""
    assert text.endswith("\n")
    metrics, helped, current = {}, set(), None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name = line.split(" ", 3)[2]
            assert name not in helped, line
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert kind in ("counter", "gauge", "histogram") and current not in metrics, line
            assert current in helped, line
            metrics[current] = (kind, {})
        else:
            match = SAMPLE.match(line)
            assert match, line
            name, labels, value = match.groups()
            kind, samples = metrics[current]
            suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
            assert name in [current + suffix for suffix in suffixes], line
            assert kind != "counter" or name.endswith("_total"), line
            key = (name[len(current):], labels or "")
            assert key not in samples, line
            samples[key] = float(value)
            assert math.isfinite(samples[key]), line
    for name, (kind, samples) in metrics.items():
        if kind != "histogram":
            continue
        bounds = [(float(re.fullmatch(r'le="([^"]+)"', labels)[1]), value)
                  for (suffix, labels), value in samples.items() if suffix == "_bucket"]
        assert bounds == sorted(bounds) and bounds[-1][0] == math.inf, name
        counts = [count for _, count in bounds]
        assert counts == sorted(counts) and counts[-1] == samples["_count", ""], name
    return metrics


def scrape(server):
    answer = server.get("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return parse(answer.body.decode())


def value(metrics, name, suffix="", labels=""):
    return metrics[name][1][suffix, labels]


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


class MetricsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        self.folder.cleanup()

    def token_file(self, text="operator-token-1234\n"):
        path = os.path.join(self.folder.name, "token")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_counts_agree_with_what_was_done(self):
        server = Server("--threads", "2")
        before = scrape(server)
        self.assertEqual(value(before, "dsnet_ready"), 1)
        with Client(server) as client, Client(server) as other:
            client.open()
            other.open(output="latent", delivery="latest")
            for seq in range(20):
                pose, place = motion(seq)
                client.send(BINARY, pose_frame(seq, pose, place, timestamp=seq / 60))
                client.receive()
                other.send(BINARY, pose_frame(seq, pose, place, timestamp=seq / 60))
                other.receive()
            client.send(BINARY, pose_frame(3))
            self.assertEqual(client.error()["code"], "bad_seq")
            client.send_json(type="checkpoint")
            self.assertEqual(json.loads(client.receive())["type"], "checkpoint")
            during = scrape(server)
        wait_until(lambda: value(scrape(server), "dsnet_streams") == 0)
        after = scrape(server)
        self.assertEqual(value(during, "dsnet_sessions"), 2)
        for name, count in (("dsnet_sessions_opened_total", 2), ("dsnet_frames_received_total", 40),
                            ("dsnet_frames_answered_total", 40), ("dsnet_checkpoints_total", 1)):
            self.assertEqual(value(after, name), count, name)
        self.assertEqual(value(after, "dsnet_errors_total", labels='code="bad_seq"'), 1)
        self.assertEqual(value(after, "dsnet_latency_seconds", "_count"), 40)
        self.assertLessEqual(value(after, "dsnet_batch_size", "_count"), 40)
        self.assertEqual(value(after, "dsnet_batch_size", "_sum"), 40)
        self.assertEqual(value(after, "dsnet_batch_size", "_count"),
                         value(after, "dsnet_step_seconds", "_count"))
        # 292 bytes and a header of 8 a pose; 83 kB and 257 B results.
        self.assertGreater(value(after, "dsnet_received_bytes_total"), 41 * 300)
        self.assertGreater(value(after, "dsnet_sent_bytes_total"), 20 * 80000)
        self.assertEqual(value(after, "dsnet_sessions"), 0)
        self.assertGreater(value(after, "process_resident_memory_bytes"), 1e6)
        self.assertGreater(value(after, "process_cpu_seconds_total"), 0)
        self.assertLess(abs(value(after, "process_start_time_seconds") - time.time()), 600)
        for name, (kind, samples) in after.items():
            if kind == "counter":  # none ever falls
                for key, now in samples.items():
                    self.assertGreaterEqual(now, before[name][1][key], name)
        self.assertEqual(server.stop(), 0)

    def test_sessions_are_listed_for_the_operator_alone(self):
        server = Server("--threads", "1", "--operator-token-file", self.token_file())
        right = {"Authorization": "Bearer operator-token-1234"}

        def ask(**headers):
            connection = server.connect()
            lines = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
            connection.sendall(f"GET /v1/sessions HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
            answer = Answer(connection)
            connection.close()
            return answer

        for wrong in ({}, {"Authorization": "Bearer operator-token-1235"},
                      {"Authorization": "Bearer operator-token-123"},
                      {"Authorization": "Bearer operator-token-12345"},
                      {"Authorization": "Basic operator-token-1234"}, {"Authorization": "Bearer"}):
            answer = ask(**wrong)
            self.assertEqual(answer.status, 401, wrong)
            self.assertEqual(answer.headers["www-authenticate"], "Bearer")
            self.assertEqual(answer.headers["content-type"], "application/problem+json")
        with Client(server) as client:
            opened = client.open(fps=30, output="vertices", encoding="f16")
            for seq in range(3):
                client.send(BINARY, pose_frame(seq, timestamp=seq / 30))
                client.receive()
            listed = json.loads(ask(**right).body)["sessions"]
            self.assertEqual(len(listed), 1)
            session = listed[0]
            self.assertEqual(session["session"], opened["session"])
            self.assertEqual((session["fps"], session["output"], session["encoding"]),
                             (30, "vertices", "f16"))
            self.assertEqual((session["frames_in"], session["frames_out"], session["skipped"]),
                             (3, 3, 0))
            self.assertEqual(session["address"], "127.0.0.1")
            self.assertFalse({"pose", "trans", "betas", "token"} & set(session))
        self.assertEqual(server.stop(), 0)
        closed = Server("--threads", "1")
        self.assertEqual(closed.get("/v1/sessions").status, 403)
        self.assertEqual(closed.stop(), 0)

    def test_a_token_that_is_none_is_refused_at_start(self):
        for text in ("short\n", "", "\nsecond line is not it\n"):
            result = subprocess.run([os.environ["DSNETD"], "--port", "0", "--operator-token-file",
                                     self.token_file(text)], capture_output=True, text=True,
                                    timeout=60)
            self.assertEqual(result.returncode, 1, text)
            self.assertIn("16 characters", result.stderr)

    def refusal(self, server):
        """The problem that a further handshake meets, or None when it is accepted."""
        connection = server.connect()
        connection.sendall(handshake())
        answer = Answer(connection)
        connection.close()
        if answer.status == 101:
            return None
        self.assertEqual(answer.status, 503)
        self.assertIn("retry-after", answer.headers)
        return json.loads(answer.body)["detail"]

    def test_each_limit_has_its_answer_and_its_count(self):
        server = Server("--threads", "1", "--max-per-address", "2")
        with Client(server), Client(server):
            self.assertIn("your address", self.refusal(server))
            metrics = scrape(server)
            self.assertEqual(value(metrics, "dsnet_streams_refused_total", labels='reason="address"'), 1)
        wait_until(lambda: self.refusal(server) is None)
        self.assertEqual(server.get("/v1/stream").status, 426)
        metrics = scrape(server)
        self.assertEqual(value(metrics, "dsnet_streams_refused_total", labels='reason="handshake"'), 1)
        self.assertEqual(server.stop(), 0)

    def test_a_server_that_cannot_keep_up_takes_no_more_streams(self):
        model = os.path.join(self.folder.name, "large.safetensors")
        subprocess.run([DSNET, "init", "-o", model, "--layers", "4", "--hidden", "1024"], check=True,
                       stdout=subprocess.DEVNULL)
        server = Server("--threads", "1", "--model", f"default={model}", "--max-late", "0.2")
        clients = [Client(server) for _ in range(48)]
        for client in clients:
            client.open(output="latent")
            for seq in range(4):
                client.send(BINARY, pose_frame(seq, timestamp=seq / 60))
        seq, refused, end = 4, None, time.monotonic() + 60
        while not refused and time.monotonic() < end:
            for client in clients:  # as much as each may have in flight, all the time
                client.receive()
                client.send(BINARY, pose_frame(seq, timestamp=seq / 60))
            seq += 1
            if seq % 10 == 0:
                refused = self.refusal(server)
        self.assertIn("late", refused or "")
        metrics = scrape(server)
        self.assertEqual(value(metrics, "dsnet_overloaded"), 1)
        self.assertGreater(value(metrics, "dsnet_frames_late_total"), 0)
        self.assertEqual(server.get("/livez").status, 200)
        self.assertEqual(server.get("/readyz").status, 200)  # it serves; it only takes no more
        for client in clients:  # those that are there are served on
            got = 0
            while got < 4:
                kind, _, _, got_seq, _ = struct.unpack("<BBHId", client.receive()[:16])
                self.assertEqual(kind, 4)
                got += 1
            self.assertEqual(got_seq, seq - 1)
            client.socket.close()
        wait_until(lambda: self.refusal(server) is None)
        self.assertEqual(value(scrape(server), "dsnet_overloaded"), 0)
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
