#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""State tokens against real servers: a session goes on in another process as if nothing had happened, a token
that should not open does not, and a server that is told to end hands every session over."""
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np

from ws import BINARY, CLOSE, TEXT, Client, Closed, Server, frame, pose_frame
from test_metrics import scrape, value
from test_stream import motion

DSNET = os.path.join(os.environ["DSNET_BUILD"], "model/tool/dsnet")


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)


def seq_of(result):
    return struct.unpack("<I", result[4:8])[0]


def send_frames(client, seqs):
    """All at once."""
    client.socket.sendall(b"".join(frame(BINARY, pose_frame(seq, *motion(seq))) for seq in seqs))


def receive_results(client, count):
    """The next `count` results, and the checkpoints between and right after them, as messages."""
    results, checkpoints = [], []
    while len(results) < count:
        message = client.receive()
        if isinstance(message, bytes):
            results.append(message)
        else:
            checkpoints.append(json.loads(message))
    return results, checkpoints


def step(client, seq, fps=60.0, text=False):
    """Sends one frame in its time and returns its result."""
    pose, trans = motion(seq)
    if text:
        client.send_json(type="pose", seq=seq, timestamp=seq / fps, pose=pose, trans=list(trans))
    else:
        client.send(BINARY, pose_frame(seq, pose, trans, timestamp=seq / fps))
    return client.receive()


def receive_checkpoint(client):
    message = json.loads(client.receive())
    assert message["type"] == "checkpoint", message
    return message


def run(server, count, **members):
    """The results of one uninterrupted session."""
    with Client(server) as client:
        client.open(**members)
        results = []
        for seq in range(count):
            send_frames(client, [seq])
            results.append(client.receive())
        return results


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.servers = []

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            assert server.stop() == 0, server.log
        cls.folder.cleanup()

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    @classmethod
    def key(cls, name):
        path = cls.path(name)
        if not os.path.exists(path):
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.write(os.urandom(32))
        return path

    @classmethod
    def server(cls, *arguments, keys=("shared",)):
        for name in keys:
            arguments += ("--state-key-file", cls.key(name))
        server = Server("--threads", "1", *arguments)
        cls.servers.append(server)
        return server

    @classmethod
    def model(cls, name, *arguments):
        subprocess.run([DSNET, "init", "-o", cls.path(name), *arguments], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return cls.path(name)

    def token(self, server, frames=3, **members):
        """Of a session that has taken that many frames."""
        with Client(server) as client:
            client.open(**members)
            send_frames(client, range(frames))
            client.send_json(type="checkpoint")
            _, early = receive_results(client, frames)
            self.assertEqual(early, [])
            checkpoint = receive_checkpoint(client)
            self.assertEqual(checkpoint["seq"], frames - 1)
            return checkpoint["token"]

    def refusal(self, server, **members):
        with Client(server) as client:
            counted = scrape(server)
            client.send_json(type="open", **members)
            answer = client.error()
            code = f'code="{answer["code"]}"'  # operators see refusals by reason
            self.assertEqual(value(scrape(server), "dsnet_errors_total", labels=code),
                             value(counted, "dsnet_errors_total", labels=code) + 1)
            # The connection is as good as before.
            client.open()
            send_frames(client, [0])
            self.assertEqual(seq_of(client.receive()), 0)
            return answer


class ResumeTest(Folder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.here, cls.there = cls.server(), cls.server()

    def test_a_session_goes_on_in_another_process_to_the_bit(self):
        options = {"betas": [0.5, -1, 2], "up": "y"}
        expected = run(self.here, 16, **options)
        with Client(self.here) as client:
            client.open(checkpoint_every=5, **options)
            send_frames(client, range(12))
            results, checkpoints = receive_results(client, 12)
        self.assertEqual(results, expected[:12])
        self.assertEqual([c["seq"] for c in checkpoints], [4, 9])
        for checkpoint in checkpoints:
            with Client(self.there) as client:
                # The shape is the session's own, whatever is asked for here.
                opened = client.open(resume=checkpoint["token"], up="y")
                following = range(checkpoint["seq"] + 1, 16)
                self.assertEqual(opened["next_seq"], following[0])
                send_frames(client, following)
                results, more = receive_results(client, len(following))
                self.assertEqual(results, expected[following[0]:])
                self.assertEqual(more, [])

    def test_a_checkpoint_is_of_the_frames_taken_before_it_was_asked_for(self):
        expected = run(self.here, 10)
        with Client(self.here) as client:
            client.open()
            data = [frame(BINARY, pose_frame(seq, *motion(seq))) for seq in range(8)]
            data.insert(6, frame(TEXT, b'{"type":"checkpoint"}'))
            client.socket.sendall(b"".join(data))
            order = [client.receive() for _ in range(9)]
        self.assertEqual(order[:6] + order[7:], expected[:8])
        checkpoint = json.loads(order[6])
        self.assertEqual((checkpoint["type"], checkpoint["seq"]), ("checkpoint", 5))
        with Client(self.there) as client:
            self.assertEqual(client.open(resume=checkpoint["token"])["next_seq"], 6)
            send_frames(client, range(6, 10))
            self.assertEqual(receive_results(client, 4)[0], expected[6:])

    def test_whatever_a_session_asked_for_goes_on(self):
        asked = [{"fps": 30}, {"fps": 120}, {"fps": 47.5}, {"fps": 24, "output": "latent"},
                 {"glitch": "hold"}, {"output": "vertices", "encoding": "i16", "up": "y"},
                 {"output": "latent", "format": "json"}, {"delivery": "latest", "encoding": "f16"}]
        for options in asked:
            fps, text = options.get("fps", 60), options.get("format") == "json"
            with Client(self.here) as client:
                client.open(**options)
                expected = [step(client, seq, fps, text) for seq in range(14)]
            with Client(self.here) as client:
                client.open(checkpoint_every=6, **options)
                results = [step(client, seq, fps, text) for seq in range(6)]
                every = receive_checkpoint(client)
                results += [step(client, seq, fps, text) for seq in range(6, 9)]
                client.send_json(type="checkpoint")
                asked_for = receive_checkpoint(client)
            self.assertEqual(results, expected[:9])
            for checkpoint, seq in ((every, 6), (asked_for, 9)):
                with Client(self.there) as client:
                    opened = client.open(resume=checkpoint["token"], **options)
                    self.assertEqual(opened["next_seq"], seq)
                    results = [step(client, t, fps, text) for t in range(seq, 14)]
                    self.assertEqual(results, expected[seq:], options)

    def test_output_may_change_on_the_way(self):
        with Client(self.here) as client:
            client.open(output="latent", encoding="f16", up="y")
            expected = [step(client, seq) for seq in range(6)]
        with Client(self.here) as client:
            client.open(up="y", delivery="latest")
            for seq in range(3):
                step(client, seq)
            client.send_json(type="checkpoint")
            token = receive_checkpoint(client)["token"]
        with Client(self.there) as client:
            client.open(resume=token, output="latent", encoding="f16", up="y")
            self.assertEqual([step(client, seq) for seq in range(3, 6)], expected[3:])

    def test_shape_and_reset_belong_to_the_frames_after_them(self):
        changes = {5: {"type": "shape", "betas": [2, -1]}, 9: {"type": "reset"}}

        def stream(client, seqs, before=()):
            """Frames with what is sent before them: all that came after the checkpoint."""
            results = []
            for seq in seqs:
                if seq in changes and seq not in before:
                    client.send_json(**changes[seq])
                results.append(step(client, seq))
            return results

        with Client(self.here) as client:
            client.open(betas=[1])
            expected = stream(client, range(12))
        for at in changes:
            with Client(self.here) as client:  # the change was made before the checkpoint
                client.open(betas=[1])
                stream(client, range(at))
                client.send_json(**changes[at])
                client.send_json(type="checkpoint")
                checkpoint = receive_checkpoint(client)
                self.assertEqual(checkpoint["seq"], at - 1)
            with Client(self.there) as client:
                client.open(resume=checkpoint["token"])
                self.assertEqual(stream(client, range(at, 12), before=(at,)), expected[at:])
            with Client(self.here) as client:  # and right after it, with the frames hard behind
                client.open(betas=[1], checkpoint_every=at)
                sent = [frame(BINARY, pose_frame(seq, *motion(seq), timestamp=seq / 60))
                        for seq in range(at + 2)]
                if at == 9:
                    sent.insert(5, frame(TEXT, json.dumps(changes[5]).encode()))
                sent.insert(len(sent) - 2, frame(TEXT, json.dumps(changes[at]).encode()))
                client.socket.sendall(b"".join(sent))
                results, checkpoints = receive_results(client, at + 2)
                self.assertEqual(results, expected[:at + 2])
                self.assertEqual(checkpoints[0]["seq"], at - 1)
            with Client(self.there) as client:
                client.open(resume=checkpoints[0]["token"])
                client.send_json(type="stats")
                stats = json.loads(client.receive())
                self.assertEqual((stats["frames_in"], stats["frames_out"]), (at, at))
                self.assertEqual(stream(client, range(at, 12)), expected[at:])

    def test_statistics_go_on(self):
        with Client(self.here) as client:
            client.open(checkpoint_every=7, glitch="hold")
            for seq in range(6):
                step(client, seq)
            # A glitch, and time that jumps.
            client.send(BINARY, pose_frame(6, [3.0] * 66, timestamp=100.0))
            client.receive()
            token = receive_checkpoint(client)["token"]
            client.send_json(type="stats")
            before = json.loads(client.receive())
        with Client(self.there) as client:
            client.open(resume=token, glitch="hold")
            client.send_json(type="stats")
            after = json.loads(client.receive())
            for name in ("frames_in", "frames_out", "skipped", "held", "gaps"):
                self.assertEqual(after[name], before[name], name)
            self.assertEqual((after["frames_in"], after["gaps"]), (7, 1))
            self.assertEqual(after["latency_p50_ms"], 0)  # nothing was measured here yet
            client.send(BINARY, pose_frame(7, timestamp=100 + 1 / 60))
            client.receive()
            client.send_json(type="stats")
            after = json.loads(client.receive())
            self.assertEqual((after["frames_in"], after["frames_out"]), (8, 8))
            self.assertGreater(after["latency_p50_ms"], 0)

    def test_a_session_may_move_again_and_again(self):
        expected = run(self.here, 8)
        token = None
        for seq in range(8):
            with Client((self.here, self.there)[seq % 2]) as client:
                opened = client.open(checkpoint_every=1, **({"resume": token} if token else {}))
                self.assertEqual(opened["next_seq"], seq)
                send_frames(client, [seq])
                self.assertEqual(client.receive(), expected[seq])
                token = receive_checkpoint(client)["token"]

    def test_one_token_may_be_used_twice(self):
        expected = run(self.here, 4)
        token = self.token(self.here)
        for _ in range(2):
            with Client(self.there) as client:
                client.open(resume=token)
                send_frames(client, [3])
                self.assertEqual(client.receive(), expected[3])

    def test_a_resumed_session_knows_its_last_frame(self):
        with Client(self.there) as client:
            client.open(resume=self.token(self.here))
            client.send_json(type="checkpoint")
            self.assertEqual(receive_checkpoint(client)["seq"], 2)
            send_frames(client, [2])
            self.assertEqual(client.error()["code"], "bad_seq")
            send_frames(client, [7])
            self.assertEqual(seq_of(client.receive()), 7)

    def test_numbers_begin_anew_after_the_last(self):
        last = 2 ** 32 - 1
        with Client(self.here) as client:
            client.open(checkpoint_every=1)
            send_frames(client, [last])
            self.assertEqual(seq_of(client.receive()), last)
            checkpoint = receive_checkpoint(client)
            self.assertEqual(checkpoint["seq"], last)
        with Client(self.there) as client:
            self.assertEqual(client.open(resume=checkpoint["token"])["next_seq"], 0)
            send_frames(client, [0])
            self.assertEqual(seq_of(client.receive()), 0)

    def test_every_request_is_answered(self):
        with Client(self.here) as client:
            client.open()
            step(client, 0)
            client.socket.sendall(frame(TEXT, b'{"type":"checkpoint"}') * 1000)
            tokens = {receive_checkpoint(client)["token"] for _ in range(1000)}
            self.assertEqual(len(tokens), 1000)  # no two alike, though of one state
            self.assertEqual(seq_of(step(client, 1)), 1)

    def test_before_the_first_frame_there_is_nothing_to_keep(self):
        with Client(self.here) as client:
            client.open()
            client.send_json(type="checkpoint")
            self.assertEqual(client.error()["code"], "unsupported")
            send_frames(client, [0])
            self.assertEqual(seq_of(client.receive()), 0)

    def test_another_rate_is_refused(self):
        answer = self.refusal(self.there, resume=self.token(self.here), fps=30)
        self.assertEqual(answer["code"], "bad_member")
        self.assertIn("fps", answer["message"])

    def test_altered_tokens_are_refused(self):
        token = self.token(self.here)
        middle = len(token) // 2
        other = "A" if token[middle] != "A" else "B"
        for altered in (token[:middle] + other + token[middle + 1:], token[:-1], token[1:],
                        token + "A", token[:middle], "A", "A" * 50000, token + "=", "%" * 80):
            self.assertEqual(self.refusal(self.there, resume=altered)["code"], "bad_token")

    def test_another_key_refuses(self):
        token = self.token(self.here)
        for keys in (("other",), ()):  # without a file each process has its own
            server = self.server(keys=keys)
            self.assertEqual(self.refusal(server, resume=token)["code"], "bad_token")
            self.assertEqual(self.refusal(self.there, resume=self.token(server))["code"], "bad_token")

    def test_keys_are_rotated_without_losing_a_session(self):
        before, after = self.server(keys=("old",)), self.server(keys=("new",))
        during = self.server(keys=("new", "old"))
        old, new = self.token(before), self.token(during)
        for server, token in ((during, old), (during, new), (after, new)):
            with Client(server) as client:
                self.assertEqual(client.open(resume=token)["next_seq"], 3)
        for server, token in ((after, old), (before, new)):
            self.assertEqual(self.refusal(server, resume=token)["code"], "bad_token")

    def test_a_token_ages(self):
        server = self.server("--token-max-age", "1")
        token = self.token(server)
        time.sleep(1.2)
        self.assertEqual(self.refusal(server, resume=token)["code"], "expired_token")
        with Client(self.there) as client:  # where it may be older
            client.open(resume=token)

    def test_another_model_refuses_and_another_name_does_not(self):
        first = self.model("first.safetensors", "--seed", "2")
        second = self.model("second.safetensors", "--seed", "3")
        third = self.model("third.safetensors", "--seed", "2", "--hidden", "64")
        server = self.server("--model", f"default={first}", "--model", f"second={second}",
                             "--model", f"again={first}", "--model", f"third={third}")
        token = self.token(server)
        for name in ("second", "third"):
            answer = self.refusal(server, resume=token, model=name)
            self.assertEqual(answer["code"], "wrong_model")
        self.assertEqual(self.refusal(self.there, resume=token)["code"], "wrong_model")
        with Client(server) as client:
            client.open(resume=token, model="again")

    def test_tokens_that_no_message_could_carry_are_not_offered(self):
        server = self.server("--max-message", "4000")
        self.assertEqual(self.refusal(server, checkpoint_every=1)["code"], "unsupported")
        with Client(server) as client:
            client.open()
            send_frames(client, [0])
            client.send_json(type="checkpoint")
            self.assertEqual(seq_of(client.receive()), 0)
            self.assertEqual(client.error()["code"], "unsupported")

    def test_a_file_that_is_no_key_stops_the_start(self):
        with open(self.path("short"), "wb") as file:
            file.write(b"x" * 31)
        result = subprocess.run([os.environ["DSNETD"], "--check-config", "--state-key-file",
                                 self.path("short")], capture_output=True, text=True, timeout=60)
        self.assertEqual(result.returncode, 1)
        self.assertIn("31 bytes", result.stderr)

    def test_a_key_that_everybody_may_read_is_warned_of(self):
        os.chmod(self.key("open"), 0o644)
        server = self.server(keys=("open",))
        self.assertTrue(any("every user of this machine" in line for line in server.log), server.log)


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
            late.send(CLOSE, struct.pack(">H", 1012))
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


class HandOver:
    """A client that streams a clip through servers that end under it."""

    AHEAD = 3  # frames sent and not yet answered

    def __init__(self, pose, trans, betas):
        self.pose, self.trans, self.betas = pose, trans, betas
        self.results, self.token, self.sent = [], None, 0

    def connect(self, server):
        self.client = Client(server)
        if self.token:
            opened = self.client.open(resume=self.token)
        else:
            opened = self.client.open(betas=self.betas)
        # What was answered is kept, what was not is sent again.
        assert opened["next_seq"] == len(self.results), (opened["next_seq"], len(self.results))
        self.sent = opened["next_seq"]

    def send_until(self, seq):
        while self.sent < seq:
            pose = pose_frame(self.sent, self.pose[self.sent], self.trans[self.sent])
            self.client.send(BINARY, pose)
            self.sent += 1

    def receive(self):
        message = self.client.receive()
        if isinstance(message, bytes):
            assert seq_of(message) == len(self.results)
            self.results.append(message[16:])
        else:
            checkpoint = json.loads(message)
            assert checkpoint["type"] == "checkpoint", checkpoint
            assert checkpoint["seq"] == len(self.results) - 1
            self.token = checkpoint["token"]

    def stream_until(self, seq):
        while len(self.results) < seq:
            self.send_until(min(seq, len(self.results) + self.AHEAD))
            self.receive()

    def receive_until_closed(self):
        """Returns the close code and answers it."""
        try:
            while True:
                self.receive()
        except Closed as closed:
            self.client.send(CLOSE, struct.pack(">H", closed.code))
            self.client.socket.close()
            return closed.code


class DrainTest(Folder):
    SESSIONS, FRAMES = 20, 60

    def test_every_session_is_handed_over_and_goes_on_as_if_nothing_had_happened(self):
        clip = self.path("clip.npz")
        subprocess.run([DSNET, "motion", "-o", clip, "--seconds", str(self.FRAMES / 60)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with np.load(clip) as arrays:
            pose = arrays["poses"][:, :66].astype("<f4").tolist()
            trans = arrays["trans"].astype("<f4").tolist()
        shapes = [[0.5, -1.0], []]
        offline = [self.predict(clip, betas) for betas in shapes]
        first, second, stranger = self.server(), self.server(), self.server(keys=("other",))
        clients = [HandOver(pose[:self.FRAMES], trans, shapes[i % 2]) for i in range(self.SESSIONS)]
        for index, client in enumerate(clients):
            client.connect(first)
            client.stream_until(10 + index)
            client.send_until(10 + index + HandOver.AHEAD)  # on their way when the signal comes
        first.process.send_signal(signal.SIGTERM)
        for client in clients:
            self.assertEqual(client.receive_until_closed(), 1012)
            self.assertIsNotNone(client.token)
        self.assertEqual(first.wait(), 0)
        for client in clients:
            self.assertEqual(self.refusal(stranger, resume=client.token)["code"], "bad_token")
            client.connect(second)
        for client in clients:
            client.stream_until(self.FRAMES)
            client.client.socket.close()
        for index, client in enumerate(clients):
            self.assertEqual(b"".join(client.results), offline[index % 2][:self.FRAMES].tobytes())

    def predict(self, clip, betas):
        output = self.path("offline.npz")
        subprocess.run([DSNET, "predict", clip, "-o", output,
                        "--betas", ",".join(map(str, betas)) or "0"], check=True,
                       stderr=subprocess.DEVNULL)
        with np.load(output) as arrays:
            return arrays["displacement"].astype("<f4")

    def test_a_client_that_reads_late_gets_its_results_and_its_token(self):
        first, second = self.server(), self.server()
        expected = run(second, 300)
        with Client(first) as client:
            client.open()
            send_frames(client, range(300))  # 25 MB of results; sockets hold less
            first.process.send_signal(signal.SIGTERM)
            wait_until(lambda: any('"finishing"' in line for line in first.log))
            results = []
            while isinstance(message := client.receive(), bytes):
                results.append(message)
            checkpoint = json.loads(message)
            self.assertLess(len(results), 300)
            self.assertEqual(results, expected[:len(results)])
            self.assertEqual(checkpoint["seq"], len(results) - 1)
            self.assertEqual(client.close_code(), 1012)
            client.send(CLOSE, struct.pack(">H", 1012))
        self.assertEqual(first.wait(), 0)
        with Client(second) as client:
            opened = client.open(resume=checkpoint["token"])
            send_frames(client, range(opened["next_seq"], 300))
            self.assertEqual(receive_results(client, 300 - opened["next_seq"])[0],
                             expected[opened["next_seq"]:])

    def test_an_idle_session_is_handed_over_too(self):
        first, second = self.server("--idle-timeout", "0.5"), self.server()
        expected = run(second, 3)
        with Client(first) as client:
            client.open()
            send_frames(client, range(2))
            receive_results(client, 2)
            checkpoint = receive_checkpoint(client)
            self.assertEqual(client.close_code(), 1008)
        with Client(second) as client:
            self.assertEqual(client.open(resume=checkpoint["token"])["next_seq"], 2)
            send_frames(client, [2])
            self.assertEqual(client.receive(), expected[2])

    def test_a_client_that_closes_gets_its_close_and_no_token(self):
        with Client(self.server()) as client:
            client.open()
            send_frames(client, range(3))
            client.send(CLOSE, struct.pack(">H", 1000))
            receive_results(client, 3)
            with self.assertRaises(Closed) as closed:
                client.receive()
            self.assertEqual(closed.exception.code, 1000)

    def test_a_session_without_a_frame_gets_no_token(self):
        server = self.server()
        with Client(server) as client:
            client.open()
            server.process.send_signal(signal.SIGTERM)
            with self.assertRaises(Closed) as closed:
                client.receive()
            self.assertEqual(closed.exception.code, 1012)


if __name__ == "__main__":
    unittest.main(verbosity=1)
