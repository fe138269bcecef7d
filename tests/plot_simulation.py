#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Plots what the simulated tissue does: free oscillation after a light landing that stops at once, with its
frequency, for three shapes, and how far each region moves over a clip.

    tests/plot_simulation.py build/release/model/tool/dsnet OUT.png [CLIP.npz]

Needs numpy, h5py, matplotlib and scipy. Runs `dsnet simulate` in a temporary folder.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import matplotlib
import numpy as np
from scipy.spatial.transform import Rotation

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

FPS = 60.0
# Points on the left half of the built-in body's rest pose.
PLACES = {
    "belly": (0.02, -0.17, 0.13),
    "breast": (0.08, 0.06, 0.13),
    "buttock": (0.08, -0.33, -0.14),
    "thigh": (0.09, -0.52, 0.0),
    "upper arm": (0.30, 0.19, -0.07),
    "calf": (0.095, -0.82, -0.08),
    "shin": (0.09, -0.90, 0.05),
    "forearm": (0.55, 0.21, -0.05),
}


SPEED = 0.2  # m/s of the landing: a hard one stiffens the tissue, and it rings higher


def landing(frames=30 + 120):
    """Falls at constant speed for half a second, then stands."""
    poses = np.zeros((frames, 156), np.float32)
    poses[:, 0] = np.pi / 2  # upright in a z-up world
    trans = np.zeros((frames, 3), np.float32)
    trans[:30, 2] = SPEED * (30 - np.arange(30)) / FPS
    return dict(poses=poses, trans=trans, mocap_framerate=FPS, betas=np.zeros(16), gender="neutral")


def unpose(body, posed, clip):
    """D [T][V][3] from posed vertices [T][V][3], by inverse linear blend skinning."""
    betas = clip["betas"][: body["shapedirs"].shape[2]]
    rest = body["v_template"] + body["shapedirs"] @ betas
    joints = body["J_regressor"] @ rest
    parents = body["kintree_table"][0].astype(np.int64)
    out = np.empty_like(posed)
    for t in range(len(posed)):
        vectors = np.zeros((24, 3))
        vectors[:22] = clip["poses"][t, :66].reshape(22, 3)
        local = Rotation.from_rotvec(vectors).as_matrix()
        matrix = np.zeros((24, 3, 4))
        for j in range(24):
            if j == 0:
                turn, place = local[0], joints[0] + clip["trans"][t]
            else:
                p = parents[j]
                turn = matrix[p, :, :3] @ local[j]
                place = matrix[p, :, :3] @ joints[j] + matrix[p, :, 3]
            matrix[j, :, :3], matrix[j, :, 3] = turn, place - turn @ joints[j]
        blend = np.einsum("vj,jab->vab", body["weights"], matrix)
        out[t] = np.linalg.solve(blend[:, :, :3], (posed[t] - blend[:, :, 3])[..., None])[..., 0] - rest
    return out


def simulate(dsnet, clip, betas, folder, *options):
    np.savez(folder / "betas.npz", betas=np.asarray(betas, np.float32))
    subprocess.run([dsnet, "simulate", clip, "--betas-file", folder / "betas.npz", "-o", folder / "out",
                    *options], check=True)
    for path in sorted((folder / "out").glob("*.hdf5")):
        with h5py.File(path) as file:
            name = next(k for k in file if k != "faces")
            yield np.moveaxis(file[name][:], 2, 0).astype(float), np.load(path.with_suffix(".npz"))


def frequency(d):
    """Hz at which the spectrum of what follows the landing peaks."""
    after = d[30:] * np.hanning(2 * len(d[30:]))[len(d[30:]):]
    spectrum, hz = np.abs(np.fft.rfft(after, 4096)), np.fft.rfftfreq(4096, 1 / FPS)
    return hz[np.where(hz > 1, spectrum, 0).argmax()]


def main():
    dsnet, output = sys.argv[1], sys.argv[2]
    clip = sys.argv[3] if len(sys.argv) > 3 else "sample"
    body = dict(np.load(Path(__file__).parents[1] / "model/builtin/body.npz"))
    template = body["v_template"]
    near = {k: np.argsort(np.linalg.norm(template - np.array(p), axis=1))[:25] for k, p in PLACES.items()}
    shapes = [[0, m] + [0] * 8 for m in (-2, 0, 2)]
    figure, axes = plt.subplots(2, 3, figsize=(16, 8))
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        np.savez(folder / "landing.npz", **landing())
        for axis, label, (posed, poses) in zip(axes[0], ("light (mass -2)", "mean", "heavy (mass +2)"),
                                                simulate(dsnet, folder / "landing.npz", shapes, folder)):
            d = unpose(body, posed, poses)
            time = (np.arange(len(d)) - 30) / FPS
            for place in ("belly", "breast", "buttock", "thigh"):
                height = d[:, near[place], 1].mean(1)
                axis.plot(time, 1e3 * height, label=f"{place}: {frequency(height):.1f} Hz")
            axis.set(title=f"landing at {SPEED} m/s, {label}", xlim=(-0.2, 1.4), xlabel="s",
                     ylabel="vertical D, mm")
            axis.grid(alpha=0.3)
            axis.legend()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for axis, label, (posed, poses) in zip(axes[1], ("light", "mean", "heavy"),
                                               simulate(dsnet, clip, shapes, folder, "--deglitch")):
            d = unpose(body, posed, poses)
            time = np.arange(len(d)) / FPS
            for place in PLACES:
                size = np.linalg.norm(d[:, near[place]], axis=2).mean(1)
                axis.plot(time, 1e3 * size, label=f"{place}: {1e3 * np.sqrt((size**2).mean()):.1f} rms")
            axis.set(title=f"{Path(clip).stem}, {label}", xlabel="s", ylabel="|D|, mm")
            axis.grid(alpha=0.3)
            axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(output, dpi=70)


if __name__ == "__main__":
    main()
