#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The client of a dsnetd stream for Python, with numpy and websockets (10 or later).

    async with connect("ws://127.0.0.1:8080/v1/stream", betas=[0.5, -1]) as stream:
        await stream.send_pose(pose, trans)         # [22][3] axis-angle radians, [3] metres, z-up
        frame = await stream.receive()              # frame.data: [V][3] float32, metres, rest space

As a program it takes an AMASS clip and writes what moves:

    dsnet_client.py walk.npz -o walk_displacement.npz
"""
import argparse
import asyncio
import json
import random
import struct
import time
from collections import deque
from typing import NamedTuple

import numpy as np
import websockets
from websockets.exceptions import WebSocketException

SUBPROTOCOL = "dsnet.v1"
HEADER = struct.Struct("<BBHId")  # kind, encoding, count, seq, timestamp
KINDS = {2: "displacement", 3: "vertices", 4: "latent"}
ENCODINGS = ["f32", "f16", "i16"]
LOST = (OSError, asyncio.TimeoutError, WebSocketException)


class DsnetError(Exception):
    """What the server refused; `code` is one of the protocol's error codes, `seq` the frame's or None."""

    def __init__(self, code, message, seq=None):
        super().__init__(f"{code}: {message}")
        self.code, self.seq = code, seq


class Frame(NamedTuple):
    seq: int
    timestamp: float
    kind: str
    encoding: str
    data: np.ndarray  # float32, [V][3] metres or [Z]


def encode_pose(seq, timestamp, pose, trans):
    """The bytes of a pose frame: pose [22..55][3] radians, trans [3] metres."""
    pose = np.asarray(pose, "<f4").reshape(-1, 3)
    return HEADER.pack(1, 0, len(pose), seq, timestamp) + pose.tobytes() + np.asarray(trans, "<f4").tobytes()


def decode_frame(message):
    kind, encoding, _, seq, timestamp = HEADER.unpack_from(message)
    kind, encoding = KINDS[kind], ENCODINGS[encoding]
    if encoding == "i16":
        scale, = struct.unpack_from("<f", message, HEADER.size)
        data = np.frombuffer(message, "<i2", offset=HEADER.size + 4) * np.float32(scale)
    else:
        data = np.frombuffer(message, "<f4" if encoding == "f32" else "<f2", offset=HEADER.size).astype(np.float32)
    return Frame(seq, timestamp, kind, encoding, data if kind == "latent" else data.reshape(-1, 3))


class Stream:
    """One session. With reconnect=SECONDS a lost connection is taken up again from the last checkpoint, on the same
    address, and results equal those of an uninterrupted one."""

    def __init__(self, url, *, reconnect=0.0, resume=None, resume_seq=-1, **members):
        self.url, self.reconnect = url, reconnect
        self.members = {"fps": 60, **members}  # of the open message
        if reconnect:
            self.members.setdefault("checkpoint_every", 60)
        self.checkpoint = (resume_seq, resume) if resume else None  # seq, token
        self.next_seq, self.answered = resume_seq + 1, resume_seq
        self.sent = deque()  # (seq, message) after the last checkpoint; seq -1 for text
        self.socket, self.opened, self.reconnects = None, None, 0

    async def __aenter__(self):
        await self._open()
        return self

    async def __aexit__(self, *_):
        await self.socket.close()

    async def send_pose(self, pose, trans, timestamp=None):
        """Returns its seq. Timestamps go up by 1 / fps with every pose unless one is given."""
        seq = self.next_seq
        self.next_seq += 1
        await self._send(seq, encode_pose(seq, seq / self.members["fps"] if timestamp is None else timestamp,
                                          pose, trans))
        return seq

    async def shape(self, betas):
        """The poses that follow are of this shape."""
        self.members["betas"] = [float(beta) for beta in betas]
        await self._send(-1, json.dumps({"type": "shape", "betas": self.members["betas"]}))

    async def reset(self):
        """The next pose starts the sequence anew."""
        await self._send(-1, json.dumps({"type": "reset"}))

    async def receive(self):
        """The next result. Raises DsnetError for a frame that the server could not use."""
        while True:
            try:
                message = await self.socket.recv()
            except LOST:
                await self._recover()
                continue
            if isinstance(message, bytes):
                frame = decode_frame(message)
                if frame.seq <= self.answered:
                    continue  # came before the connection was lost
                self.answered = frame.seq
                return frame
            self._take_text(json.loads(message))

    async def run(self, pose, trans, ahead=32):
        """Streams pose [T][22][3] and trans [T][3], at most `ahead` unanswered, and yields each Frame."""
        for k in range(len(pose)):
            await self.send_pose(pose[k], trans[k])
            if self.next_seq - 1 - self.answered >= ahead:
                yield await self.receive()
        while self.answered < self.next_seq - 1:
            yield await self.receive()

    def _take_text(self, message):
        if message["type"] == "checkpoint":
            self.checkpoint = message["seq"], message["token"]
            if any(seq == message["seq"] for seq, _ in self.sent):
                while self.sent.popleft()[0] != message["seq"]:
                    pass
        elif message["type"] == "error":
            self.answered = max(self.answered, message.get("seq", -1))
            raise DsnetError(message["code"], message["message"], message.get("seq"))

    async def _open(self):
        self.socket = await websockets.connect(self.url, subprotocols=[SUBPROTOCOL], max_size=None, compression=None)
        resume = {"resume": self.checkpoint[1]} if self.checkpoint else {}
        await self.socket.send(json.dumps({"type": "open", **self.members, **resume}))
        answer = json.loads(await self.socket.recv())
        if answer["type"] != "opened":
            await self.socket.close()
            raise DsnetError(answer["code"], answer["message"])
        self.opened = answer

    async def _send(self, seq, message):
        if self.reconnect:
            self.sent.append((seq, message))
        try:
            await self.socket.send(message)
        except LOST:
            await self._recover()

    async def _recover(self):
        """Raises what was lost when there is no reconnecting, or no server within the time."""
        end, pause = time.monotonic() + self.reconnect, 0.1
        while True:
            if time.monotonic() >= end:
                raise ConnectionError(f"{self.url}: the connection is lost")
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(2 * pause, 3)
            try:
                await self._open()
                self.reconnects += 1
                for _, message in self.sent:
                    await self.socket.send(message)
                return
            except LOST:
                continue
            except DsnetError as error:
                if not error.code.endswith("_token"):
                    raise
                self.checkpoint = None  # no key opens it: anew, with what is still here


def connect(url, **options):
    """A Stream, to be entered with `async with`. Options: reconnect, resume, resume_seq, and the members of the open
    message (model, betas, fps, up, output, encoding, delivery, checkpoint_every, ...)."""
    return Stream(url, **options)


def load_amass(path):
    """pose [T][22][3], trans [T][3], betas, frames a second of an AMASS npz."""
    with np.load(path) as data:
        if "poses" in data:
            pose = data["poses"][:, :66]
        else:
            pose = np.concatenate([data["root_orient"], data["pose_body"]], axis=1)
        rate = data["mocap_framerate"] if "mocap_framerate" in data else data["mocap_frame_rate"]
        betas = data["betas"][:10] if "betas" in data else np.zeros(0)
        return pose.reshape(len(pose), 22, 3), data["trans"], betas, float(rate)


async def displacements(url, path, **options):
    """[T][V][3] of an AMASS clip, and its frames a second."""
    pose, trans, betas, fps = load_amass(path)
    async with connect(url, betas=[float(b) for b in betas], fps=fps, **options) as stream:
        return np.stack([frame.data async for frame in stream.run(pose, trans)]), fps


def main():
    parser = argparse.ArgumentParser(description="Streams an AMASS clip through dsnetd and writes displacements.")
    parser.add_argument("clip")
    parser.add_argument("-o", "--output", required=True, help="an npz with displacement [T][V][3], metres, and fps")
    parser.add_argument("--server", default="ws://127.0.0.1:8080/v1/stream")
    parser.add_argument("--model", default="default")
    parser.add_argument("--encoding", default="f32", choices=ENCODINGS)
    parser.add_argument("--reconnect", type=float, default=0, metavar="SECONDS")
    arguments = parser.parse_args()
    displacement, fps = asyncio.run(displacements(arguments.server, arguments.clip, model=arguments.model,
                                                  encoding=arguments.encoding, reconnect=arguments.reconnect))
    np.savez(arguments.output, displacement=displacement, fps=fps)
    moved = 1000 * np.linalg.norm(displacement, axis=2)
    print(f"{len(displacement)} frames, {moved.mean():.2f} mm in the mean, {moved.max():.1f} mm at most")


if __name__ == "__main__":
    main()
