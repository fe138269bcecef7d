#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dsnet-stream against real servers: what it prints where, what it says of each mistake, and that a stream
which is lost and taken up again comes out as if nothing had happened."""
import filecmp
import json
import os
import pty
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import numpy as np

from ws import Server

STREAM = os.path.join(os.environ["DSNET_BUILD"], "proto/stream/dsnet-stream")
DSNET = os.path.join(os.environ["DSNET_BUILD"], "model/tool/dsnet")
FRAMES = 720  # of the built-in clip at 60 Hz


def url(server):
    return f"ws://{server.host}:{server.port}/v1/stream"


def stream(*arguments, clip="sample", timeout=300):
    return subprocess.run([STREAM, clip, *arguments], capture_output=True, text=True, timeout=timeout)


def silent_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Case(unittest.TestCase):
    """Has a folder, and stops what it has started."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, *options, port=0):
        server = Server("--threads", "1", *options, port=port)
        self.addCleanup(server.stop)
        return server

    def check_ok(self, result):
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)


class MistakeTest(Case):
    def check(self, status, says, *arguments, clip="sample"):
        result = stream(*arguments, clip=clip)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(result.stdout, "")
        self.assertRegex(result.stderr, r"\Adsnet-stream: [^\n]*\n\Z")
        self.assertIn(says, result.stderr)

    def test_wrong_usage_is_one_line_and_status_2(self):
        for says, *arguments in (
                ("unknown option --url", "--url", "ws://127.0.0.1"),
                ("TLS is not spoken here", "--server", "wss://example.org"),
                ("TLS is not spoken here", "--server", "https://example.org"),
                ("not of the form ws://HOST", "--server", "127.0.0.1:8080"),
                ("not one of displacement|vertices|latent", "--output", "skin"),
                ("not one of f32|f16|i16", "--encoding", "f64"),
                ("is outside 1 to 1000", "--fps", "0"),
                ("must end in .npz, .pc2 or .raw", "-o", "out.mdd"),
                ("not latents", "-o", "out.pc2", "--output", "latent"),
                ("needs --delivery all", "-o", "out.npz", "--delivery", "latest"),
                ("--betas", "--betas", "1,two"),
                ("1 to 4096 bytes", "--token", ""),
                ("is outside 1 to", "--reconnect-tries", "0")):
            with self.subTest(says):
                self.check(2, says, *arguments)

    def test_files_that_cannot_be_used_are_named_before_a_connection_is_made(self):
        self.check(1, "missing/out.npz: cannot be created", "-o", self.path("missing/out.npz"))
        os.mkfifo(self.path("pipe.raw"))
        self.check(1, "pipe.raw: is not a regular file", "-o", self.path("pipe.raw"))
        self.check(1, "nobody.npz", clip=self.path("nobody.npz"))
        self.assertEqual(os.listdir(self.folder.name), ["pipe.raw"])

    def test_a_clip_is_not_replaced_by_its_recording(self):
        for name in ("clip.npz", "other.npz"):
            with open(self.path(name), "wb") as file:
                file.write(b"precious")
        os.symlink(self.path("clip.npz"), self.path("link.npz"))
        for record in ("clip.npz", "link.npz"):
            self.check(2, "is a clip of this run", self.path("other.npz"), "-o", self.path(record),
                       clip=self.path("clip.npz"))
        with open(self.path("clip.npz"), "rb") as file:
            self.assertEqual(file.read(), b"precious")

    def test_servers_that_are_none_are_told_apart(self):
        self.check(1, "connection refused", "--server", f"ws://127.0.0.1:{silent_port()}")
        self.check(1, "no.such.host.invalid: ", "--server", "ws://no.such.host.invalid")
        server = self.start()
        self.check(1, "404 Not Found (is it a dsnetd", "--server", f"ws://127.0.0.1:{server.port}/stream")
        self.check(1, "no_model", "--server", url(server), "--model", "nobody")

    def test_another_protocol_is_not_waited_for(self):
        for greeting, says in ((b"SSH-2.0-OpenSSH_9.2\r\n", "is not HTTP"),
                               (b"\x15\x03\x03\x00\x02\x02\x46", "speaks TLS")):
            with socket.create_server(("127.0.0.1", 0)) as listener:
                process = subprocess.Popen([STREAM, "sample", "--server",
                                            f"ws://127.0.0.1:{listener.getsockname()[1]}", "--timeout", "3600"],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(greeting)
                    out, error = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (1, ""))
            self.assertIn(says, error)


