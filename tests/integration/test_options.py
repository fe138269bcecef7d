#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a session may ask for: outputs, encodings, rates, delivery and text instead of frames, against
`dsnet predict`, which knows nothing of sessions."""
import base64
import json
import math
import os
import struct
import subprocess
import tempfile
import time
import unittest

import numpy as np

from ws import BINARY, PING, PONG, TEXT, Client, Closed, Server, pose_frame
from test_stream import motion

DSNET = os.path.join(os.environ["DSNET_BUILD"], "model/tool/dsnet")
BETAS = [1.5, -0.5, 0.25] + [0.0] * 7


def numbers(payload, encoding):
    if encoding == "i16":
        scale = struct.unpack("<f", payload[:4])[0]
        return np.frombuffer(payload[4:], "<i2").astype(np.float64) * scale
    return np.frombuffer(payload, {"f32": "<f4", "f16": "<f2"}[encoding]).astype(np.float64)


def half_seconds(frames, fps):
    """A clip whose root turns and whose joints sway, at a rate, standing in one place."""
    poses, trans = [], []
    for t in range(frames):
        pose, _ = motion(t * 60 / fps)
        poses.append(pose)
        trans.append((0.0, 0.0, 0.95))
    return np.array(poses), np.array(trans)


class OptionsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--threads", "1")
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        cls.folder.cleanup()
        assert status == 0, cls.server.log

    def predict(self, poses, trans, fps, kind, betas=BETAS):
        clip, output = (os.path.join(self.folder.name, name) for name in ("clip.npz", "out.npz"))
        np.savez(clip, poses=poses, trans=trans, betas=np.array(betas), mocap_framerate=float(fps),
                 gender="neutral")
        subprocess.run([DSNET, "predict", clip, "-o", output, "--kind", kind], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with np.load(output) as file:
            return file[kind].astype(np.float64)

    def stream(self, poses, trans, fps=60, betas=BETAS, encoding="f32", **members):
        """The numbers of every result of one session, and its opened message."""
        with Client(self.server) as client:
            opened = client.open(betas=betas, fps=fps, encoding=encoding, **members)
            results = []
            for seq, (pose, place) in enumerate(zip(poses, trans)):
                client.send(BINARY, pose_frame(seq, pose, place, timestamp=seq / fps))
                result = client.receive()
                kind, code, count, got, stamp = struct.unpack("<BBHId", result[:16])
                self.assertEqual((got, stamp, count), (seq, seq / fps, 0))
                self.assertEqual(kind, {"displacement": 2, "vertices": 3, "latent": 4}[
                    members.get("output", "displacement")])
                self.assertEqual(code, {"f32": 0, "f16": 1, "i16": 2}[encoding])
                results.append(numbers(result[16:], encoding))
            return np.array(results), opened

    def test_every_output_is_that_of_the_offline_tool(self):
        poses, trans = half_seconds(30, 60)
        for kind in ("displacement", "vertices", "latent"):
            offline = self.predict(poses, trans, 60, kind).reshape(30, -1)
            streamed, opened = self.stream(poses, trans, output=kind)
            self.assertEqual(streamed.shape[1], opened["latents"] if kind == "latent"
                             else 3 * opened["vertices"])
            # Poses reach the server as f32, the tool as f64.
            self.assertLess(np.abs(streamed - offline).max(), 1e-5 * np.abs(offline).max())

    def test_narrow_encodings_are_as_exact_as_they_say(self):
        poses, trans = half_seconds(12, 60)
        for kind in ("displacement", "vertices", "latent"):
            exact, _ = self.stream(poses, trans, output=kind)
            half, _ = self.stream(poses, trans, output=kind, encoding="f16")
            self.assertTrue((half == exact.astype("<f2").astype(np.float64)).all())
            scaled, _ = self.stream(poses, trans, output=kind, encoding="i16")
            scale = np.abs(exact).max(axis=1, keepdims=True) / 32767
            self.assertLess((np.abs(scaled - exact) / scale).max(), 0.506)

    def test_vertices_of_a_y_up_client_are_in_its_world(self):
        poses, trans = half_seconds(3, 60)
        upright, _ = self.stream(poses, trans, output="vertices")
        back = -math.pi / 2  # the same motion told in a world whose y is up
        turned = []
        for pose in poses:
            angle = np.linalg.norm(pose[:3])
            axis = pose[:3] / angle
            cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
            root = np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross
            tilt = np.array([[1, 0, 0], [0, math.cos(back), -math.sin(back)],
                             [0, math.sin(back), math.cos(back)]])
            both = tilt @ root
            half = math.acos(max(-1, min(1, (np.trace(both) - 1) / 2)))
            vector = np.array([both[2, 1] - both[1, 2], both[0, 2] - both[2, 0], both[1, 0] - both[0, 1]])
            length = np.linalg.norm(vector)
            turned.append(np.concatenate([vector / length * half if length else vector, pose[3:]]))
        moved = [(x, z, -y) for x, y, z in trans]
        there, _ = self.stream(np.array(turned), np.array(moved), output="vertices", up="y")
        a, b = upright.reshape(3, -1, 3), there.reshape(3, -1, 3)
        expected = np.stack([a[..., 0], a[..., 2], -a[..., 1]], axis=-1)
        # The pelvis turns about its own place, which the two worlds put a constant apart.
        shift = (b - expected).mean(axis=1, keepdims=True)
        self.assertLess(np.abs(b - expected - shift).max(), 1e-4)

    def test_rates_that_divide_the_models_are_on_time(self):
        poses, trans = half_seconds(24, 30)
        offline = self.predict(poses, trans, 30, "latent")
        streamed, opened = self.stream(poses, trans, fps=30, output="latent")
        self.assertEqual((opened["fps"], opened["delay"]), (30, 0))
        self.assertLess(np.abs(streamed - offline[::2][:24]).max(), 1e-4 * np.abs(offline).max())

    def test_faster_rates_lag_by_the_delay_they_are_told(self):
        poses, trans = half_seconds(60, 120)
        offline = self.predict(poses, trans, 120, "latent")
        streamed, opened = self.stream(poses, trans, fps=120, output="latent")
        self.assertEqual(opened["fps"], 120)
        self.assertAlmostEqual(opened["delay"], 1 / 60)
        times = np.arange(60) / 120 - opened["delay"]
        for k in range(offline.shape[1]):
            expected = np.interp(times[4:], np.arange(len(offline)) / 60, offline[:, k])
            self.assertLess(np.abs(streamed[4:, k] - expected).max(), 1e-4 * np.abs(offline).max())

    def test_a_break_does_not_invent_a_spike(self):
        poses, trans = half_seconds(40, 60)
        moved = trans.copy()
        moved[20:] += 3.0  # metres, while nothing was sent
        calm, _ = self.stream(poses, trans, output="latent")
        with Client(self.server) as client:
            client.open(betas=BETAS, output="latent")
            results = []
            for seq in range(40):
                stamp = seq / 60 + (10 if seq >= 20 else 0)
                client.send(BINARY, pose_frame(seq, poses[seq], moved[seq], timestamp=stamp))
                results.append(numbers(client.receive()[16:], "f32"))
            client.send_json(type="stats")
            stats = json.loads(client.receive())
        self.assertEqual((stats["gaps"], stats["frames_in"], stats["frames_out"]), (1, 40, 40))
        steps = np.abs(np.diff(np.array(results), axis=0)).max(axis=1)
        self.assertLess(steps[19], 3 * np.abs(np.diff(calm, axis=0)).max())

    def test_a_glitch_is_held_when_that_is_asked_for(self):
        poses, trans = half_seconds(30, 60)
        clean, _ = self.stream(poses, trans, output="latent")
        flipped = poses.copy()
        flipped[15, 48:51] += 3.0
        passed, _ = self.stream(flipped, trans, output="latent")
        held, _ = self.stream(flipped, trans, output="latent", glitch="hold")
        self.assertTrue((passed[:15] == clean[:15]).all() and (held[:15] == clean[:15]).all())
        self.assertLess(np.abs(held - clean).max(), 0.2 * np.abs(passed - clean).max())

    def test_shape_and_reset_take_effect_with_the_next_frame(self):
        poses, trans = half_seconds(20, 60)
        other = [-1.0] * 10
        with Client(self.server) as client:
            client.open(output="latent")
            results = []
            for seq in range(20):  # all sent before the first is read
                if seq == 6:
                    client.send_json(type="shape", betas=other)
                if seq == 12:
                    client.send_json(type="reset")
                client.send(BINARY, pose_frame(seq, poses[seq], trans[seq], timestamp=seq / 60))
            for _ in range(20):
                results.append(numbers(client.receive()[16:], "f32"))
        before, _ = self.stream(poses[:6], trans[:6], betas=[0.0] * 10, output="latent")
        after, _ = self.stream(poses[12:], trans[12:], betas=other, output="latent")
        self.assertTrue((np.array(results[:6]) == before).all())
        self.assertTrue((np.array(results[12:]) == after).all())
        unchanged, _ = self.stream(poses[:7], trans[:7], betas=[0.0] * 10, output="latent")
        self.assertTrue((results[6] != unchanged[6]).any())

    def test_text_says_the_same_as_frames(self):
        poses, trans = half_seconds(5, 60)
        for kind, encoding in (("displacement", "i16"), ("latent", "f32"), ("vertices", "f16")):
            binary, _ = self.stream(poses, trans, output=kind, encoding=encoding)
            with Client(self.server) as client:
                client.open(betas=BETAS, output=kind, encoding=encoding, format="json")
                for seq in range(5):
                    client.send_json(type="pose", seq=seq, timestamp=seq / 60,
                                     pose=[float(np.float32(x)) for x in poses[seq]],
                                     trans=[float(np.float32(x)) for x in trans[seq]])
                    result = json.loads(client.receive())
                    self.assertEqual((result["type"], result["seq"], result["timestamp"]),
                                     ("result", seq, seq / 60))
                    self.assertEqual((result["kind"], result["encoding"]), (kind, encoding))
                    payload = base64.b64decode(result["data"], validate=True)
                    self.assertTrue((numbers(payload, encoding) == binary[seq]).all())
                client.send_json(type="pose", seq=5, pose=[0.0] * 65, trans=[0, 0, 0])
                self.assertEqual(client.error()["code"], "bad_member")
                client.send_json(type="pose", seq=4, pose=[0.0] * 66, trans=[0, 0, 0])
                refused = client.error()
                self.assertEqual((refused["code"], refused["seq"]), ("bad_seq", 4))

    def test_the_newest_result_reaches_a_reader_that_was_away(self):
        count = 3000  # 250 MB of results, far more than sockets hold
        with Client(self.server) as client, Client(self.server) as steady:
            client.open(delivery="latest")
            steady.open(output="latent")
            last = None
            for seq in range(count):  # the client only sends
                pose, place = motion(seq)
                client.send(BINARY, pose_frame(seq, pose, place, timestamp=seq / 60))
            client.send_json(type="stats")
            seen, stats = [], None
            while not seen or seen[-1] < count - 1 or stats is None:
                message = client.receive()
                if isinstance(message, str):
                    stats = json.loads(message)
                    continue
                seen.append(struct.unpack("<I", message[4:8])[0])
                last = message
            client.send_json(type="stats")
            stats = json.loads(client.receive())
            self.assertEqual(seen, sorted(set(seen)))
            self.assertLess(len(seen), count)
            self.assertEqual(stats["frames_in"], count)
            self.assertEqual(stats["frames_out"], len(seen))
            self.assertEqual(stats["skipped"], count - len(seen))
            # Every pose was stepped all the same: a session that reads all ends up with the same.
            full = None
            with Client(self.server) as reader:
                reader.open()
                for seq in range(count):
                    pose, place = motion(seq)
                    reader.send(BINARY, pose_frame(seq, pose, place, timestamp=seq / 60))
                    full = reader.receive()
            self.assertEqual(last[16:], full[16:])

    def test_a_ping_is_answered_in_words(self):
        with Client(self.server) as client:
            for members in ({"id": 12}, {"id": "twelve"}, {}):
                client.send_json(type="ping", **members)
                self.assertEqual(json.loads(client.receive()), {"type": "pong", **members})
            client.send_json(type="stats")
            self.assertEqual(client.error()["code"], "not_open")
            client.send_json(type="shape", betas=[1])
            self.assertEqual(client.error()["code"], "not_open")
            client.send_json(type="reset")
            self.assertEqual(client.error()["code"], "not_open")
            client.open()
            for text in ("pong", "keepalive", "opened", "result"):
                client.send_json(type=text, session="s", model="m", vertices=1, latents=1, fps=60,
                                 next_seq=0, trained=True)
                self.assertEqual(client.error()["code"], "bad_type")


class KeepAliveTest(unittest.TestCase):
    def test_silence_is_broken_and_a_peer_that_is_gone_is_dropped(self):
        server = Server("--threads", "1", "--ping-interval", "0.3", "--idle-timeout", "3")
        with Client(server) as quiet, Client(server) as mute:
            quiet.open(keepalive=0.2)
            mute.open()
            started = time.monotonic()
            said = []
            while time.monotonic() - started < 1.5:
                opcode, payload = quiet.receive_frame()
                said.append(opcode)
                if opcode == PING:
                    quiet.send(PONG, payload)
                else:
                    self.assertEqual(json.loads(payload), {"type": "keepalive"})
            self.assertIn(PING, said)
            self.assertIn(TEXT, said)
            # Pings and pongs are no messages: the idle time-out comes all the same.
            self.assertEqual(quiet.close_code(), 1008)
            # The other one heard pings and never answered, so it was cut without a close frame.
            frames = []
            with self.assertRaises(Closed) as cut:
                while True:
                    frames.append(mute.receive_frame())
            self.assertEqual(cut.exception.code, 1006)
            self.assertEqual({opcode for opcode, _ in frames}, {PING})
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
