#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Open Inference Protocol through a client written from its public text alone: metadata, JSON and binary
tensors, sequences, and everything that must be refused. Results are compared with `dsnet predict`."""
import json
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np

from ws import Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
DSNET = os.path.join(os.environ["DSNET_BUILD"], "model/tool/dsnet")
INFER = "/v2/models/default/infer"
V, Z = 6948, 40


def tensor(name, values, binary=False, **changes):
    values = np.ascontiguousarray(values, "<f4")
    item = {"name": name, "datatype": "FP32", "shape": list(values.shape)}
    if binary:
        item["parameters"] = {"binary_data_size": values.nbytes}
    else:
        item["data"] = values.ravel().tolist()
    item.update(changes)
    return item, values.tobytes() if binary else b""


class Client:
    """One request a connection."""

    def __init__(self, server):
        self.server = server

    def post(self, body, path=INFER, headers=(), content_type="application/json"):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        lines = [f"POST {path} HTTP/1.1", "Host: test", "Connection: close", f"Content-Length: {len(body)}", *headers]
        if content_type:
            lines.append(f"Content-Type: {content_type}")
        return self.server.request("\r\n".join(lines).encode() + b"\r\n\r\n" + body, timeout=60)

    def infer(self, inputs, binary=(), outputs=None, parameters=None, **members):
        """Sends arrays by name, without a Content-Type as Triton's client does; returns the document and its outputs
        as arrays."""
        items, blobs = zip(*[tensor(name, values, name in binary) for name, values in inputs.items()])
        document = {"inputs": list(items), **members}
        if outputs is not None:
            document["outputs"] = outputs
        if parameters:
            document["parameters"] = parameters
        text, blob = json.dumps(document).encode(), b"".join(blobs)
        headers = [f"Inference-Header-Content-Length: {len(text)}"] if blob else []
        answer = self.post(text + blob, headers=headers, content_type=None)
        if answer.status != 200:
            raise Refused(answer.status, json.loads(answer.body)["error"])
        size = int(answer.headers.get("inference-header-content-length", len(answer.body)))
        document, rest, arrays = json.loads(answer.body[:size]), answer.body[size:], {}
        for output in document["outputs"]:
            assert output["datatype"] == "FP32", output
            count = output.get("parameters", {}).get("binary_data_size")
            if count is None:
                values = np.array(output["data"], np.float32)
            else:
                values, rest = np.frombuffer(rest[:count], "<f4"), rest[count:]
            arrays[output["name"]] = values.reshape(output["shape"])
        assert not rest, "bytes follow the last blob"
        return document, arrays


class Refused(Exception):
    def __init__(self, status, error):
        super().__init__(f"{status}: {error}")
        self.status, self.error = status, error


def want(*names, **parameters):
    return [{"name": name, **({"parameters": parameters} if parameters else {})} for name in names]


def sample(frames=120):
    with np.load(ROOT / "model/builtin/sample.npz") as clip:
        step = round(float(clip["mocap_framerate"]) / 60)
        return {"pose": clip["poses"][::step, :66][:frames].astype(np.float32),
                "trans": clip["trans"][::step][:frames].astype(np.float32),
                "betas": clip["betas"][:10].astype(np.float32)}


def part(inputs, begin, end):
    return {name: values[begin:end] if name in ("pose", "trans") else values for name, values in inputs.items()}


class Infer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--threads", "1", "--max-sequences", "3", "--sequence-idle", "2")
        cls.client = Client(cls.server)
        cls.inputs = sample()
        with tempfile.TemporaryDirectory() as folder:
            clip = os.path.join(folder, "clip.npz")
            np.savez(clip, poses=np.pad(cls.inputs["pose"], ((0, 0), (0, 90))), trans=cls.inputs["trans"],
                     betas=np.pad(cls.inputs["betas"], (0, 6)), mocap_framerate=60.0, gender="neutral")
            cls.expected = {}
            for kind in ("displacement", "latent"):
                path = os.path.join(folder, kind + ".npz")
                subprocess.run([DSNET, "predict", clip, "--kind", kind, "-o", path], check=True,
                               stderr=subprocess.DEVNULL)
                with np.load(path) as data:
                    cls.expected[kind] = data[kind]

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0, cls.server.log

    def refused(self, status, text, *arguments, **members):
        with self.assertRaises(Refused) as caught:
            self.client.infer(*arguments, **members)
        self.assertEqual(caught.exception.status, status, caught.exception.error)
        self.assertIn(text, caught.exception.error)

    def assert_near(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        self.assertLess(np.abs(found - expected).max(), 1e-5 * max(np.abs(expected).max(), 1e-3))

    # What there is -----------------------------------------------------------------------------

    def test_server_and_model_say_what_they_are(self):
        server = json.loads(self.server.get("/v2").body)
        self.assertEqual(server["name"], "dsnetd")
        self.assertEqual(set(server["extensions"]), {"binary_tensor_data", "sequence"})
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/default/ready",
                     "/v2/models/default/versions/1/ready"):
            self.assertEqual(self.server.get(path).status, 200, path)
        for path in ("/v2/models/default", "/v2/models/default/versions/1"):
            model = json.loads(self.server.get(path).body)
            self.assertEqual((model["name"], model["versions"]), ("default", ["1"]))
            shapes = {item["name"]: item["shape"] for item in model["inputs"] + model["outputs"]}
            self.assertEqual(shapes, {"pose": [-1, 66], "trans": [-1, 3], "betas": [-1], "fps": [1],
                                      "displacement": [-1, V, 3], "latent": [-1, Z]})
            self.assertEqual({item["datatype"] for item in model["inputs"] + model["outputs"]}, {"FP32"})

    def test_a_model_or_version_that_is_not_there_is_404_with_an_error(self):
        for path in ("/v2/models/nobody", "/v2/models/nobody/ready", "/v2/models/default/versions/2",
                     "/v2/models/default/versions/2/ready"):
            answer = self.server.get(path)
            self.assertEqual(answer.status, 404, path)
            self.assertTrue(json.loads(answer.body)["error"])
        answer = self.client.post({}, "/v2/models/nobody/infer")
        self.assertEqual(answer.status, 404)

    # Inference ---------------------------------------------------------------------------------

    def test_json_and_binary_tensors_give_what_predict_gives(self):
        inputs = part(self.inputs, 0, 20)
        for binary in ((), ("pose",), ("pose", "trans", "betas")):
            for flag in (False, True):
                document, found = self.client.infer(inputs, binary, want("latent", "displacement", binary_data=flag),
                                                    id="a \"name\" ü")
                self.assertEqual((document["model_name"], document["model_version"], document["id"]),
                                 ("default", "1", "a \"name\" ü"))
                self.assertEqual([o["name"] for o in document["outputs"]], ["latent", "displacement"])
                self.assert_near(found["latent"], self.expected["latent"][:20])
                self.assert_near(found["displacement"], self.expected["displacement"][:20])

    def test_without_a_list_both_outputs_come_and_data_may_be_nested(self):
        inputs = part(self.inputs, 0, 2)
        items = [{"name": name, "datatype": "FP32", "shape": list(values.shape), "data": values.tolist()}
                 for name, values in inputs.items()]
        answer = self.client.post({"inputs": items, "parameters": {"binary_data_output": True}})
        self.assertEqual(answer.status, 200, answer.body)
        document = json.loads(answer.body[:int(answer.headers["inference-header-content-length"])])
        self.assertEqual({o["name"]: o["shape"] for o in document["outputs"]},
                         {"displacement": [2, V, 3], "latent": [2, Z]})

    def test_json_numbers_are_the_same_floats_as_binary_ones(self):
        inputs = part(self.inputs, 0, 3)
        _, text = self.client.infer(inputs, outputs=want("displacement"))
        _, binary = self.client.infer(inputs, outputs=want("displacement", binary_data=True))
        np.testing.assert_array_equal(text["displacement"], binary["displacement"])

    # Sequences ---------------------------------------------------------------------------------

    def in_parts(self, sequence, cuts, inputs=None, **parameters):
        inputs, found = inputs or self.inputs, []
        for begin, end in zip(cuts, cuts[1:]):
            _, arrays = self.client.infer(part(inputs, begin, end), ("pose", "trans"), want("latent", binary_data=True),
                                          {"sequence_id": sequence, "sequence_start": begin == 0,
                                           "sequence_end": end == cuts[-1], **parameters})
            found.append(arrays["latent"])
        return np.concatenate(found)

    def test_one_request_of_many_frames_is_many_requests_of_one(self):
        whole = self.in_parts(7, [0, 60])
        np.testing.assert_array_equal(self.in_parts("7", list(range(61))), whole)
        np.testing.assert_array_equal(self.in_parts(2**62 + 1, [0, 1, 30, 31, 60]), whole)
        np.testing.assert_array_equal(self.in_parts(2**64 - 1, [0, 30, 60]), whole)
        self.assert_near(whole, self.expected["latent"][:60])

    def test_poses_of_another_rate_are_retimed_across_requests(self):
        inputs = {"pose": self.inputs["pose"][::2], "trans": self.inputs["trans"][::2],
                  "betas": self.inputs["betas"], "fps": np.array([30], np.float32)}
        whole = self.in_parts(30, [0, 60], inputs)
        np.testing.assert_array_equal(self.in_parts(31, [0, 7, 8, 60], inputs), whole)
        self.assertGreater(np.abs(whole).max(), 0.1)
        self.refused(400, "fps is 50", {**part(inputs, 0, 1), "fps": np.array([50], np.float32)}, (), want("latent"),
                     self.started("rate", inputs))

    def started(self, name, inputs):
        self.client.infer(part(inputs, 0, 1), (), want("latent"), {"sequence_id": name, "sequence_start": True})
        self.addCleanup(self.client.infer, part(inputs, 1, 2), (), want("latent"),
                        {"sequence_id": name, "sequence_end": True})
        return {"sequence_id": name}

    def test_a_sequence_without_a_start_or_after_its_end_is_an_error(self):
        frame = part(self.inputs, 0, 1)
        self.refused(400, "no sequence of that id", frame, (), want("latent"), {"sequence_id": 99})
        self.in_parts(98, [0, 1, 2])
        self.refused(400, "no sequence of that id", frame, (), want("latent"), {"sequence_id": 98})
        self.refused(400, "sequence_id", frame, (), want("latent"), {"sequence_start": True})
        self.refused(400, "sequence_id", frame, (), want("latent"), {"sequence_id": 0, "sequence_end": True})
        for bad in (1.5, True, [], "x" * 129):
            self.refused(400, "sequence_id", frame, (), want("latent"), {"sequence_id": bad})

    def test_a_start_begins_anew_what_was_under_way(self):
        first = self.in_parts(5, [0, 10])
        self.client.infer(part(self.inputs, 40, 60), (), want("latent"), {"sequence_id": 5, "sequence_start": True})
        np.testing.assert_array_equal(self.in_parts(5, [0, 10]), first)

    def test_sequences_are_bounded_and_forgotten_when_idle(self):
        frame = part(self.inputs, 0, 1)
        for name in "abc":
            self.client.infer(frame, (), want("latent"), {"sequence_id": name, "sequence_start": True})
        self.refused(503, "every sequence is taken", frame, (), want("latent"),
                     {"sequence_id": "d", "sequence_start": True})
        end = time.monotonic() + 30
        while self.metric("dsnet_infer_sequences") and time.monotonic() < end:
            time.sleep(0.1)
        self.refused(400, "no sequence of that id", frame, (), want("latent"), {"sequence_id": "a"})

    def metric(self, name):
        lines = self.server.get("/metrics").body.decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))

    def test_many_clients_at_once_get_each_its_own(self):
        results = {}

        def one(at):
            _, arrays = self.client.infer(part(self.inputs, at, at + 12), ("pose",), want("latent", binary_data=True))
            results[at] = arrays["latent"]

        threads = [threading.Thread(target=one, args=(at,)) for at in range(0, 60, 3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(results), len(threads))
        for at, found in results.items():
            _, alone = self.client.infer(part(self.inputs, at, at + 12), (), want("latent"))
            np.testing.assert_array_equal(found, alone["latent"])

    # What must be refused ----------------------------------------------------------------------

    def test_tensors_that_do_not_fit_are_named(self):
        pose, trans = self.inputs["pose"][:2], self.inputs["trans"][:2]
        nan, far, spun = pose.copy(), trans.copy(), pose.copy()
        nan[1, 5], far[1, 2], spun[0, :3] = np.nan, 1e6, 60
        cases = [
            ({"pose": pose}, "trans is missing"),
            ({"trans": trans}, "pose is missing"),
            ({"pose": pose, "trans": trans[:1]}, "pose has 2 frames, trans 1"),
            ({"pose": pose[:, :63], "trans": trans}, "[T, 66]"),
            ({"pose": pose[0], "trans": trans}, "[T, 66]"),
            ({"pose": pose, "trans": trans, "extra": trans}, "input extra"),
            ({"pose": pose, "trans": far}, "trans: frame 1"),
            ({"pose": spun, "trans": trans}, "pose: frame 0"),
            ({"pose": pose, "trans": trans, "betas": np.zeros(301)}, "betas"),
            ({"pose": pose, "trans": trans, "betas": np.zeros((2, 5))}, "betas"),
            ({"pose": pose, "trans": trans, "betas": np.full(10, 3e38)}, "betas: value 0"),
            ({"pose": pose, "trans": trans, "fps": np.zeros(2)}, "fps"),
            ({"pose": pose, "trans": trans, "fps": np.zeros(1)}, "fps"),
            ({"pose": np.zeros((601, 66)), "trans": np.zeros((601, 3))}, "601 frames"),
        ]
        for inputs, text in cases:
            self.refused(400, text, inputs, (), want("latent"))
        slow = {"pose": np.zeros((11, 66)), "trans": np.zeros((11, 3)), "fps": np.ones(1)}
        self.refused(400, "11 frames at 1 fps are 660", slow, (), want("latent"))
        rate = self.started("slow", {**self.inputs, "fps": np.ones(1)})
        slow.pop("fps")
        self.refused(400, "11 frames at 1 fps are 660", slow, (), want("latent"), rate)
        self.refused(400, "pose: frame 1", {"pose": nan, "trans": trans}, ("pose",), want("latent"))
        self.refused(400, "output nothing", {"pose": pose, "trans": trans}, (), want("nothing"))
        self.refused(400, "twice", {"pose": pose, "trans": trans}, (), want("latent", "latent"))
        self.refused(400, "classification", {"pose": pose, "trans": trans}, (), want("latent", classification=1))
        self.refused(413, "response", {"pose": np.zeros((600, 66)), "trans": np.zeros((600, 3))}, ("pose", "trans"),
                     want("displacement"))

    def test_documents_that_make_no_sense(self):
        pose, _ = tensor("pose", self.inputs["pose"][:1])
        trans, _ = tensor("trans", self.inputs["trans"][:1])
        cases = [
            (b"", "malformed"), (b"{", "malformed"), (b"[]", "not an object"), (b"{}", "no list of inputs"),
            (b'{"inputs":{}}', "no list of inputs"), (b'{"inputs":[7]}', "an object with a name"),
            (b'{"id":7}', "id"), (b'{"inputs":[],"inputs":[]}', "duplicate"), (b'{"parameters":[]}', "parameters"),
            (b'{"outputs":5}', "outputs"), (b"[" * 100000, "malformed"), (b'{"a":1e999}', "malformed"),
            (b'{"a":123456789012345678901}', "malformed"), (b"\xff", "malformed"),
            ({"inputs": [{**pose, "datatype": "FP64"}, trans]}, "FP32"),
            ({"inputs": [{**pose, "shape": [1, 65]}, trans]}, "[T, 66]"),
            ({"inputs": [{**pose, "shape": [-1, 66]}, trans]}, "shape"),
            ({"inputs": [{**pose, "shape": [1.0, 66]}, trans]}, "shape"),
            ({"inputs": [{**pose, "shape": [2**31 - 1, 2**31 - 1]}, trans]}, "[T, 66]"),
            ({"inputs": [{**pose, "shape": "x"}, trans]}, "shape"),
            ({"inputs": [{**pose, "data": pose["data"][:-1]}, trans]}, "66 numbers"),
            ({"inputs": [{**pose, "data": pose["data"][:-1] + ["0"]}, trans]}, "66 numbers"),
            ({"inputs": [{**pose, "data": [pose["data"], [0]]}, trans]}, "66 numbers"),
            ({"inputs": [pose, pose, trans]}, "twice"),
            ({"inputs": [{**pose, "parameters": {"shared_memory_region": "x"}}, trans]}, "shared memory"),
            ({"inputs": [{**pose, "parameters": {"binary_data_size": 264}}, trans]}, "both"),
            ({"inputs": [pose, trans], "parameters": {"binary_data_output": 1}}, "true or false"),
        ]
        for body, text in cases:
            answer = self.client.post(body)
            self.assertEqual(answer.status, 400, (body if len(str(body)) < 200 else text, answer.body))
            self.assertIn(text, json.loads(answer.body)["error"])

    def binary(self, header=None, declared=None, extra=b"", cut=0):
        pose, blob = tensor("pose", self.inputs["pose"][:1], True)
        trans, _ = tensor("trans", self.inputs["trans"][:1])
        if declared is not None:
            pose["parameters"]["binary_data_size"] = declared
        text = json.dumps({"inputs": [pose, trans], "outputs": want("latent")}).encode()
        body = text + blob[:len(blob) - cut] + extra
        header = len(text) if header is None else header(len(text))
        return self.client.post(body, headers=[f"Inference-Header-Content-Length: {header}"],
                                content_type="application/octet-stream")

    def test_blobs_that_lie(self):
        self.assertEqual(self.binary().status, 200)
        cases = [({"header": lambda size: 10**9}, "the body has"), ({"header": lambda size: size - 1}, "malformed"),
                 ({"header": lambda size: "x"}, "number of bytes"), ({"header": lambda size: "-1"}, "number of bytes"),
                 ({"header": lambda size: 10**30}, "number of bytes"), ({"declared": 260}, "binary_data_size is 260"),
                 ({"declared": 2**40}, "binary_data_size"), ({"declared": -1}, "whole number"),
                 ({"declared": 1.5}, "whole number"), ({"cut": 1}, "ends before"), ({"extra": b"x"}, "1 bytes follow")]
        for arguments, text in cases:
            answer = self.binary(**arguments)
            self.assertEqual(answer.status, 400, (text, answer.body))
            self.assertIn(text, json.loads(answer.body)["error"])

    def test_requests_that_are_not_of_this_address(self):
        self.assertEqual(self.server.get(INFER).status, 405)
        self.assertEqual(self.client.post(b"{}", content_type="text/plain").status, 415)
        answer = self.client.post(b"{}", headers=["Content-Encoding: gzip"])
        self.assertEqual(answer.status, 415)
        self.assertIn("Content-Encoding", json.loads(answer.body)["error"])
        answer = self.server.request((f"POST {INFER} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
                                      "Content-Length: 99999999999\r\n\r\n").encode())
        self.assertEqual(answer.status, 413)
        self.assertTrue(json.loads(answer.body)["error"])

    def test_clients_that_vanish_leave_nothing_behind(self):
        body = json.dumps({"inputs": [tensor(n, self.inputs[n])[0] for n in ("pose", "trans")]}).encode()
        head = (f"POST {INFER} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        for sent in (head + body, head + body[:1000], head):
            for _ in range(10):
                with socket.create_connection((self.server.host, self.server.port)) as connection:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    connection.sendall(sent)
        end = time.monotonic() + 30
        while self.metric("dsnet_infer_waiting") and time.monotonic() < end:
            time.sleep(0.1)
        _, arrays = self.client.infer(part(self.inputs, 0, 2), (), want("latent"))
        self.assert_near(arrays["latent"], self.expected["latent"][:2])


class Slow(unittest.TestCase):
    def test_a_slow_reader_has_time_for_each_block_not_for_the_whole(self):
        server = Server("--threads", "1", "--transfer-timeout", "3")
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0, server.log))
        inputs = [tensor(name, np.zeros((150, size)), True) for name, size in (("pose", 66), ("trans", 3))]
        text = json.dumps({"inputs": [item for item, _ in inputs],
                           "outputs": want("displacement", binary_data=True)}).encode()
        body = text + b"".join(blob for _, blob in inputs)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.settimeout(60)
            connection.connect((server.host, server.port))
            connection.sendall((f"POST {INFER} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: "
                                f"{len(body)}\r\nInference-Header-Content-Length: {len(text)}\r\n\r\n").encode() + body)
            taken, begin = 0, time.monotonic()
            while part := connection.recv(65536):
                taken += len(part)
                time.sleep(max(0, begin + 8 * taken / (150 * V * 12) - time.monotonic()))  # 8 seconds in all
            self.assertGreater(taken, 150 * V * 12)


class Memory(unittest.TestCase):
    """The requests of a server that takes 65536 bytes each may hold eight times that."""

    def setUp(self):
        self.server = Server("--threads", "1", "--max-infer-bytes", "65536")
        self.addCleanup(self.stop)  # when the connections of the test are closed
        self.client = Client(self.server)
        self.inputs = sample(frames=1)

    def stop(self):
        self.assertEqual(self.server.stop(), 0, self.server.log)

    def held(self):
        lines = self.server.get("/metrics").body.decode().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith("dsnet_infer_held_bytes ")))

    def wait_until_held(self, bytes):
        end = time.monotonic() + 60
        while self.held() != bytes and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.held(), bytes)

    def send_parts(self, sizes):
        head = (f"POST {INFER} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
                "Content-Length: 65536\r\n\r\n").encode()
        connections = [self.server.connect(60) for _ in sizes]
        for connection, size in zip(connections, sizes):
            self.addCleanup(connection.close)
            connection.sendall(head + b" " * size)
        return connections

    def test_bodies_that_do_not_end_take_so_much_and_no_more(self):
        connections = self.send_parts([65535] * 8)
        self.wait_until_held(8 * 65536)
        answer = self.client.post({"inputs": []})
        self.assertEqual(answer.status, 503)
        self.assertIn("retry-after", answer.headers)
        self.assertIn("memory", json.loads(answer.body)["error"])
        self.assertEqual(self.server.get("/livez").status, 200)
        for connection in connections:
            connection.close()
        self.wait_until_held(0)
        _, found = self.client.infer(self.inputs, (), want("latent"))
        self.assertEqual(found["latent"].shape, (1, Z))
        self.wait_until_held(0)

    def test_a_response_that_finds_no_room_is_refused(self):
        self.send_parts([65535] * 7 + [32768])
        self.wait_until_held(7 * 65536 + 32768)
        inputs = {name: np.repeat(values, 30, axis=0) for name, values in self.inputs.items() if name != "betas"}
        for _ in range(3):  # what a refused one took is there again
            with self.assertRaises(Refused) as caught:
                self.client.infer(inputs, ("pose", "trans"), want("latent"))
            self.assertEqual(caught.exception.status, 503, caught.exception.error)
            self.wait_until_held(7 * 65536 + 32768)
        _, found = self.client.infer(self.inputs, ("pose", "trans"), want("latent"))
        self.assertEqual(found["latent"].shape, (1, Z))


if __name__ == "__main__":
    unittest.main()
