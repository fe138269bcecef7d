#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dsnet command from outside: help, exit statuses, results that numpy reads, and wrong input.

usage: test_tool.py PATH_TO_DSNET
"""
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

DSNET = os.path.abspath(sys.argv[1])


def run(*arguments, **options):
    return subprocess.run([DSNET, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          **options)


class ToolTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def assert_fails(self, result, status, *mentions):
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        for text in mentions:
            self.assertIn(text, result.stderr)

    def test_every_command_has_help(self):
        listing = run("--help")
        self.assertEqual(listing.returncode, 0)
        commands = [line.split()[0] for line in listing.stdout.splitlines() if line.startswith("  ")]
        self.assertIn("predict", commands)
        for command in commands:
            result = run(command, "--help")
            self.assertEqual(result.returncode, 0, command)
            self.assertTrue(result.stdout.startswith(f"usage: dsnet {command}"), result.stdout)

    def test_wrong_usage_exits_with_2_and_one_line(self):
        self.assert_fails(run("walk"), 2, "walk", "--help")
        self.assert_fails(run("predict"), 2, "usage")
        self.assert_fails(run("predict", "sample", "--fast"), 2, "--fast")
        self.assert_fails(run("predict", "sample"), 2, "-o")
        self.assert_fails(run("predict", "sample", "-o", self.path("x"), "--kind", "normals"), 2,
                          "displacement|vertices|latent")
        self.assertEqual(run().returncode, 2)

    def test_prediction_of_the_sample_is_finite_and_of_a_plausible_size(self):
        out = self.path("out.npz")
        result = run("predict", "sample", "-o", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("not trained", result.stderr)
        data = np.load(out)
        displacement = data["displacement"]
        self.assertEqual(displacement.dtype, np.float32)
        self.assertEqual(displacement.shape[2], 3)
        self.assertGreater(displacement.shape[0], 300)
        self.assertTrue(6500 <= displacement.shape[1] <= 7500)
        self.assertTrue(np.isfinite(displacement).all())
        # Hopping and running move soft tissue by centimetres, not by millimetres or decimetres.
        self.assertTrue(0.01 < np.abs(displacement).max() < 0.12, np.abs(displacement).max())
        self.assertEqual(float(data["fps"]), 60.0)

    def test_kinds_agree_with_each_other(self):
        arrays = {}
        model, body = self.path("model.safetensors"), self.path("body.npz")
        self.assertEqual(run("init", "-o", model, "--seed", "7").returncode, 0)
        for kind in ("displacement", "vertices", "latent"):
            result = run("predict", "sample", "-o", body, "--kind", kind, "--model", model)
            self.assertEqual(result.returncode, 0, result.stderr)
            arrays[kind] = np.load(body)[kind]
        self.assertEqual(arrays["displacement"].shape, arrays["vertices"].shape)
        self.assertEqual(arrays["latent"].shape[1], 64)
        # The decoder is linear: displacement = basis z + mean, whatever the basis is.
        z = np.hstack([arrays["latent"], np.ones((len(arrays["latent"]), 1), np.float32)])
        d = arrays["displacement"].reshape(len(z), -1)[:, ::97].astype(np.float64)
        fit, *_ = np.linalg.lstsq(z.astype(np.float64), d, rcond=None)
        self.assertLess(np.abs(z @ fit - d).max(), 1e-5 * np.abs(d).max())
        height = np.ptp(arrays["vertices"][0, :, 2])
        self.assertTrue(1.4 < height < 2.1, height)

    def test_a_point_cache_holds_the_same_vertices(self):
        npz, pc2 = self.path("v.npz"), self.path("v.pc2")
        for out in (npz, pc2):
            result = run("predict", "sample", "-o", out, "--kind", "vertices")
            self.assertEqual(result.returncode, 0, result.stderr)
        vertices = np.load(npz)["vertices"]
        with open(pc2, "rb") as file:
            magic, version, points, start, rate, samples = struct.unpack("<12siiffi", file.read(32))
            data = np.frombuffer(file.read(), "<f4")
        self.assertEqual((magic, version, start, rate), (b"POINTCACHE2\0", 1, 0.0, 1.0))
        self.assertEqual((samples, points), vertices.shape[:2])
        np.testing.assert_array_equal(data.reshape(vertices.shape), vertices)
        self.assert_fails(run("predict", "sample", "-o", pc2, "--kind", "latent"), 2, "point cache")

    def test_an_exported_mesh_is_the_body_as_predict_poses_it(self):
        obj, npz = self.path("b.obj"), self.path("v.npz")
        result = run("body", "export", "-o", obj, "--clip", "sample", "--frame", "40", "--betas=1,-1")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(obj) as file:
            lines = [line.split() for line in file]
        vertices = np.array([line[1:] for line in lines if line[0] == "v"], np.float32)
        faces = np.array([line[1:] for line in lines if line[0] == "f"], int)
        self.assertEqual((faces.min(), faces.max()), (1, len(vertices)))
        # The sample has 120 frames/s: its frame 40 is frame 20 at the model's 60.
        run("predict", "sample", "-o", npz, "--kind", "vertices", "--betas=1,-1")
        posed = np.load(npz)["vertices"][20]
        self.assertLess(np.abs(posed - vertices).max(), 0.01)  # all that differs is D
        self.assert_fails(run("body", "export", "-o", obj, "--clip", "sample", "--frame", "9999"), 1,
                          "--frame")
        self.assert_fails(run("body", "export", self.path("none"), "-o", obj), 1, "none")

    def test_the_same_command_gives_the_same_bytes(self):
        for name in ("a", "b"):
            self.assertEqual(run("init", "-o", self.path(name), "--seed", "3").returncode, 0)
        with open(self.path("a"), "rb") as a, open(self.path("b"), "rb") as b:
            self.assertEqual(a.read(), b.read())

    def test_betas_change_the_result_and_are_checked(self):
        first, second = self.path("1.npz"), self.path("2.npz")
        self.assertEqual(run("predict", "sample", "-o", first, "--kind", "latent").returncode, 0)
        self.assertEqual(run("predict", "sample", "-o", second, "--kind", "latent", "--betas",
                             "2,-1").returncode, 0)
        self.assertFalse(np.array_equal(np.load(first)["latent"], np.load(second)["latent"]))
        for bad in ("", "1,", "1,x", "nan", "1;2", ",".join("1" * 11)):
            self.assert_fails(run("predict", "sample", "-o", first, f"--betas={bad}"), 1, "betas")

    def test_a_model_that_is_not_trained_says_so(self):
        model = self.path("random.safetensors")
        run("init", "-o", model)
        result = run("predict", "sample", "--model", model, "-o", self.path("out.npz"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("not trained", result.stderr)

    def test_info_describes_what_the_tool_writes(self):
        model, clip = self.path("m.safetensors"), self.path("c.npz")
        run("init", "-o", model)
        run("motion", "-o", clip, "--kind", "hop", "--seconds", "2")
        result = run("info", model, clip)
        self.assertEqual(result.returncode, 0, result.stderr)
        for text in ("model", "not", "LSTM 2 x 256", "paper", "clip", "2.00 s"):
            self.assertIn(text, result.stdout)

    def test_unusable_files_are_one_clear_line(self):
        missing = self.path("missing.npz")
        self.assert_fails(run("predict", missing, "-o", self.path("o")), 1, "missing.npz")
        self.assert_fails(run("info", missing), 1, "missing.npz")
        text = self.path("text.npz")
        with open(text, "w") as file:
            file.write("not an archive")
        self.assert_fails(run("predict", text, "-o", self.path("o")), 1, "text.npz")
        self.assert_fails(run("info", text), 1, "text.npz")
        for name, arrays, culprit in (
                ("nan", dict(poses=np.full((9, 156), np.nan), trans=np.zeros((9, 3))), "poses"),
                ("short", dict(poses=np.zeros((9, 156)), trans=np.zeros((8, 3))), "trans"),
                ("none", dict(poses=np.zeros((9, 156))), "trans")):
            clip = self.path(name + ".npz")
            np.savez(clip, mocap_framerate=120.0, **arrays)
            self.assert_fails(run("predict", clip, "-o", self.path("o")), 1, culprit, name)
        self.assertFalse(os.path.exists(self.path("o")))

    def test_an_output_that_cannot_be_written_is_an_error(self):
        self.assert_fails(run("predict", "sample", "-o", self.path("no/such/folder.npz")), 1, "folder")
        if os.path.exists("/dev/full"):
            # The rename cannot replace a device, and writing beside it must not succeed silently.
            self.assertEqual(run("predict", "sample", "-o", "/proc/x.npz").returncode, 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
