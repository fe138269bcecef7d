#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a viewer fetches: the page and its files, the body, the decoder; forms, tags and what is in them."""
import gzip
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import unittest

import numpy as np

from ws import Client, Server, pose_frame

ROOT = pathlib.Path(__file__).parents[2]
BROWSER = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
TYPES = {"F32": "<f4", "F16": "<f2", "U32": "<u4", "I32": "<i4", "U8": "u1"}


def tensors(data):
    length, = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    metadata = json.loads(header.pop("__metadata__")["dsnet"])
    arrays, end = {}, 0
    for name, entry in header.items():
        begin, end_of = entry["data_offsets"]
        assert begin == end, name  # without gaps, in order
        end = end_of
        arrays[name] = np.frombuffer(data[8 + length + begin:8 + length + end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    assert 8 + length + end == len(data)
    return metadata, arrays


class AssetsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--threads", "1")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log

    def test_browsers_get_the_page_and_programs_the_index(self):
        page = self.server.get("/", headers=[BROWSER])
        self.assertEqual((page.status, page.headers["content-type"]), (200, "text/html; charset=utf-8"))
        policy = page.headers["content-security-policy"]
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        for accept in ([], ["Accept: */*"], ["Accept: application/json"], ["Accept: application/json, text/html;q=0.5"]):
            index = self.server.get("/", headers=accept)
            self.assertEqual(json.loads(index.body)["name"], "dsnetd")
        self.assertEqual(self.server.get("/www/nope.js").status, 404)
        self.assertEqual(self.server.get("/www/..%2findex.html").status, 404)

    def test_every_document_has_both_forms_and_a_tag_for_each(self):
        for path in ("/www/page.css", "/www/hop.npz", "/v1/body", "/v1/models/default/decoder"):
            plain = self.server.get(path)
            packed = self.server.get(path, headers=["Accept-Encoding: gzip, br"])
            self.assertNotIn("content-encoding", plain.headers)
            if "content-encoding" in packed.headers:
                self.assertEqual(gzip.decompress(packed.body), plain.body)
                self.assertNotEqual(packed.headers["etag"], plain.headers["etag"])
            else:
                self.assertEqual(packed.body, plain.body)
            again = self.server.get(path, headers=["Accept-Encoding: gzip, br",
                                                   f"If-None-Match: {packed.headers['etag']}"])
            self.assertEqual((again.status, again.body), (304, b""))
            part = self.server.get(path, headers=["Range: bytes=8-19"])
            self.assertEqual((part.status, part.body), (206, plain.body[8:20]))

    def test_without_npm_a_plain_page_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder) / "bin"
            tools.mkdir()
            for name in ("bash", "dirname", "mkdir", "sed", "cp"):
                (tools / name).symlink_to(shutil.which(name))
            out = pathlib.Path(folder) / "www"
            built = subprocess.run([tools / "bash", ROOT / "server/www/build.sh", out], env={"PATH": str(tools)},
                                   capture_output=True, text=True)
            self.assertEqual(built.returncode, 0, built.stderr)
            self.assertIn("npm was not there", built.stderr)
            page = (out / "index.html").read_text()
            self.assertIn("npm was not there", page)
            self.assertNotIn("<script", page)
            self.assertEqual((out / "page.js").read_bytes(), b"")
            for path in re.findall(r'href="([^"]+)"', page):
                self.assertEqual(self.server.get("/" + path).status, 200, path)

    def test_the_body_is_the_one_the_tool_builds_on(self):
        metadata, arrays = tensors(self.server.get("/v1/body").body)
        self.assertEqual(metadata, json.loads(self.server.get("/v1/body?format=json").body))
        with np.load(ROOT / "model/builtin/body.npz") as body:
            np.testing.assert_array_equal(arrays["v_template"], body["v_template"])
            np.testing.assert_array_equal(arrays["shapedirs"], body["shapedirs"])
            np.testing.assert_array_equal(arrays["faces"], body["f"])
            weights = np.zeros_like(body["weights"])
            np.add.at(weights, (np.arange(len(weights))[:, None], arrays["weight_joints"]), arrays["weights"])
            np.testing.assert_allclose(weights, body["weights"], atol=1e-5)
            betas = np.linspace(-2, 2, 10)
            joints = body["J_regressor"] @ (body["v_template"] + body["shapedirs"] @ betas)
            np.testing.assert_allclose(arrays["joints"] + arrays["joint_shapedirs"] @ betas, joints, atol=1e-5)
        self.assertEqual(metadata["shape_names"][:2], ["stature", "mass"])
        self.assertEqual(metadata["joint_names"][0], "pelvis")
        self.assertEqual(self.server.get("/v1/body?format=xml").status, 400)

    def test_the_decoder_makes_of_latents_what_the_server_makes(self):
        metadata, arrays = tensors(self.server.get("/v1/models/default/decoder").body)
        self.assertEqual(metadata["model"], "default")
        results = {}
        for output in ("latent", "displacement"):
            with Client(self.server) as client:
                client.open(output=output)
                for seq in range(30):
                    client.send(2, pose_frame(seq, trans=(0, 0, 0.95 + 0.05 * abs(np.sin(seq / 4))), timestamp=seq / 60))
                    message = client.receive()
                results[output] = np.frombuffer(message, "<f4", offset=16)
        expanded = arrays["mean"].astype("f4") + arrays["basis"].astype("f4") @ results["latent"]
        np.testing.assert_allclose(expanded.ravel(), results["displacement"], atol=1e-6)
        self.assertGreater(np.abs(results["displacement"]).max(), 1e-3)
        self.assertEqual(self.server.get("/v1/models/nobody/decoder").status, 404)

    def test_a_body_of_ones_own_is_served_without_names(self):
        tool = pathlib.Path(os.environ["DSNET_BUILD"]) / "model/tool/dsnet"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            with np.load(ROOT / "model/builtin/body.npz") as body:
                arrays = dict(body)
            arrays["posedirs"] = np.zeros((len(arrays["v_template"]), 3, 207), "f4")
            arrays["posedirs"][5, 1, 7] = 0.25
            np.savez(path / "body.npz", **arrays)
            subprocess.run([tool, "init", "-o", path / "model.safetensors", "--vertices", str(len(arrays["v_template"]))],
                           check=True, stdout=subprocess.DEVNULL)
            server = Server("--threads", "1", "--body", str(path / "body.npz"), "--model",
                            f"own={path / 'model.safetensors'}")
            metadata, served = tensors(server.get("/v1/body").body)
            self.assertEqual(metadata["shape_names"], [])
            self.assertEqual(served["posedirs"][5, 1, 7], 0.25)
            _, decoder = tensors(server.get("/v1/models/own/decoder").body)
            self.assertEqual(decoder["basis"].dtype, np.float32)
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
