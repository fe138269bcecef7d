#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs through the death of their server, and servers through the death of their disk: kill -9 at random moments,
full disks, folders that cannot be written, damaged databases. Streams go on."""
import contextlib
import http.client
import io
import os
import random
import resource
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np

from jobs import Service, clip, predict, read_npz
from ws import BINARY, Client, Server, pose_frame

# A sanitized server starts and computes at a tenth of the speed.
JOBS, KILLS = (30, 5) if os.environ.get("DSNET_SANITIZE") else (100, 15)
CLIPS = 5
SEED = int(os.environ.get("DSNET_TEST_SEED", "20"))


class Killer(threading.Thread):
    """Kills and restarts a service at random moments until it is told to stop."""

    def __init__(self, service):
        super().__init__()
        self.service, self.random = service, random.Random(SEED)
        self.done, self.kills, self.log = threading.Event(), 0, []

    def run(self):
        while not self.done.wait(self.random.uniform(0.02, 0.6)):
            self.service.kill()
            self.log += self.service.server.log
            self.kills += 1
            self.service.start()


def submit_until_accepted(service, body, key):
    while True:
        try:
            reply = service.post(body, Idempotency_Key=key)
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)  # killed
            continue
        assert reply.status == 202, (reply.status, reply.body)
        return reply.json()["id"]


class KillTest(unittest.TestCase):
    def test_every_accepted_job_is_done_once_and_rightly(self):
        clips = [clip(400 * (i + 1), 60, seed=i) for i in range(CLIPS)]
        expected = [predict(body, "latent") for body in clips]
        service = Service()
        killer = Killer(service)
        killer.start()
        try:
            accepted = [submit_until_accepted(service, clips[i % CLIPS], f"key-{i}") for i in range(JOBS)]
            while killer.kills < KILLS:  # also while nothing but computing goes on
                time.sleep(0.05)
        finally:
            killer.done.set()
            killer.join()
        self.assertEqual(len(set(accepted)), JOBS)
        for i, job in enumerate(accepted):
            self.assertEqual(service.wait(job, 300)["state"], "done", f"seed {SEED}")
            latent = read_npz(service.result(job, "?kind=latent"))["latent"]
            self.assertTrue((latent == expected[i % CLIPS]).all(), f"seed {SEED}, job {i}")
        listed = [job["id"] for job in service.get("/v1/jobs?limit=1000").json()["jobs"]]
        self.assertEqual(sorted(listed), sorted(accepted), "none is there that was not asked for")
        files = service.files()
        self.assertEqual((files["clips"], files["uploads"]), ([], []))
        self.assertEqual([name.split(".")[0] for name in files["results"]], sorted(accepted))
        log = killer.log + service.server.log
        ends = [line.split('"message":"')[1].split(":")[0] for line in log if '"job_done"' in line]
        self.assertEqual(len(ends), len(set(ends)), "no job was done twice")
        self.assertEqual(service.close(), 0)

    def test_a_job_in_the_middle_is_taken_up_by_the_next_process(self):
        for stop in ("kill", "term"):
            service = Service()
            body = clip(100_000, 60)
            job = service.submit(body)
            while not service.get("/v1/jobs/" + job).json()["frames_done"]:
                time.sleep(0.02)
            if stop == "kill":
                service.kill()
            else:
                self.assertEqual(service.server.stop(), 0)
            service.start()
            self.assertEqual(service.wait(job, 300)["state"], "done")
            self.assertTrue((read_npz(service.result(job, "?kind=latent"))["latent"] == predict(body, "latent")).all())
            self.assertEqual(service.close(), 0)

    def test_a_stop_does_not_wait_for_watchers_or_downloads_that_hang(self):
        service = Service("--drain-timeout", "3")
        job = service.submit(clip(200_000, 60))
        watching = service.server.connect()
        watching.sendall(f"GET /v1/jobs/{job}/events HTTP/1.1\r\nHost: t\r\n\r\n".encode())
        self.assertIn(b"event:", watching.recv(65536) + watching.recv(65536))
        begun = time.monotonic()
        self.assertEqual(service.server.stop(), 0)
        self.assertLess(time.monotonic() - begun, 30)
        watching.close()
        service.kept.cleanup()


class DiskTest(unittest.TestCase):
    def assert_streams(self, server):
        with Client(server) as client:
            client.open()
            client.send(BINARY, pose_frame(1))
            self.assertGreater(len(client.receive()), 1000)

    def assert_problem(self, reply, status, kind, server, event):
        self.assertEqual((reply.status, reply.json()["type"]), (status, "/problems#" + kind))
        end = time.monotonic() + 20
        while time.monotonic() < end and not any(event in line for line in server.log):
            time.sleep(0.05)
        self.assertTrue(any(event in line for line in server.log), server.log)

    def test_a_full_disk_refuses_and_recovers(self):
        service = Service()
        pid, forever = service.server.process.pid, resource.RLIM_INFINITY
        small, large = clip(20), clip(2000)
        self.assertEqual(service.wait(service.submit(small))["state"], "done")
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (200_000, forever))
        self.assertGreater(len(large), 200_000)
        self.assert_problem(service.post(large), 507, "no-space", service.server, "jobs_no_space")
        # Not even the record of a job that is small enough.
        size = os.path.getsize(os.path.join(service.folder, "jobs.sqlite-wal"))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (max(size, len(small)), forever))
        replies = [service.post(small) for _ in range(30)]
        self.assertIn(507, [reply.status for reply in replies])
        self.assertLessEqual({reply.status for reply in replies}, {202, 507})
        self.assert_streams(service.server)
        self.assertEqual(service.server.get("/readyz").status, 200)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (forever, forever))
        for reply in replies:
            if reply.status == 202:
                self.assertIn(service.wait(reply.json()["id"])["state"], ("done", "failed"))
        job = service.submit(large)
        self.assertEqual(service.wait(job)["state"], "done")
        self.assertEqual(service.files()["uploads"], [])
        self.assertEqual(service.close(), 0)

    def test_a_full_file_system_refuses_and_recovers(self):
        folder = tempfile.mkdtemp()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], capture_output=True)
        if mount.returncode:
            os.rmdir(folder)
            self.skipTest("this user may not mount")
        try:
            service = Service(folder=folder)
            self.assertEqual(service.wait(service.submit(clip(20)))["state"], "done")
            self.assert_problem(service.post(clip(3000)), 507, "no-space", service.server, "jobs_no_space")
            rest = os.path.join(folder, "ballast")
            with open(rest, "wb", 0) as file, contextlib.suppress(OSError):
                while file.write(bytes(4096)):
                    pass
            self.assert_problem(service.post(clip(20)), 507, "no-space", service.server, "jobs_no_space")
            self.assert_streams(service.server)
            os.unlink(rest)
            self.assertEqual(service.wait(service.submit(clip(20)))["state"], "done")
            self.assertEqual(service.close(), 0)
        finally:
            subprocess.run(["umount", "-l", folder], check=True)
            os.rmdir(folder)

    def test_a_result_that_finds_no_room_fails_its_job(self):
        service = Service()
        poses, packed = np.zeros((3000, 66), np.float32), io.BytesIO()
        np.savez_compressed(packed, poses=poses, trans=poses[:, :3], mocap_framerate=60.0)
        pid, forever = service.server.process.pid, resource.RLIM_INFINITY
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (500_000, forever))
        ended = service.wait(service.submit(packed.getvalue()))
        self.assertEqual(ended["state"], "failed")
        self.assertIn("disk", ended["error"])
        self.assertNotIn(service.folder, ended["error"])
        self.assertEqual(service.files()["results"], [])
        self.assert_streams(service.server)
        self.assertEqual(service.close(), 0)

    def test_a_folder_that_cannot_be_written_refuses_jobs_only(self):
        server = Server("--threads", "1", "--data-dir", "/proc/nowhere/data")
        self.addCleanup(server.stop)
        self.assertTrue(any("jobs_unavailable" in line for line in server.log))
        answer = server.get("/v1/jobs")
        self.assertEqual(answer.status, 503)
        self.assertIn(b"jobs-unavailable", answer.body)
        self.assertNotIn(b"/proc", answer.body)
        self.assert_streams(server)

    def test_a_folder_that_goes_away_refuses_uploads(self):
        service = Service()
        os.rmdir(os.path.join(service.folder, "uploads"))
        self.assert_problem(service.post(clip()), 503, "jobs-unavailable", service.server, "jobs_disk")
        self.assert_streams(service.server)
        os.mkdir(os.path.join(service.folder, "uploads"))
        self.assertEqual(service.wait(service.submit(clip()))["state"], "done")
        self.assertEqual(service.close(), 0)

    def test_a_damaged_database_refuses_jobs_only(self):
        service = Service()
        service.wait(service.submit(clip()))
        self.assertEqual(service.server.stop(), 0)
        path = os.path.join(service.folder, "jobs.sqlite")
        with open(path, "r+b") as file:
            file.write(b"this is no database" * 1000)
        service.start()
        self.assert_problem(service.post(clip()), 503, "jobs-unavailable", service.server, "jobs_unavailable")
        self.assert_streams(service.server)
        with open(path, "rb") as file:
            self.assertTrue(file.read().startswith(b"this is no database"), "it is left for somebody to look at")
        self.assertEqual(service.close(), 0)

    def test_a_damaged_result_is_an_error_and_not_noise(self):
        service = Service()
        job = service.submit(clip())
        service.wait(job)
        path = os.path.join(service.folder, "results", service.files()["results"][0])
        os.truncate(path, os.path.getsize(path) - 1)
        reply = service.get(f"/v1/jobs/{job}/result")
        self.assert_problem(reply, 500, "internal", service.server, "job_result")
        self.assertEqual(service.close(), 0)

    def test_a_folder_belongs_to_one_process(self):
        service = Service()
        other = Server("--threads", "1", "--data-dir", service.folder)
        self.addCleanup(other.stop)
        self.assertEqual(other.get("/v1/jobs").status, 503)
        self.assertTrue(any("in use" in line for line in other.log))
        self.assertEqual(service.wait(service.submit(clip()))["state"], "done")
        self.assertEqual(service.close(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=1)
