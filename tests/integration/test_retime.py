#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sessions at other rates than the model's, and with timestamps that jitter, skip, break off or tick coarsely:
the built-in sample through a real server, against `dsnet predict` of the same motion put onto the model's
frames here."""
import json
import os
import random
import struct
import subprocess
import tempfile
import unittest

import numpy as np

from ws import BINARY, Client, Server, pose_frame

DSNET = os.path.join(os.environ["DSNET_BUILD"], "model/tool/dsnet")
SAMPLE = os.path.join(os.path.dirname(__file__), "../../model/builtin/sample.npz")
RATE = 60
FRAMES = 150
FLIP = slice(3 * 16, 3 * 17)  # the left upper arm


def quaternions(vectors):
    angle = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angle / 2), np.sinc(angle / (2 * np.pi)) / 2 * vectors], axis=-1)


def slerp(a, b, t):
    """Between rotation vectors [..., 3], none of them beyond pi."""
    p, q = quaternions(a), quaternions(b)
    cosine = (p * q).sum(axis=-1, keepdims=True)
    q, angle = np.where(cosine < 0, -q, q), np.arccos(np.minimum(np.abs(cosine), 1))
    sine = np.maximum(np.sin(angle), 1e-12)
    mixed = np.where(angle < 1e-6, (1 - t) * p + t * q,
                     (np.sin((1 - t) * angle) * p + np.sin(t * angle) * q) / sine)
    mixed *= np.where(mixed[..., :1] < 0, -1, 1)
    length = np.linalg.norm(mixed[..., 1:], axis=-1, keepdims=True)
    return mixed[..., 1:] * 2 * np.arctan2(length, mixed[..., :1]) / np.maximum(length, 1e-12)


def on_the_grid(poses, trans, stamps):
    """The motion at the model's frames: slerp and straight lines between the poses [T][66] there are."""
    times = np.arange(int(stamps[-1] * RATE + 1e-6) + 1) / RATE
    before = np.clip(np.searchsorted(stamps, times + 1e-9) - 1, 0, len(stamps) - 2)
    t = ((times - stamps[before]) / (stamps[before + 1] - stamps[before]))[:, None, None]
    joints = poses.reshape(len(poses), -1, 3)
    between = slerp(joints[before], joints[before + 1], t).reshape(len(times), -1)
    return between, (1 - t[:, 0]) * trans[before] + t[:, 0] * trans[before + 1]


def changes(latents):
    """The largest change of any latent, from frame to frame."""
    return np.abs(np.diff(latents, axis=0)).max(axis=1)


class RetimeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with np.load(SAMPLE) as sample:
            # At every rate the same poses, as if they had been captured at it.
            cls.poses = sample["poses"][:FRAMES, :66].astype(np.float64)
            cls.trans = sample["trans"][:FRAMES].astype(np.float64)
        cls.folder = tempfile.TemporaryDirectory()
        cls.server = Server("--threads", "1")

    @classmethod
    def tearDownClass(cls):
        status = cls.server.stop()
        cls.folder.cleanup()
        assert status == 0, cls.server.log

    def predict(self, poses, trans, fps):
        clip, output = (os.path.join(self.folder.name, name) for name in ("clip.npz", "latents.npz"))
        np.savez(clip, poses=poses, trans=trans, mocap_framerate=float(fps), gender="neutral")
        subprocess.run([DSNET, "predict", clip, "-o", output, "--kind", "latent"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with np.load(output) as file:
            return file["latent"].astype(np.float64)

    def stream(self, stamps, poses=None, trans=None, resume_at=None, **members):
        """Latents of a session, its opened and its stats message. With `resume_at` it moves to another
        connection before that frame."""
        poses, trans = self.poses if poses is None else poses, self.trans if trans is None else trans
        client = Client(self.server)
        try:
            opened = client.open(output="latent", **members)
            results = []
            for seq, stamp in enumerate(stamps):
                if seq == resume_at:
                    client.send_json(type="checkpoint")
                    token = json.loads(client.receive())["token"]
                    client.socket.close()
                    client = Client(self.server)
                    self.assertEqual(client.open(output="latent", resume=token, **members)["next_seq"], seq)
                client.send(BINARY, pose_frame(seq, poses[seq], trans[seq], timestamp=stamp))
                result = client.receive()
                self.assertIsInstance(result, bytes, result)
                self.assertEqual(struct.unpack("<Id", result[4:16]), (seq, stamp))
                results.append(np.frombuffer(result[16:], "<f4").astype(np.float64))
            client.send_json(type="stats")
            return np.array(results), opened, json.loads(client.receive())
        finally:
            client.socket.close()

    def test_any_rate_is_the_motion_on_the_models_frames(self):
        for fps in (10, 24, 30, 50, 59.94, 60, 90, 120, 240):
            with self.subTest(fps=fps):
                stamps = np.arange(FRAMES) / fps
                streamed, opened, stats = self.stream(stamps, fps=fps)
                self.assertEqual(opened["fps"], fps)
                delay = 0 if fps in (10, 30, 60) else 1 / RATE
                self.assertAlmostEqual(opened["delay"], delay, 12)
                self.assertEqual((stats["gaps"], stats["held"]), (0, 0))
                offline = self.predict(*on_the_grid(self.poses, self.trans, stamps), RATE)
                grid = np.arange(len(offline)) / RATE
                for k in range(offline.shape[1]):
                    expected = np.interp(stamps - delay, grid, offline[:, k])
                    self.assertLess(np.abs(streamed[:, k] - expected).max(), 1e-4 * np.abs(offline).max())

    def test_faster_clips_are_what_the_tool_makes_of_them(self):
        stamps = np.arange(FRAMES) / 120  # every other pose is on the grid: nothing is interpolated
        streamed, opened, _ = self.stream(stamps, fps=120)
        offline = self.predict(self.poses, self.trans, 120)
        lag = int(round(opened["delay"] * 120))
        self.assertLess(np.abs(streamed[lag::2] - offline[:len(streamed[lag::2])]).max(),
                        1e-5 * np.abs(offline).max())

    def test_slower_clips_are_near_what_the_tool_makes_of_them(self):
        stamps = np.arange(FRAMES) / 30
        streamed, _, _ = self.stream(stamps, fps=30)
        offline = self.predict(self.poses, self.trans, 30)  # whose translation is cubic
        self.assertLess(np.abs(streamed - offline[::2][:FRAMES]).max(), 1e-2 * np.abs(offline).max())

    def test_jitter_changes_nothing(self):
        random.seed(4)
        for fps in (25, 60, 100):
            stamps = np.arange(FRAMES) / fps
            regular, _, _ = self.stream(stamps, fps=fps)
            jitter = [stamp + random.uniform(-0.24, 0.24) / fps for stamp in stamps]
            streamed, _, stats = self.stream(jitter, fps=fps)
            self.assertEqual(stats["gaps"], 0)
            self.assertTrue((streamed == regular).all())
            silent, _, _ = self.stream([0.0] * FRAMES, fps=fps)
            self.assertTrue((silent == regular).all())

    def test_lost_poses_are_interpolated(self):
        random.seed(5)
        kept = [0] + sorted(random.sample(range(1, FRAMES), FRAMES // 2))
        self.assertLess(np.diff(kept).max(), 15)
        stamps = np.array(kept) / RATE
        streamed, _, stats = self.stream(stamps, self.poses[kept], self.trans[kept], fps=RATE)
        self.assertEqual(stats["gaps"], 0)
        offline = self.predict(*on_the_grid(self.poses[kept], self.trans[kept], stamps), RATE)
        self.assertLess(np.abs(streamed - offline[kept]).max(), 1e-4 * np.abs(offline).max())

    def test_a_break_does_not_invent_a_spike(self):
        first, later = 30, 90  # what happens in between is not seen, and the body is elsewhere then
        poses = np.concatenate([self.poses[:first], self.poses[later:]])
        trans = np.concatenate([self.trans[:first], self.trans[later:] + [3, -2, 0.1]])
        stamps = np.arange(len(poses)) / RATE
        for name, after in (("later", 10.0), ("earlier", -7.0)):
            with self.subTest(name):
                broken = stamps + np.where(np.arange(len(poses)) < first, 0, after)
                taken_up, _, stats = self.stream(broken, poses, trans)
                self.assertEqual(stats["gaps"], 1)
                unbroken, _, stats = self.stream(stamps, poses, trans)
                self.assertEqual(stats["gaps"], 0)
                fresh, _, _ = self.stream(stamps[:len(poses) - first], poses[first:], trans[first:])
                # From nothing to the first latents is the largest change of a start.
                start = changes(np.concatenate([np.zeros_like(fresh[:1]), fresh]))[:12].max()
                around = slice(first - 1, first + 11)
                self.assertLessEqual(changes(taken_up)[around].max(), start)
                self.assertLess(changes(taken_up)[around].max(), 0.2 * changes(unbroken)[around].max())

    def test_glitches_are_held_and_counted(self):
        flipped = self.poses.copy()
        for at in (40, 80, 81):
            flipped[at, FLIP] += 2.5
        stamps = np.arange(FRAMES) / RATE
        clean, _, _ = self.stream(stamps)
        passed, _, stats = self.stream(stamps, flipped)
        self.assertEqual(stats["held"], 0)
        held, _, stats = self.stream(stamps, flipped, glitch="hold")
        self.assertEqual(stats["held"], 3)
        self.assertLess(np.abs(held - clean).max(), 0.1 * np.abs(passed - clean).max())
        still = self.poses.copy()  # what holding makes of it
        for at in (40, 80, 81):
            still[at, FLIP] = still[at - 1, FLIP]
        expected, _, _ = self.stream(stamps, still)
        self.assertTrue((held == expected).all())

    def test_a_turn_that_lasts_is_believed(self):
        turned = self.poses.copy()
        turned[60:, FLIP] += 2.5
        _, _, stats = self.stream(np.arange(FRAMES) / RATE, turned, glitch="hold")
        self.assertTrue(3 <= stats["held"] <= 8, stats["held"])  # 25 rad/s, an eighth of a second

    def test_a_token_keeps_the_place_between_two_model_frames(self):
        flipped = self.poses.copy()
        flipped[62:65, FLIP] += 2.5
        for fps in (24, 50, 59.94, 144):
            stamps = 1e3 + np.arange(FRAMES) / fps
            whole, _, _ = self.stream(stamps, flipped, fps=fps, glitch="hold")
            for at in (1, 2, 63, 64):
                moved, _, _ = self.stream(stamps, flipped, resume_at=at, fps=fps, glitch="hold")
                self.assertTrue((moved == whole).all(), (fps, at))

    def test_one_slow_session_does_not_hold_up_a_fast_one(self):
        """A pose a second needs 60 steps, as long as a second's motion of another session."""
        with Client(self.server) as slow, Client(self.server) as fast:
            slow.open(output="latent", fps=1)
            fast.open(output="latent")
            for seq in range(3):
                slow.send(BINARY, pose_frame(seq, self.poses[seq], self.trans[seq], timestamp=seq))
            results = []
            for seq in range(FRAMES):
                fast.send(BINARY, pose_frame(seq, self.poses[seq], self.trans[seq], timestamp=seq / RATE))
                results.append(np.frombuffer(fast.receive()[16:], "<f4"))
            alone, _, _ = self.stream(np.arange(FRAMES) / RATE)
            self.assertTrue((np.array(results) == alone).all())
            self.assertEqual([struct.unpack("<I", slow.receive()[4:8])[0] for _ in range(3)], [0, 1, 2])


if __name__ == "__main__":
    unittest.main()