class OutputTest(Case):
    def test_a_pipe_gets_the_summary_alone(self):
        server = self.start()
        result = stream("--server", url(server), "--rate", "max", "--json")
        record = self.check_ok(result)
        self.assertEqual(result.stdout.count("\n"), 1)
        self.assertEqual(result.stderr, "")
        self.assertEqual((record["frames_received"], record["frames_lost"]), (FRAMES, 0))
        self.assertGreater(record["bytes_received"], FRAMES * record["vertices"] * 12)
        latency = record["latency_ms"]
        self.assertTrue(0 < latency["p50"] <= latency["p99"] <= latency["p99.9"] <= latency["max"])

    def test_a_terminal_gets_a_line_that_lives(self):
        server = self.start()
        master, slave = pty.openpty()
        process = subprocess.Popen([STREAM, "sample", "--server", url(server)], stdout=subprocess.PIPE,
                                   stderr=slave, env={**os.environ, "LC_ALL": "C.UTF-8"}, text=True)
        os.close(slave)
        shown = b""
        try:
            while part := os.read(master, 65536):
                shown += part
        except OSError:  # how a terminal's end shows
            pass
        out = process.communicate(timeout=60)[0]
        os.close(master)
        self.assertEqual(process.returncode, 0, shown)
        lines = shown.decode().split("\r\x1b[K")
        self.assertGreater(len(lines), 3)
        for line in lines[1:-1]:
            self.assertRegex(line, r"^\d+ of 720 frames, [\d.]+/s, p50 [\d.]+ ms, p99 [\d.]+ ms [▁▂▃▄▅▆▇█]{16}")
        self.assertEqual(lines[-1], "")  # it is cleared at the end
        self.assertRegex(out, r"\Amodel ")
        self.assertNotIn("\x1b", out)

    def test_many_sessions_make_load(self):
        server = self.start()
        record = self.check_ok(stream("--server", url(server), "--rate", "max", "--sessions", "12", "--json"))
        self.assertEqual(record["frames_received"], 12 * FRAMES)
        self.assertGreater(record["bytes_received"], 12 * FRAMES * record["vertices"] * 12)

    def test_a_clip_is_repeated_in_one_stream(self):
        server = self.start()
        for repeat in (1, 3):
            record = self.check_ok(stream("--server", url(server), "--rate", "max", "--output", "latent", "--json",
                                          "--repeat", str(repeat), "-o", self.path(f"{repeat}.npz")))
            self.assertEqual(record["frames_received"], repeat * FRAMES)
        with np.load(self.path("1.npz")) as once, np.load(self.path("3.npz")) as thrice:
            self.assertTrue(np.array_equal(thrice["latent"][:FRAMES], once["latent"]))
            self.assertTrue(np.array_equal(thrice["seq"], np.arange(3 * FRAMES)))
            self.assertFalse(np.array_equal(thrice["latent"][FRAMES:2 * FRAMES], once["latent"]))

    def test_recordings_agree_whatever_their_format(self):
        server = self.start()
        for name in ("out.npz", "out.raw", "out.pc2"):
            self.check_ok(stream("--server", url(server), "--rate", "max", "--json", "-o", self.path(name)))
        with np.load(self.path("out.npz")) as npz:
            displacement, seq = npz["displacement"], npz["seq"]
            self.assertEqual(npz["fps"], 60)
        self.assertTrue(np.array_equal(seq, np.arange(FRAMES)))
        raw = np.fromfile(self.path("out.raw"), "<f4")
        self.assertTrue(np.array_equal(raw, displacement.ravel()))
        with open(self.path("out.pc2"), "rb") as file:
            self.assertEqual(file.read(12), b"POINTCACHE2\0")
        cache = np.fromfile(self.path("out.pc2"), "<f4", offset=32)
        self.assertTrue(np.array_equal(cache, raw))


