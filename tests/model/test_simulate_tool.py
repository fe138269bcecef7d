#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dsnet simulate from outside: the files it writes, stopping and resuming, and wrong input.

usage: test_simulate_tool.py PATH_TO_DSNET
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import h5py
import numpy as np

DSNET = os.path.abspath(sys.argv[1])
COARSE = ("--edge", "0.08")


def run(*arguments):
    return subprocess.run([DSNET, "simulate", *map(str, arguments)], capture_output=True, text=True,
                          timeout=110)


def clip(path, frames, fps=60.0):
    """Stands, and hops in place."""
    poses = np.zeros((frames, 156), np.float32)
    poses[:, 0] = np.pi / 2
    trans = np.zeros((frames, 3), np.float32)
    trans[:, 2] = 0.06 * (1 - np.cos(4 * np.pi * np.arange(frames) / fps))
    np.savez(path, poses=poses, trans=trans, mocap_framerate=fps, betas=np.zeros(16), gender="neutral")


class SimulateTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def assert_fails(self, result, status, *mentions):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for text in mentions:
            self.assertIn(text, result.stderr)

    def test_files_are_in_dynas_layout_at_60_hz(self):
        os.mkdir(self.path("clips"))
        clip(self.path("clips", "02_03_poses.npz"), 30, 120.0)
        clip(self.path("clips", "hop.npz"), 20)
        np.savez(self.path("betas.npz"), betas=np.array([[0, 1.5], [0, -1]], np.float64))
        result = run(self.path("clips"), "--betas-file", self.path("betas.npz"), "--first", 7, "-o",
                     self.path("out"), "--jobs", 2, *COARSE)
        self.assertEqual(result.returncode, 0, result.stderr)
        names = sorted(f"s{s:03}_{m}" for s in (7, 8) for m in ("02_03", "hop"))
        self.assertEqual(sorted(os.listdir(self.path("out"))),
                         sorted(n + e for n in names for e in (".hdf5", ".npz")))
        for name in names:
            poses = np.load(self.path("out", name + ".npz"))
            frames = 15 if "02_03" in name else 20
            self.assertEqual(poses["poses"].shape, (frames, 156))
            self.assertEqual(float(poses["mocap_framerate"]), 60)
            self.assertAlmostEqual(poses["betas"][1], 1.5 if "s007" in name else -1)
            with h5py.File(self.path("out", name + ".hdf5")) as file:
                self.assertEqual(sorted(file), ["faces", name])
                vertices = file[name]
                self.assertEqual(vertices.shape[1:], (3, frames))
                self.assertEqual(vertices.dtype, np.float32)
                self.assertEqual(file["faces"].shape[1], 3)
                self.assertEqual(int(file["faces"][:].max()) + 1, vertices.shape[0])
                self.assertTrue(np.isfinite(vertices[:]).all())

    def test_a_stopped_run_is_resumed_and_gives_the_same_files(self):
        clip(self.path("a.npz"), 30)
        clip(self.path("b.npz"), 6000)
        whole = run(self.path("a.npz"), "-o", self.path("whole"), *COARSE)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        process = subprocess.Popen([DSNET, "simulate", self.path("a.npz"), self.path("b.npz"), "-o",
                                    self.path("out"), "--jobs", "1", *COARSE],
                                   stderr=subprocess.PIPE, text=True)
        for _ in range(1000):
            time.sleep(0.05)
            if os.path.exists(self.path("out", "s000_a.hdf5")):
                break
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=60)[1]
        self.assertEqual(process.returncode, 1)
        self.assertIn("--resume", error)
        self.assertFalse([f for f in os.listdir(self.path("out")) if f.endswith(".part")])
        self.assertFalse(os.path.exists(self.path("out", "s000_b.hdf5")))
        before = os.stat(self.path("out", "s000_a.hdf5")).st_mtime_ns
        clip(self.path("b.npz"), 20)
        result = run(self.path("a.npz"), self.path("b.npz"), "-o", self.path("out"), "--resume",
                     *COARSE)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(os.stat(self.path("out", "s000_a.hdf5")).st_mtime_ns, before)
        self.assertTrue(os.path.exists(self.path("out", "s000_b.hdf5")))
        with h5py.File(self.path("out", "s000_a.hdf5")) as x, \
                h5py.File(self.path("whole", "s000_a.hdf5")) as y:
            self.assertTrue((x["s000_a"][:] == y["s000_a"][:]).all())

    def test_wrong_input_is_one_clear_error(self):
        clip(self.path("a.npz"), 20)
        a, out = self.path("a.npz"), self.path("out")
        self.assert_fails(run(a), 2, "-o")
        self.assert_fails(run(a, "-o", out, "--subjects", 2, "--betas-file", a), 2, "exclude")
        self.assert_fails(run(a, "-o", out, "--subjects", -1), 2, "--subjects")
        self.assert_fails(run(self.path("none.npz"), "-o", out), 1, "none.npz")
        self.assert_fails(run(a, a, "-o", out), 1, "s000_a")
        self.assert_fails(run(a, "-o", a), 1, "not a folder")
        self.assert_fails(run(a, "-o", out, "--betas-file", a), 1, "betas")
        self.assert_fails(run(a, "-o", out, "--body", a), 1, "a.npz")
        os.mkdir(self.path("empty"))
        self.assert_fails(run(self.path("empty"), "-o", out), 1, "empty")
        poses = dict(np.load(a))
        poses["poses"][3, 5] = np.nan
        np.savez(self.path("nan.npz"), **poses)
        self.assert_fails(run(self.path("nan.npz"), "-o", out), 1, "nan.npz", "poses")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
