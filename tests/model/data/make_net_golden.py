#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden vectors of test_net_golden.c with PyTorch (Debian: python3-torch).

Three small networks of torch's own nn.LSTM and nn.Linear are saved under the names their state_dict
gives, with what they answer to a short motion, computed in double precision from the weights as
stored. The motion features are written out here a second time, in numpy, so that nothing is compared
with itself. Writes net_golden_*.safetensors beside this script; the same bytes every time."""
import json
import os
import struct

import numpy as np
import torch

FPS = 60.0
FRAMES = 12
HIDDEN, LATENT, VERTICES = 16, 4, 5
HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {np.dtype("float32"): "F32", np.dtype("float16"): "F16"}


def write_safetensors(name, tensors, metadata=None):
    header, blob = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for key, value in tensors.items():
        data = np.ascontiguousarray(value).tobytes()
        header[key] = {"dtype": DTYPES[value.dtype], "shape": list(value.shape),
                       "data_offsets": [len(blob), len(blob) + len(data)]}
        blob += data
    text = json.dumps(header).encode()
    with open(os.path.join(HERE, name), "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + blob)


def matrix(v):
    """Rodrigues' formula."""
    angle = np.linalg.norm(v)
    if angle == 0:
        return np.eye(3)
    x, y, z = v / angle
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * (k @ k)


def logarithm(r):
    """The rotation vector of a rotation that is not near pi."""
    twice_sine = np.array([r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]])
    sine = np.linalg.norm(twice_sine) / 2
    angle = np.arctan2(sine, (np.trace(r) - 1) / 2)
    return twice_sine / 2 * (angle / sine if sine > 0 else 1.0)


def paper_features(poses, trans, betas):
    """pose, joint angular velocity and acceleration, root velocity and acceleration, betas."""
    frames = len(poses)
    omega = np.zeros((frames, 22, 3))
    velocity = np.zeros((frames, 3))
    for t in range(1, frames):
        for j in range(22):
            before, now = (matrix(poses[s].reshape(22, 3)[j]) for s in (t - 1, t))
            omega[t, j] = logarithm(before.T @ now) * FPS
        velocity[t] = (trans[t] - trans[t - 1]) * FPS
    alpha, acceleration = np.zeros_like(omega), np.zeros_like(velocity)
    alpha[2:] = (omega[2:] - omega[1:-1]) * FPS
    acceleration[2:] = (velocity[2:] - velocity[1:-1]) * FPS
    return np.concatenate([poses, omega.reshape(frames, 66), alpha.reshape(frames, 66), velocity,
                           acceleration, np.tile(betas, (frames, 1))], axis=1)


def make_motion(random):
    """A gentle one: 32-bit sums of unnormalised accelerations must still be good to 1e-5."""
    t = np.arange(FRAMES)[:, None] / FPS
    base, phase = random.uniform(-0.7, 0.7, (1, 66)), random.uniform(0, 6.28, (1, 66))
    poses = base + 0.01 * np.sin(2 * np.pi * 1.5 * t + phase)
    trans = np.array([[0.1, -0.2, 0.9]]) + 0.01 * np.sin(2 * np.pi * t + np.array([[0, 1, 2]]))
    betas = random.normal(size=10)
    return tuple(x.astype(np.float32) for x in (poses, trans, betas))


class Network(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.lstm = torch.nn.LSTM(214, HIDDEN, layers, batch_first=True)
        self.linear = torch.nn.Linear(HIDDEN, LATENT)
        self.decoder = torch.nn.Linear(LATENT, 3 * VERTICES)

    def forward(self, x):
        z = self.linear(self.lstm(x[None])[0][0])
        return z, self.decoder(z)


def main():
    random = np.random.RandomState(2201)
    poses, trans, betas = make_motion(random)
    features = paper_features(*(x.astype(np.float64) for x in (poses, trans, betas)))
    answers = {"poses": poses, "trans": trans, "betas": betas,
               "features": features.astype(np.float32)}
    for layers, dtype, normalised in ((1, np.float32, False), (2, np.float32, True),
                                      (4, np.float16, False)):
        torch.manual_seed(layers)
        network = Network(layers)
        tensors = {k: v.numpy().astype(dtype) for k, v in network.state_dict().items()}
        network.load_state_dict({k: torch.from_numpy(v.astype(np.float64))
                                 for k, v in tensors.items()})
        network = network.double()
        x, metadata = features, None
        if normalised:
            spread = features[2:].std(axis=0) + 0.05
            mean = features[2:].mean(axis=0).astype(dtype)
            scale = (1 / spread).astype(dtype)
            tensors.update({"features.mean": mean, "features.scale": scale})
            x = (features - mean.astype(np.float64)) * scale.astype(np.float64)
            metadata = {"format": "pt", "dsnet": json.dumps(
                {"format": 1, "features": "paper", "rate": 60, "decoder": "linear",
                 "trained": True, "provenance": {"command": "make_net_golden.py"}})}
        with torch.no_grad():
            z, d = network(torch.from_numpy(x))
        write_safetensors(f"net_golden_{layers}.safetensors", tensors, metadata)
        answers[f"latent_{layers}"] = z.numpy().astype(np.float32)
        answers[f"displacement_{layers}"] = d.numpy().astype(np.float32)
    write_safetensors("net_golden_answers.safetensors", answers)


main()
