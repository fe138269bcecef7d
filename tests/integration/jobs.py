# SPDX-License-Identifier: Apache-2.0
"""What tests of jobs share: a server with a data folder, requests over http.client, clips, and readers of what is
downloaded, written from the formats' descriptions."""
import http.client
import io
import json
import os
import struct
import subprocess
import tempfile
import time

import numpy as np

from ws import Server

DSNET = os.path.join(os.environ["DSNET_BUILD"], "model/tool/dsnet")


class Reply:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.body)


class Service:
    """A dsnetd and its data folder, which outlives it."""

    def __init__(self, *arguments, folder=None):
        self.kept = tempfile.TemporaryDirectory() if folder is None else None
        self.folder = folder or os.path.join(self.kept.name, "data")
        self.arguments = arguments
        self.server = None
        self.start()

    def start(self):
        self.server = Server("--threads", "1", "--job-threads", "1", "--data-dir", self.folder, *self.arguments)

    def kill(self):
        self.server.process.kill()
        self.server.wait()

    def close(self):
        status = self.server.stop()
        if self.kept:
            self.kept.cleanup()
        return status

    def request(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=120)
        try:
            connection.request(method, path, body, dict(headers))
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def post(self, body, query="", content_type="application/octet-stream", **headers):
        fields = {"Content-Type": content_type}
        fields.update({k.replace("_", "-"): v for k, v in headers.items()})
        return self.request("POST", "/v1/jobs" + query, body, fields)

    def submit(self, body, query="", **options):
        reply = self.post(body, query, **options)
        assert reply.status == 202, (reply.status, reply.body)
        return reply.json()["id"]

    def wait(self, job, seconds=120):
        """The job when it has ended."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = self.get("/v1/jobs/" + job).json()
            if found["state"] not in ("queued", "running"):
                return found
            time.sleep(0.05)
        raise AssertionError(f"the job has not ended: {found}")

    def result(self, job, query=""):
        reply = self.get(f"/v1/jobs/{job}/result{query}")
        assert reply.status == 200, (reply.status, reply.body[:500])
        return reply.body

    def files(self):
        return {name: sorted(os.listdir(os.path.join(self.folder, name))) for name in ("uploads", "clips", "results")}


def motion(frames, fps, seed=1):
    """Poses [frames, 66] and translations of somebody who sways."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] / fps
    poses = 0.3 * np.sin(2 * np.pi * t * rng.uniform(0.2, 1.5, 66) + rng.uniform(0, 6, 66))
    trans = np.array([0, 0, 0.95]) + 0.1 * np.sin(2 * np.pi * t * rng.uniform(0.2, 1, 3))
    return poses, trans


def clip(frames=30, fps=60, seed=1, betas=(1.0, -0.5, 0.25), **arrays):
    """An AMASS npz as bytes; arrays are replaced by keyword, or left out with None."""
    poses, trans = motion(frames, fps, seed)
    content = {"poses": poses, "trans": trans, "betas": np.array(betas), "mocap_framerate": float(fps),
               "gender": "neutral", **arrays}
    out = io.BytesIO()
    np.savez(out, **{name: array for name, array in content.items() if array is not None})
    return out.getvalue()


def predict(npz, kind="displacement", betas=None):
    """What the offline tool makes of a clip."""
    with tempfile.TemporaryDirectory() as folder:
        source, output = os.path.join(folder, "clip.npz"), os.path.join(folder, "out.npz")
        with open(source, "wb") as file:
            file.write(npz)
        command = [DSNET, "predict", source, "-o", output, "--kind", kind]
        subprocess.run(command + (["--betas", betas] if betas else []), check=True, stderr=subprocess.DEVNULL)
        with np.load(output) as arrays:
            return arrays[kind]


def read_npz(body):
    with np.load(io.BytesIO(body)) as arrays:
        return {name: arrays[name] for name in arrays.files}


def read_pc2(body):
    """3ds Max's Point Cache 2, as its SDK describes it."""
    signature, version, points, start, rate, samples = struct.unpack("<12siiffi", body[:32])
    assert (signature, version, start, rate) == (b"POINTCACHE2\0", 1, 0, 1)
    assert len(body) == 32 + samples * points * 12
    return np.frombuffer(body, "<f4", offset=32).reshape(samples, points, 3)


def read_mdd(body):
    """LightWave's MDD: big-endian counts, times, frames."""
    frames, points = struct.unpack(">ii", body[:8])
    assert len(body) == 8 + 4 * frames + frames * points * 12
    times = np.frombuffer(body, ">f4", frames, 8)
    return times, np.frombuffer(body, ">f4", offset=8 + 4 * frames).reshape(frames, points, 3)
