#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three replicas behind HAProxy, with the configuration that is shipped, and sixty sessions of real clips
through it, while replicas are killed, drained, started and frozen: every session must end with the whole
sequence, equal to what `dsnet predict` makes of the clip alone. Prints the longest gap that a client saw.

    test_cluster.py [CLIP.npz ...]      needs haproxy; without clips the built-in one is streamed
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ["DSNET_BUILD"])
DSNET, STREAM = BUILD / "model/tool/dsnet", BUILD / "proto/stream/dsnet-stream"
HAPROXY = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
REPLICAS, SESSIONS, TOLERANCE = 3, 60, 1e-5
ROUND = ("kill", "start", "drain", "start", "freeze", "thaw")
ROUNDS, PAUSE = 2, 2.0  # seconds between two blows, so that each meets a cluster that serves
SECONDS = 50  # of motion: outlasts the first round on any machine, and both on most


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def status(port, path="/readyz"):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def wait_until(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


class Replica:
    """One dsnetd on a port of its own, started as often as it takes."""

    def __init__(self, folder, port, *options):
        self.port, self.options = port, options
        self.log = open(folder / f"replica-{port}.log", "ab")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [os.environ["DSNETD"], "--port", str(self.port), *self.options], stdout=self.log, stderr=self.log,
            env={**os.environ, "DSNET_DRAIN_GRACE": "1.5", "DSNET_MAX_LATE": "1"})
        wait_until(lambda: status(self.port) == 200, f"replica {self.port} is ready")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def drain(self):
        self.process.send_signal(signal.SIGTERM)
        ended = self.process.wait(timeout=30)
        assert ended == 0, f"a drained replica ended with {ended}"

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.thaw()
            self.kill()
        self.log.close()


class Balancer:
    def __init__(self, folder, replicas):
        self.port, = free_ports(1)
        self.admin = folder / "admin.sock"
        self.log = open(folder / "haproxy.log", "wb")
        addresses = {f"DSNET_REPLICA_{i + 1}": f"127.0.0.1:{r.port}" for i, r in enumerate(replicas)}
        self.process = subprocess.Popen(
            [HAPROXY, "-db", "-f", ROOT / "deploy/haproxy/haproxy.cfg"], stdout=self.log, stderr=self.log,
            env={**os.environ, **addresses, "DSNET_BIND": f"127.0.0.1:{self.port}", "DSNET_ADMIN": str(self.admin)})
        wait_until(lambda: status(self.port) == 200, "the balancer passes requests on")

    def states(self):
        """Of the streams' servers, as HAProxy sees them."""
        with socket.socket(socket.AF_UNIX) as admin:
            admin.connect(str(self.admin))
            admin.sendall(b"show stat\n")
            text = b"".join(iter(lambda: admin.recv(65536), b"")).decode()
        rows = [line.split(",") for line in text.lstrip("# ").splitlines() if line]
        columns = {name: i for i, name in enumerate(rows[0])}
        return [row[columns["status"]] for row in rows[1:]
                if row[columns["pxname"]] == "streams" and row[columns["svname"]].startswith("replica")]

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)
        self.log.close()


def long_enough(folder, clips):
    """The clips, each repeated to and fro until it outlasts the blows, at 60 Hz."""
    paths = []
    for clip in clips:
        data = dict(np.load(clip))
        step = max(1, round(float(data["mocap_framerate"]) / 60))
        poses, trans = data["poses"][::step].astype(np.float32), data["trans"][::step].astype(np.float32)
        turns = int(np.ceil(SECONDS * 60 / len(poses)))
        pick = np.concatenate([np.arange(len(poses))[:: 1 if i % 2 == 0 else -1] for i in range(turns)])
        paths.append(folder / f"clip-{len(paths)}.npz")
        np.savez(paths[-1], poses=poses[pick][: int(SECONDS * 60)], trans=trans[pick][: int(SECONDS * 60)],
                 betas=data["betas"], mocap_framerate=60.0, gender="neutral")
    return paths


def latents(path):
    with np.load(path) as data:
        return data["latent"], data.get("seq")