class KindTest(Case):
    """Every output, encoding, rate and delivery."""

    def setUp(self):
        super().setUp()
        self.server = self.start()

    def record(self, name, *arguments):
        return self.check_ok(stream("--server", url(self.server), "--rate", "max", "--json", "-o", self.path(name),
                                    *arguments))

    def predict(self, kind, name):
        subprocess.run([DSNET, "predict", "sample", "--kind", kind, "-o", self.path(name)], check=True,
                       stderr=subprocess.DEVNULL)

    def test_every_output_is_what_dsnet_predicts(self):
        # f16 has 11 bits of mantissa, i16 a step of the largest number / 32767.
        for kind in ("displacement", "vertices", "latent"):
            self.predict(kind, "offline.npz")
            with np.load(self.path("offline.npz")) as offline:
                wanted = offline[kind]
            largest = float(np.abs(wanted).max())
            for encoding, tolerance in (("f32", 1e-6), ("f16", 2 ** -11), ("i16", 0.51 / 32767)):
                with self.subTest(kind=kind, encoding=encoding):
                    record = self.record("online.npz", "--output", kind, "--encoding", encoding)
                    self.assertEqual((record["output"], record["encoding"]), (kind, encoding))
                    with np.load(self.path("online.npz")) as online:
                        got = online[kind]
                    self.assertEqual(got.shape, wanted.shape)
                    self.assertLessEqual(float(np.abs(got - wanted).max()), tolerance * largest)

    def test_a_point_cache_is_that_of_dsnet_predict(self):
        self.predict("vertices", "offline.pc2")
        self.record("online.pc2", "--output", "vertices")
        self.assertTrue(filecmp.cmp(self.path("offline.pc2"), self.path("online.pc2"), shallow=False))

    def test_a_clip_is_streamed_at_the_rate_asked_for(self):
        for fps, delayed in ((30, False), (24, True), (120, True)):
            with self.subTest(fps=fps):
                record = self.record("online.npz", "--fps", str(fps), "--output", "latent")
                self.assertEqual((record["fps"], record["delay_seconds"] > 0), (fps, delayed))
                with np.load(self.path("online.npz")) as online:
                    self.assertEqual(len(online["latent"]), FRAMES * fps // 60)
                    self.assertEqual(online["fps"], fps)

    def test_skipped_results_are_counted(self):
        record = self.check_ok(stream("--server", url(self.server), "--rate", "max", "--window", "200", "--json",
                                      "--delivery", "latest"))
        self.assertEqual(record["frames_received"] + record["frames_skipped"], FRAMES)
        self.assertGreater(record["frames_received"], 0)


class ReconnectTest(Case):
    def setUp(self):
        super().setUp()
        self.key = self.path("state.key")
        with open(os.open(self.key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(32))

    def begin(self, *arguments):
        """A stream in real time, some of whose frames have come back."""
        process = subprocess.Popen([STREAM, "sample", "--json", "--reconnect", "--timeout", "60", "-o",
                                    self.path("lost.raw"), *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def wait_for_frames(self, count=50):
        """Until so many of the clip's frames are in the file that is going to be the recording."""
        end = time.monotonic() + 60
        while not any(os.path.getsize(self.path(name)) > count * 6500 * 12
                      for name in os.listdir(self.folder.name) if name.endswith(".tmp")):
            self.assertLess(time.monotonic(), end, "no frames came")
            time.sleep(0.05)

    def check_whole(self, process, server, *arguments, frames=FRAMES):
        """The recording equals that of an uninterrupted stream to the bit."""
        out, error = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, error)
        record = json.loads(out)
        self.assertEqual(record["frames_received"], frames)
        self.check_ok(stream("--server", url(server), "--rate", "max", "--json", "-o", self.path("whole.raw"),
                             *arguments))
        self.assertTrue(filecmp.cmp(self.path("lost.raw"), self.path("whole.raw"), shallow=False))
        return record

    def test_a_server_that_stops_hands_its_stream_to_the_other(self):
        first, second = self.start("--state-key-file", self.key), self.start("--state-key-file", self.key)
        process = self.begin("--server", url(first), "--server", url(second))
        self.wait_for_frames()
        self.assertEqual(first.stop(), 0)
        record = self.check_whole(process, second)
        self.assertEqual((record["reconnects"], record["restarts"]), (1, 0))

    def kill_and_start_again(self, server, *options):
        server.process.kill()
        server.wait()
        return self.start(*options, port=server.port)

    def test_a_killed_server_costs_the_frames_since_the_last_checkpoint(self):
        server = self.start("--state-key-file", self.key)
        process = self.begin("--server", url(server), "--checkpoint-every", "20")
        self.wait_for_frames()
        server = self.kill_and_start_again(server, "--state-key-file", self.key)
        record = self.check_whole(process, server)
        self.assertEqual((record["reconnects"], record["restarts"]), (1, 0))
        self.assertGreater(record["longest_gap_ms"], 17)

    def test_another_rate_and_encoding_are_taken_up_too(self):
        kind = ("--fps", "24", "--output", "vertices", "--encoding", "i16")
        server = self.start("--state-key-file", self.key)
        process = self.begin("--server", url(server), "--checkpoint-every", "7", *kind)
        self.wait_for_frames()
        server = self.kill_and_start_again(server, "--state-key-file", self.key)
        record = self.check_whole(process, server, *kind, frames=FRAMES * 24 // 60)
        self.assertEqual((record["reconnects"], record["restarts"]), (1, 0))

    def test_a_token_that_nobody_can_open_costs_all_frames(self):
        server = self.start()  # each has a key of its own
        process = self.begin("--server", url(server), "--checkpoint-every", "20")
        self.wait_for_frames()
        server = self.kill_and_start_again(server)
        record = self.check_whole(process, server)
        self.assertEqual((record["reconnects"], record["restarts"]), (1, 1))
        self.assertGreater(record["frames_resent"], 20)

    def test_a_server_that_does_not_come_back_is_given_up(self):
        server = self.start()
        process = self.begin("--server", url(server), "--reconnect-tries", "3")
        self.wait_for_frames()
        server.process.kill()
        server.wait()
        out, error = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 1)
        self.assertIn("connection refused", error)
        self.assertIn("gave up after 3 more tries", error)
        self.assertLess(json.loads(out)["frames_received"], FRAMES)
        self.assertFalse(os.path.exists(self.path("lost.raw")))

    def test_an_interrupt_ends_it_at_once(self):
        server = self.start()
        process = self.begin("--server", url(server))
        self.wait_for_frames()
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("interrupted by signal 2", error)
        self.assertEqual(json.loads(out)["failures"], {"interrupted": 1})
        self.assertEqual(re.findall(r"lost\.raw|\.tmp", " ".join(os.listdir(self.folder.name))), [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
