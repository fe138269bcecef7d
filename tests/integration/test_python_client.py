#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""proto/python/dsnet_client.py: equals the offline tool, in every encoding, and outlives its server."""
import asyncio
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

from ws import Server

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "proto/python"))
import dsnet_client  # noqa: E402

FRAMES = 120


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        with np.load(ROOT / "model/builtin/sample.npz") as sample:
            np.savez(cls.path / "clip.npz", poses=sample["poses"][:FRAMES], trans=sample["trans"][:FRAMES],
                     betas=[0.5, 2, -1], mocap_framerate=60.0)
        tool = pathlib.Path(os.environ["DSNET_BUILD"]) / "model/tool/dsnet"
        subprocess.run([tool, "predict", cls.path / "clip.npz", "-o", cls.path / "expected.npz"], check=True,
                       stdout=subprocess.DEVNULL)
        with np.load(cls.path / "expected.npz") as expected:
            cls.expected = expected["displacement"]
        key = cls.path / "key"
        key.write_bytes(b"k" * 32)
        key.chmod(0o600)
        cls.arguments = ["--threads", "1", "--state-key-file", str(key)]
        cls.server = Server(*cls.arguments)
        cls.url = f"ws://{cls.server.host}:{cls.server.port}/v1/stream"

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        cls.folder.cleanup()

    def test_the_example_equals_the_offline_tool(self):
        program = [sys.executable, str(ROOT / "proto/python/dsnet_client.py"), str(self.path / "clip.npz"), "-o",
                   str(self.path / "out.npz"), "--server", self.url]
        subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
        with np.load(self.path / "out.npz") as out:
            self.assertEqual(float(out["fps"]), 60)
            np.testing.assert_allclose(out["displacement"], self.expected, atol=1e-6)
        self.assertGreater(np.abs(self.expected).max(), 1e-3)

    def test_encodings_keep_their_promise(self):
        most = np.abs(self.expected).max()
        for encoding, error in (("f16", most / 1024), ("i16", most / 32767)):
            got, _ = asyncio.run(dsnet_client.displacements(self.url, self.path / "clip.npz", encoding=encoding))
            self.assertLessEqual(np.abs(got - self.expected).max(), error, encoding)

    def test_a_refusal_has_its_code(self):
        async def refused():
            async with dsnet_client.connect(self.url, model="nobody"):
                pass
        with self.assertRaises(dsnet_client.DsnetError) as caught:
            asyncio.run(refused())
        self.assertEqual(caught.exception.code, "no_model")

    def test_a_stream_outlives_its_server(self):
        replica = Server(*self.arguments)
        pose, trans, betas, _ = dsnet_client.load_amass(self.path / "clip.npz")

        async def stream():
            url = f"ws://127.0.0.1:{replica.port}/v1/stream"
            frames = []
            async with dsnet_client.connect(url, betas=[float(b) for b in betas], reconnect=60,
                                            checkpoint_every=10) as client:
                async for frame in client.run(pose, trans, ahead=8):
                    frames.append(frame)
                    if len(frames) == 60:
                        replica.process.kill()
                        replica.wait()
                        frames_server.append(Server(*self.arguments, port=replica.port))
                self.assertEqual(client.reconnects, 1)
            return frames

        frames_server = []
        frames = asyncio.run(stream())
        frames_server[0].stop()
        self.assertEqual([frame.seq for frame in frames], list(range(FRAMES)))
        np.testing.assert_allclose(np.stack([frame.data for frame in frames]), self.expected, atol=1e-6)


if __name__ == "__main__":
    unittest.main(verbosity=1)