class Cluster(unittest.TestCase):
    clips = []

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        key = self.folder / "state.key"
        key.write_bytes(os.urandom(32))
        key.chmod(0o600)
        self.replicas = [Replica(self.folder, port, "--threads", "1", "--state-key-file", str(key))
                         for port in free_ports(REPLICAS)]
        for replica in self.replicas:
            self.addCleanup(replica.stop)
            replica.start()
        self.balancer = Balancer(self.folder, self.replicas)
        self.addCleanup(self.balancer.stop)

    def strike(self, blow, at):
        """One blow at a replica, which waits for what it must lead to and for nothing else."""
        replica = self.replicas[at]
        getattr(replica, blow)()
        if blow in ("kill", "freeze"):
            wait_until(lambda: self.balancer.states()[at].startswith("DOWN"), f"{blow}: taken out")
        elif blow in ("start", "thaw"):
            wait_until(lambda: self.balancer.states()[at] == "UP", f"{blow}: taken in again")

    def test_every_session_ends_whole_whatever_happens_to_replicas(self):
        clips = long_enough(self.folder, self.clips)
        record = self.folder / "out.npz"
        client = subprocess.Popen(
            [STREAM, *clips, "--server", f"ws://127.0.0.1:{self.balancer.port}/v1/stream", "--sessions",
             str(SESSIONS), "--output", "latent", "--checkpoint-every", "30", "--reconnect", "--reconnect-tries",
             "100", "--timeout", "20", "--record", record, "--json", "-q"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(client.stdout.close)
        self.addCleanup(client.kill)
        wait_until(lambda: self.streams() == SESSIONS, "every session is open")
        blows = 0
        for number in range(ROUNDS):
            at = [number % REPLICAS, number % REPLICAS, *[(number + 1) % REPLICAS] * 2, *[(number + 2) % REPLICAS] * 2]
            for blow, target in zip(ROUND, at):
                time.sleep(PAUSE)
                if number == 0:
                    self.assertIsNone(client.poll(), "the sessions must outlast the first round")
                self.strike(blow, target)
                blows += 1
        output, _ = client.communicate(timeout=240)
        summary = json.loads(output)
        print(json.dumps({"blows": blows} | {key: summary[key] for key in (
            "sessions", "frames_received", "reconnects", "restarts", "frames_resent", "longest_gap_ms")}))
        self.assertEqual(client.returncode, 0, summary)
        self.assertTrue(summary["ok"])
        self.assertEqual(summary["frames_lost"], 0)
        self.assertGreaterEqual(summary["reconnects"], SESSIONS // REPLICAS, "the blows must have hit streams")
        self.check(clips)

    def streams(self):
        """Sessions that the replicas have among them."""
        total = 0
        for replica in self.replicas:
            with urllib.request.urlopen(f"http://127.0.0.1:{replica.port}/metrics", timeout=5) as answer:
                lines = answer.read().decode().splitlines()
            total += int(float(next(l.split()[1] for l in lines if l.startswith("dsnet_sessions "))))
        return total

    def check(self, clips):
        wanted = []
        for i, clip in enumerate(clips):
            path = self.folder / f"wanted-{i}.npz"
            subprocess.run([DSNET, "predict", clip, "--kind", "latent", "-o", path], check=True,
                           stderr=subprocess.DEVNULL)
            wanted.append(latents(path)[0])
        for session in range(SESSIONS):
            found, seq = latents(self.folder / f"out_{session:03}.npz")
            target = wanted[session % len(clips)]
            np.testing.assert_array_equal(seq, np.arange(len(target)), f"session {session}")
            scale = np.abs(target).max()
            self.assertLess(np.abs(found - target).max(), TOLERANCE * scale, f"session {session}")


if __name__ == "__main__":
    if not HAPROXY:
        print("skipped: there is no haproxy here")
        sys.exit(77)
    real = sorted(pathlib.Path(p) for p in sys.argv[1:] if os.path.exists(p))
    if not real:
        print("no real clips here: the built-in one is streamed")
        real = [ROOT / "model/builtin/sample.npz"]
    Cluster.clips = real
    unittest.main(argv=sys.argv[:1], verbosity=2)
