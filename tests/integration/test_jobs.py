#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs over HTTP: every form of upload and of result against the offline tool and readers of the formats, ranges,
events, cancelling, expiry, and what is refused."""
import io
import json
import os
import shutil
import socket
import struct
import subprocess
import time
import unittest
import zipfile

import numpy as np

from jobs import Service, clip, motion, predict, read_mdd, read_npz, read_pc2
from ws import Answer

SANITIZED = bool(os.environ.get("DSNET_SANITIZE"))


class JobsTest(unittest.TestCase):
    arguments = ("--transfer-timeout", "3", "--job-max-bytes", "3000000", "--job-max-frames", "60000")

    @classmethod
    def setUpClass(cls):
        cls.service = Service(*cls.arguments)

    @classmethod
    def tearDownClass(cls):
        status = cls.service.close()
        assert status == 0, cls.service.server.log

    def problem(self, reply, status, kind):
        self.assertEqual(reply.status, status, reply.body[:300])
        self.assertEqual(reply.headers["content-type"], "application/problem+json")
        document = json.loads(reply.body)
        self.assertEqual((document["type"], document["status"]), ("/problems#" + kind, status))
        return document

    def done(self, body, query="", **options):
        job = self.service.submit(body, query, **options)
        ended = self.service.wait(job)
        self.assertEqual(ended["state"], "done", ended)
        return job

    def failed(self, body, **options):
        ended = self.service.wait(self.service.submit(body, **options))
        self.assertEqual(ended["state"], "failed", ended)
        self.assertNotIn(self.service.folder, ended["error"])
        return ended["error"]


class UploadTest(JobsTest):
    def test_an_accepted_job_tells_where_it_is(self):
        reply = self.service.post(clip())
        job = reply.json()
        self.assertEqual((reply.status, reply.headers["location"]), (202, job["links"]["self"]))
        self.assertEqual(job["state"], "queued")
        ended = self.service.wait(job["id"])
        self.assertEqual((ended["state"], ended["frames_done"], ended["frames"]), ("done", 30, 30))
        for name in ("created", "started", "finished"):
            self.assertRegex(ended[name], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertNotIn("error", ended)
        self.assertEqual(self.service.files()["clips"], [], "the clip is not needed any more")

    def test_every_form_of_upload_gives_the_same(self):
        body = clip(frames=40, fps=60)
        expected = predict(body, "latent")
        job = self.done(body, content_type="application/zip")
        self.assertTrue((read_npz(self.service.result(job, "?kind=latent"))["latent"] == expected).all())
        form = (b'--q\r\nContent-Disposition: form-data; name="note"\r\n\r\nhello\r\n--q\r\n'
                b'Content-Disposition: form-data; name="clip"; filename="walk.npz"\r\n'
                b"Content-Type: application/octet-stream\r\n\r\n" + body + b"\r\n--q--\r\n")
        job = self.done(form, content_type="multipart/form-data; boundary=q")
        self.assertTrue((read_npz(self.service.result(job, "?kind=latent"))["latent"] == expected).all())
        chunks = (body[i:i + 1000] for i in range(0, len(body), 1000))
        job = self.done(chunks)  # without a length
        self.assertTrue((read_npz(self.service.result(job, "?kind=latent"))["latent"] == expected).all())

    @unittest.skipUnless(shutil.which("curl"), "curl is not installed")
    def test_curl_sends_a_form(self):
        path = os.path.join(self.service.folder, "walk.npz")
        with open(path, "wb") as file:
            file.write(clip())
        url = f"http://{self.service.server.host}:{self.service.server.port}/v1/jobs"
        output = subprocess.run(["curl", "-sS", "-F", "clip=@" + path, url], check=True, capture_output=True).stdout
        os.unlink(path)
        self.assertEqual(self.service.wait(json.loads(output)["id"])["state"], "done")

    def test_json_tells_the_same_clip(self):
        poses, trans = (array.astype(np.float32) for array in motion(20, 30))
        body = clip(20, 30, poses=poses, trans=trans, betas=[1, 2])
        document = {"fps": 30, "pose": poses.tolist(), "trans": trans.tolist(), "betas": [1, 2]}
        job = self.done(json.dumps(document), content_type="application/json; charset=utf-8")
        got = read_npz(self.service.result(job, "?kind=latent"))["latent"]
        self.assertTrue((got == predict(body, "latent")).all())
        turned = dict(document, up="y", pose=[[0.0] * 66] * 20, trans=[[0, 0.95, 0]] * 20)
        job = self.done(json.dumps(turned), content_type="application/json")
        placed = read_npz(self.service.result(job, "?kind=vertices&to=1"))["vertices"][0]
        self.assertLess(np.ptp(placed[:, 1]), np.ptp(placed[:, 2]), "an upright body is tall along z")

    def test_betas_and_model_may_be_given(self):
        body = clip(25)
        job = self.done(body, "?betas=2,-1.5&model=default")
        result = read_npz(self.service.result(job, "?kind=latent"))
        self.assertTrue((result["latent"] == predict(body, "latent", betas="2,-1.5")).all())
        self.assertEqual(result["betas"].tolist(), [2, -1.5] + [0] * 8)
        self.problem(self.service.post(body, "?model=none"), 404, "model-not-found")
        for betas in ("", "x", "1,,2", "1,", "nan", "1e9", "1 2", ",".join("1" * 301)):
            self.problem(self.service.post(body, "?betas=" + betas.replace(" ", "%20")), 400, "bad-parameter")
        self.problem(self.service.post(body, "?bets=1"), 400, "bad-parameter")
        self.problem(self.service.post(body, "?betas=1&betas=2"), 400, "bad-parameter")

    def test_an_idempotency_key_makes_one_job(self):
        body = clip(seed=5)
        first = self.service.post(body, Idempotency_Key="walk-5").json()["id"]
        again = self.service.post(body, Idempotency_Key="walk-5")
        self.assertEqual((again.status, again.json()["id"]), (202, first))
        self.service.wait(first)
        self.assertEqual(self.service.submit(body, Idempotency_Key="walk-5"), first)
        self.problem(self.service.post(body, "?betas=1", Idempotency_Key="walk-5"), 422, "key-reused")
        self.problem(self.service.post(clip(seed=6), Idempotency_Key="walk-5"), 422, "key-reused")
        self.assertNotEqual(self.service.submit(body, Idempotency_Key="walk-6"), first)
        self.problem(self.service.post(body, Idempotency_Key="k" * 256), 400, "bad-parameter")

    def test_requests_that_are_none_are_refused(self):
        self.problem(self.service.post(b""), 400, "bad-request")
        self.problem(self.service.post(clip(), content_type="text/plain"), 415, "media-type")
        self.problem(self.service.request("POST", "/v1/jobs", clip()), 415, "media-type")
        self.problem(self.service.post(b"--q--", content_type="multipart/form-data; boundary=q"), 400, "bad-request")
        self.problem(self.service.post(b"x", content_type="multipart/form-data"), 400, "bad-request")
        self.problem(self.service.request("PUT", "/v1/jobs", clip()), 405, "method-not-allowed")
        answer = self.service.server.request(b"POST /v1/jobs HTTP/1.1\r\nHost: t\r\n\r\n")
        self.problem(answer, 411, "length-required")

    def test_a_page_of_another_origin_may_not_post(self):
        self.problem(self.service.post(clip(), Origin="https://evil.example"), 403, "origin-not-allowed")
        own = f"http://{self.service.server.host}:{self.service.server.port}"
        self.assertEqual(self.service.post(clip(), Origin=own).status, 202)

    def test_a_body_over_the_limit_is_refused_at_once(self):
        head = b"POST /v1/jobs HTTP/1.1\r\nHost: t\r\nContent-Type: %s\r\n"
        for kind, size in ((b"application/zip", 3_000_001), (b"application/json", 3_000_001)):
            request = (head + b"Content-Length: %d\r\n\r\n") % (kind, size)
            self.problem(self.service.server.request(request + b"x"), 413, "content-too-large")
        with self.service.server.connect() as connection:
            connection.sendall(head % b"application/zip" + b"Transfer-Encoding: chunked\r\n\r\n")
            for _ in range(60):
                connection.sendall(b"10000\r\n" + b"x" * 65536 + b"\r\n")
            self.problem(Answer(connection), 413, "content-too-large")
        self.assertEqual(self.service.files()["uploads"], [])

    def test_uploads_that_stop_midway_leave_nothing(self):
        head = b"POST /v1/jobs HTTP/1.1\r\nHost: t\r\nContent-Type: application/zip\r\n"
        before = self.service.server.descriptors()
        with self.service.server.connect(60) as stuck:
            stuck.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n100\r\nabc")
            for _ in range(20):
                connection = self.service.server.connect()
                connection.sendall(head + b"Content-Length: 100000\r\n\r\n" + b"x" * 50_000)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                connection.close()
            self.assertEqual(stuck.recv(1000), b"", "cut by the time-out")
        end = time.monotonic() + 20
        while time.monotonic() < end and self.service.files()["uploads"]:
            time.sleep(0.05)
        self.assertEqual(self.service.files()["uploads"], [])
        self.assertLess(self.service.server.descriptors(), before + 5)


class BadClipTest(JobsTest):
    def test_a_failure_names_the_array(self):
        poses, trans = motion(30, 60)
        bad = poses.copy()
        bad[17, 5] = np.nan
        far, wild = trans.copy(), poses.copy()
        far[3, 1] = 2e5
        wild[9, 30] = 100
        for arrays, words in ((dict(poses=None), ["poses"]), (dict(trans=None), ["trans"]),
                              (dict(mocap_framerate=None), ["mocap_framerate"]),
                              (dict(poses=poses[:, :60]), ["poses", "60"]), (dict(trans=trans[:20]), ["trans", "20"]),
                              (dict(poses=bad), ["poses", "17"]), (dict(trans=far), ["trans", "frame 3"]),
                              (dict(poses=wild), ["poses", "frame 9", "joint 10"]),
                              (dict(mocap_framerate=5000.0), ["mocap_framerate", "5000"]),
                              (dict(betas=np.array([1e6])), ["betas"])):
            error = self.failed(clip(30, 60, **arrays))
            for word in words:
                self.assertIn(word, error)

    def test_bad_json_is_named(self):
        poses, trans = motion(4, 60)
        good = {"fps": 60, "pose": poses.tolist(), "trans": trans.tolist()}
        short, text = [row[:] for row in good["pose"]], [row[:] for row in good["trans"]]
        short[2] = short[2][:65]
        text[1][0] = "far"
        for document, words in (({}, "fps"), (dict(good, fps="60"), "fps"), (dict(good, fps=0), "1 to 1000"),
                                (dict(good, pose=[]), "pose"), (dict(good, pose=short), "pose: frame 2"),
                                (dict(good, trans=text), "trans: frame 1"), (dict(good, trans=[]), "trans"),
                                (dict(good, up="x"), "up"), (dict(good, betas="1"), "betas"), ([], "fps"),
                                (dict(good, pose={"a": 1}), "pose")):
            self.assertIn(words, self.failed(json.dumps(document), content_type="application/json"))
        for text in ("{", "[" * 100_000, '{"fps": 1e999}', '{"fps": 60, "fps": 60}', "\0", '{"fps": 60} x', "\xff"):
            error = self.failed(text.encode("latin-1"), content_type="application/json")
            self.assertIn("JSON", error)

    def test_hostile_archives_fail_and_nothing_grows(self):
        self.done(clip())  # warm
        memory = self.service.server.memory_kb()
        good = clip()
        end = good.rindex(b"PK\5\6")
        lies = bytearray(good)
        lies[end + 16:end + 20] = struct.pack("<I", 0xFFFFFF00)
        entries = bytearray(good)
        entries[end + 8:end + 12] = struct.pack("<HH", 60000, 60000)
        bomb = io.BytesIO()
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            header = np.lib.format.header_data_from_array_1_0(np.zeros(1, "<f4"))
            header["shape"] = (1_000_000, 156)
            text = io.BytesIO()
            np.lib.format.write_array_header_1_0(text, header)
            with archive.open("poses.npy", "w", force_zip64=True) as entry:
                entry.write(text.getvalue())
                for _ in range(600):
                    entry.write(bytes(1 << 20))
        self.assertLess(len(bomb.getvalue()), 2_000_000)
        overlapping = bytearray(good)  # the second entry is where the first is
        at = good.index(b"PK\1\2")
        second = good.index(b"PK\1\2", at + 4)
        overlapping[second + 42:second + 46] = good[at + 42:at + 46]
        for body in (b"x", b"PK\5\6" + bytes(18), good[:-1], good[:len(good) // 2], bytes(lies), bytes(entries),
                     bytes(overlapping), bomb.getvalue(), os.urandom(5000)):
            self.assertTrue(self.failed(body))
        if not SANITIZED:
            self.assertLess(self.service.server.memory_kb(), memory + 30_000)
        self.done(good)

    def test_a_clip_that_is_too_long_fails_before_it_is_read(self):
        poses = np.zeros((60_001, 66), np.float16)
        out = io.BytesIO()
        np.savez_compressed(out, poses=poses, trans=poses[:, :3], mocap_framerate=60.0)
        self.assertIn("60000 frames", self.failed(out.getvalue()))
        out = io.BytesIO()
        np.savez_compressed(out, poses=poses[:1001], trans=poses[:1001, :3], mocap_framerate=1.0)
        self.assertIn("60000 frames", self.failed(out.getvalue()))


class ResultTest(JobsTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.body = clip(100, 120)
        cls.job = cls.service.submit(cls.body)
        cls.service.wait(cls.job)
        cls.expected = {kind: predict(cls.body, kind) for kind in ("displacement", "vertices", "latent")}

    def result(self, query=""):
        return self.service.result(self.job, query)

    def test_every_kind_is_bitwise_that_of_the_offline_tool(self):
        for kind, expected in self.expected.items():
            result = read_npz(self.result("?kind=" + kind))
            self.assertEqual(sorted(result), sorted(["betas", "fps", kind]))
            self.assertEqual((result["fps"], result[kind].dtype), (60, np.float32))
            self.assertTrue((result[kind] == expected).all(), kind)

    def test_halves_are_rounded_floats(self):
        for kind, expected in self.expected.items():
            half = np.load(io.BytesIO(self.result(f"?format=npy&encoding=f16&kind={kind}")))
            self.assertEqual(half.dtype, np.float16)
            self.assertTrue((half == expected.astype(np.float16)).all(), kind)

    def test_point_caches_are_read_by_their_formats(self):
        for kind in ("vertices", "displacement"):
            expected = self.expected[kind]
            self.assertTrue((read_pc2(self.result("?format=pc2&kind=" + kind)) == expected).all())
            times, frames = read_mdd(self.result("?format=mdd&kind=" + kind))
            self.assertTrue((frames == expected).all())
            self.assertTrue((times == np.arange(len(expected), dtype=np.float32) / np.float32(60)).all())

    def test_a_stretch_of_frames_may_be_asked_for(self):
        part = np.load(io.BytesIO(self.result("?format=npy&from=7&to=21")))
        self.assertTrue((part == self.expected["displacement"][7:21]).all())
        times, frames = read_mdd(self.result("?format=mdd&from=49"))
        self.assertTrue((frames == self.expected["displacement"][49:]).all())
        self.assertEqual(times[0], 0)

    def test_frames_of_the_clip_are_between_those_of_the_model(self):
        latent = read_npz(self.result("?kind=latent&fps=clip"))
        model, got = self.expected["latent"], latent["latent"]
        self.assertEqual((latent["fps"], len(got)), (120, 100))
        self.assertTrue((got[::2] == model).all())
        between = (model[:-1] + model[1:]) / 2
        self.assertLess(np.abs(got[1:-1:2] - between).max(), 1e-5 * np.abs(model).max())
        self.assertTrue((got[-1] == model[-1]).all(), "held behind the last")
        vertices = np.load(io.BytesIO(self.result("?format=npy&kind=vertices&fps=clip")))
        self.assertLess(np.abs(vertices[::2] - self.expected["vertices"]).max(), 1e-5)
        moved = np.abs(vertices[1:] - vertices[:-1]).max(axis=(1, 2))
        self.assertGreater(moved.min(), 0, "poses are the clip's own")

    def test_any_part_of_the_bytes_is_that_part(self):
        for query in ("?format=npz", "?format=npz&kind=latent", "?format=mdd&from=3&to=9", "?format=pc2&kind=vertices"):
            whole = self.result(query)
            path = f"/v1/jobs/{self.job}/result{query}"
            size = len(whole)
            cuts = [(0, 0), (0, 99), (5, 6), (size - 1, size - 1), (size - 300, size - 1), (size // 2, size // 2 + 999),
                    (size // 3, size - 1)]
            for first, last in cuts:
                reply = self.service.get(path, Range=f"bytes={first}-{last}")
                self.assertEqual(reply.status, 206)
                self.assertEqual(reply.headers["content-range"], f"bytes {first}-{last}/{size}")
                self.assertEqual(reply.headers["content-length"], str(last - first + 1))
                self.assertTrue(reply.body == whole[first:last + 1], (query, first, last))
            self.assertTrue(self.service.get(path, Range="bytes=-100").body == whole[-100:])
            reply = self.service.get(path, Range=f"bytes={size}-")
            self.problem(reply, 416, "range")
            self.assertEqual(reply.headers["content-range"], f"bytes */{size}")

    def test_head_and_conditions(self):
        path = f"/v1/jobs/{self.job}/result"
        whole = self.service.get(path)
        head = self.service.request("HEAD", path)
        for name in ("etag", "content-length", "content-type", "accept-ranges", "content-disposition"):
            self.assertEqual(head.headers[name], whole.headers[name], name)
        self.assertEqual((head.status, head.body), (200, b""))
        self.assertEqual(head.headers["content-type"], "application/zip")
        self.assertEqual(head.headers["content-disposition"], f'attachment; filename="{self.job}.npz"')
        tag = whole.headers["etag"]
        self.assertRegex(tag, r'^"[0-9a-f]{32}"$')
        self.assertEqual(whole.headers["content-length"], str(len(whole.body)))
        same = self.service.get(path, If_None_Match=tag)
        self.assertEqual((same.status, same.body), (304, b""))
        self.assertEqual(self.service.get(path, If_None_Match='"x"').status, 200)
        self.assertEqual(self.service.get(path, Range="bytes=0-1", If_Range=tag).status, 206)
        self.assertEqual(self.service.get(path, Range="bytes=0-1", If_Range='"x"').status, 200)
        others = [self.service.request("HEAD", path + query).headers["etag"]
                  for query in ("?kind=latent", "?format=npy", "?encoding=f16", "?from=1", "?to=2", "?fps=clip")]
        self.assertEqual(len(set(others + [tag])), 7)

    def test_questions_without_an_answer(self):
        path = f"/v1/jobs/{self.job}/result"
        for query in ("?format=obj", "?kind=latent&format=pc2", "?encoding=f16&format=mdd", "?from=50", "?from=-1",
                      "?to=51", "?from=5&to=5", "?from=x", "?fps=30", "?encoding=i16", "?frames=3", "?format="):
            self.problem(self.service.get(path + query), 400, "bad-parameter")
        self.problem(self.service.get(path, Accept="application/json"), 406, "not-acceptable")
        self.problem(self.service.get("/v1/jobs/nobody/result"), 404, "job-not-found")
        self.problem(self.service.get("/v1/jobs/nobody"), 404, "job-not-found")
        broken = self.service.submit(b"x")
        self.service.wait(broken)
        self.problem(self.service.get(f"/v1/jobs/{broken}/result"), 409, "job-not-done")

    def test_clients_that_vanish_while_downloading_leave_nothing(self):
        def ask():
            connection = self.service.server.connect()
            connection.sendall(f"GET /v1/jobs/{self.job}/result?kind=vertices HTTP/1.1\r\nHost: t\r\n\r\n".encode())
            self.assertTrue(connection.recv(1000))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
        for _ in range(5):
            ask()
        before, memory = self.service.server.descriptors(), self.service.server.memory_kb()
        for _ in range(60):
            ask()
        end = time.monotonic() + 30
        while time.monotonic() < end and self.service.server.descriptors() > before + 4:
            time.sleep(0.05)
        self.assertLessEqual(self.service.server.descriptors(), before + 4)
        if not SANITIZED:
            self.assertLess(self.service.server.memory_kb(), memory + 20_000)

    def test_a_client_that_takes_nothing_is_cut(self):
        with self.service.server.connect(60) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(f"GET /v1/jobs/{self.job}/result HTTP/1.1\r\nHost: t\r\n\r\n".encode())
            end = time.monotonic() + 60
            while time.monotonic() < end and not any("transfer_timeout" in line for line in self.service.server.log):
                time.sleep(0.1)
        self.assertTrue(any("transfer_timeout" in line for line in self.service.server.log))


class CountTest(JobsTest):
    def metrics(self):
        text = self.service.get("/metrics").body.decode()
        return dict(line.split() for line in text.split("\n") if line.startswith("dsnet_jobs"))

    def test_metrics_count_what_was_done(self):
        before = self.metrics()
        self.done(clip(30))
        self.failed(b"x")
        end = time.monotonic() + 20
        while time.monotonic() < end and self.metrics()["dsnet_jobs_failed_total"] == before["dsnet_jobs_failed_total"]:
            time.sleep(0.05)
        after = self.metrics()
        for name, more in (("done", 1), ("failed", 1), ("frames", 30)):
            name = f"dsnet_jobs_{name}_total"
            self.assertEqual(float(after[name]) - float(before[name]), more, name)
        self.assertEqual((after["dsnet_jobs_available"], after["dsnet_jobs_waiting"]), ("1", "0"))


class LifeTest(JobsTest):
    arguments = ("--job-max-waiting", "5", "--job-ttl", "2.5")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        poses, out = np.zeros((250_000, 66), np.float16), io.BytesIO()
        np.savez_compressed(out, poses=poses, trans=poses[:, :3], mocap_framerate=60.0)
        cls.long = out.getvalue()  # takes several seconds

    def tearDown(self):
        for state in ("queued", "running"):
            for job in self.service.get("/v1/jobs?limit=1000&state=" + state).json()["jobs"]:
                self.service.request("DELETE", "/v1/jobs/" + job["id"])

    def test_deleting_cancels_or_removes(self):
        running, queued = self.service.submit(self.long), self.service.submit(clip())
        for job in (queued, running):
            reply = self.service.request("DELETE", "/v1/jobs/" + job)
            self.assertEqual((reply.status, reply.json()["state"]), (200, "cancelled"))
            self.problem(self.service.get(f"/v1/jobs/{job}/result"), 409, "job-not-done")
            self.assertEqual(self.service.request("DELETE", "/v1/jobs/" + job).status, 204)
            self.problem(self.service.get("/v1/jobs/" + job), 404, "job-not-found")
            self.problem(self.service.request("DELETE", "/v1/jobs/" + job), 404, "job-not-found")
        job = self.done(clip())  # the thread is free again
        self.assertEqual(self.service.request("DELETE", "/v1/jobs/" + job).status, 204)
        end = time.monotonic() + 60
        while time.monotonic() < end and any(self.service.files().values()):
            time.sleep(0.05)
        self.assertEqual(self.service.files(), {"uploads": [], "clips": [], "results": []})

    def test_the_list_goes_on_page_by_page(self):
        jobs = [self.service.submit(self.long)] + [self.service.submit(clip(seed=i)) for i in range(3)]
        found, after = [], ""
        while after is not None:
            page = self.service.get("/v1/jobs?limit=2" + after).json()
            self.assertLessEqual(len(page["jobs"]), 2)
            found += [job["id"] for job in page["jobs"]]
            after = page["next"] and "&after=" + page["next"]
        self.assertEqual([job for job in found if job in jobs], jobs)
        self.assertEqual(len(set(found)), len(found))
        queued = self.service.get("/v1/jobs?state=queued").json()["jobs"]
        self.assertIn(jobs[3], [job["id"] for job in queued])
        for query in ("state=odd", "limit=0", "limit=1001", "limit=x", "after=nobody", "before=1"):
            self.problem(self.service.get("/v1/jobs?" + query), 400, "bad-parameter")

    def test_a_full_queue_refuses(self):
        for _ in range(100):
            reply = self.service.post(self.long)
            if reply.status != 202:
                break
        self.problem(reply, 503, "at-limit")
        self.assertIn("retry-after", reply.headers)
        self.tearDown()
        self.done(clip())

    def test_events_tell_progress_until_the_end(self):
        job = self.service.submit(clip(30_000, 60, poses=np.zeros((30_000, 66), np.float32)))
        stream = self.service.get(f"/v1/jobs/{job}/events", Accept="text/event-stream")
        self.assertEqual(stream.headers["content-type"], "text/event-stream")
        events = []
        for block in stream.body.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
            if fields:
                events.append((fields["event"], json.loads(fields["data"])))
        self.assertTrue(all(name == data["state"] and data["id"] == job for name, data in events))
        self.assertEqual((events[-1][0], events[-1][1]["frames_done"]), ("done", 30_000))
        progress = [data["frames_done"] for _, data in events]
        self.assertEqual(progress, sorted(progress))
        self.problem(self.service.get("/v1/jobs/nobody/events"), 404, "job-not-found")

    def test_ended_jobs_expire_and_give_their_space_back(self):
        job = self.done(clip())
        end = time.monotonic() + 60
        while time.monotonic() < end and self.service.get("/v1/jobs/" + job).status == 200:
            time.sleep(0.1)
        self.problem(self.service.get("/v1/jobs/" + job), 404, "job-not-found")
        self.assertFalse([name for name in self.service.files()["results"] if name.startswith(job)])


class AccessTest(unittest.TestCase):
    def test_without_a_folder_jobs_are_refused(self):
        from ws import Server
        server = Server("--threads", "1")
        try:
            for method, path in (("GET", "/v1/jobs"), ("GET", "/v1/jobs/a"), ("GET", "/v1/jobs/a/result"),
                                 ("GET", "/v1/jobs/a/events"), ("DELETE", "/v1/jobs/a")):
                answer = server.get(path, method=method)
                self.assertEqual(answer.status, 503)
                self.assertIn("--data-dir", json.loads(answer.body)["detail"])
            answer = server.request(b"POST /v1/jobs HTTP/1.1\r\nHost: t\r\nContent-Type: application/zip\r\n"
                                    b"Content-Length: 1\r\n\r\nx")
            self.assertEqual(json.loads(answer.body)["type"], "/problems#jobs-unavailable")
        finally:
            self.assertEqual(server.stop(), 0)

    def test_with_an_operator_only_the_operator_lists(self):
        folder = Service()
        token = os.path.join(folder.folder, "token")
        with open(token, "w") as file:
            file.write("correct horse battery\n")
        folder.server.stop()
        folder.arguments = ("--operator-token-file", token)
        folder.start()
        job = folder.submit(clip())
        self.assertEqual(folder.get("/v1/jobs").status, 401)
        self.assertEqual(folder.get("/v1/jobs", Authorization="Bearer correct horse battery").status, 200)
        self.assertEqual(folder.wait(job)["state"], "done")
        self.assertEqual(folder.close(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
