#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders a body (SMPL npz layout) to one PNG: front, side and back, three shapes, a running pose.

A small software rasteriser in NumPy: z-buffer, smooth normals, one key and one fill light, a rim,
ambient occlusion from depth maps, twofold supersampling. Needs numpy and Pillow alone.

    tests/render_body.py model/builtin/body.npz -o body.png
"""
import argparse

import numpy as np
from PIL import Image

SKIN = np.array([0.80, 0.74, 0.69])
PAPER = np.array([0.955, 0.953, 0.948])


def rodrigues(pose):
    """[J][3] axis-angle -> [J][3][3]."""
    angle = np.linalg.norm(pose, axis=1)
    axis = pose / np.maximum(angle, 1e-12)[:, None]
    x, y, z = axis.T
    o = np.zeros_like(x)
    k = np.stack([o, -z, y, z, o, -x, -y, x, o], 1).reshape(-1, 3, 3)
    s, c = np.sin(angle)[:, None, None], np.cos(angle)[:, None, None]
    return np.eye(3) + s * k + (1 - c) * (k @ k)


class Body:
    def __init__(self, path):
        data = np.load(path)
        self.template = data["v_template"].astype(float)
        self.faces = data["f"].astype(int)
        self.shapedirs = data["shapedirs"].astype(float)
        self.regressor = data["J_regressor"].astype(float)
        self.weights = data["weights"].astype(float)
        self.parents = data["kintree_table"][0].astype(np.int64).copy()
        self.parents[0] = -1

    def posed(self, betas=(), pose=None):
        b = np.zeros(self.shapedirs.shape[2])
        b[: len(betas)] = betas
        rest = self.template + self.shapedirs @ b
        if pose is None:
            return rest
        joints = self.regressor @ rest
        rotation = rodrigues(pose)
        world = np.zeros((24, 4, 4))
        for j in range(24):
            local = np.eye(4)
            local[:3, :3] = rotation[j]
            parent = self.parents[j]
            local[:3, 3] = joints[j] - (joints[parent] if parent >= 0 else 0)
            world[j] = local if parent < 0 else world[parent] @ local
        world[:, :3, 3] -= np.einsum("jab,jb->ja", world[:, :3, :3], joints)
        blend = np.einsum("vj,jab->vab", self.weights, world)
        return np.einsum("vab,vb->va", blend[:, :3, :3], rest) + blend[:, :3, 3]


def vertex_normals(points, faces):
    a, b, c = (points[faces[:, i]] for i in range(3))
    face = np.cross(b - a, c - a)
    out = np.zeros_like(points)
    for i in range(3):
        np.add.at(out, faces[:, i], face)
    return out / np.maximum(np.linalg.norm(out, axis=1), 1e-20)[:, None]


def occlusion(points, faces, normals, directions=64, cell=0.012):
    """Share of the sky each vertex sees, from depth maps of points scattered over the faces."""
    rng = np.random.default_rng(1)
    a, b, c = (points[faces[:, i]] for i in range(3))
    samples = [points]
    for _ in range(8):
        u = rng.random((len(faces), 2))
        u = np.where((u.sum(1) > 1)[:, None], 1 - u, u)
        samples.append(a + u[:, :1] * (b - a) + u[:, 1:] * (c - a))
    samples = np.concatenate(samples)
    seen, total = np.zeros(len(points)), np.zeros(len(points))
    lifted = points + 0.006 * normals
    for i in range(directions):  # Fibonacci sphere
        z = 1 - (2 * i + 1) / directions
        phi = i * 2.399963
        d = np.array([np.sqrt(1 - z * z) * np.cos(phi), z, np.sqrt(1 - z * z) * np.sin(phi)])
        u = np.cross(d, [0.31, 0.17, 0.94])
        u /= np.linalg.norm(u)
        v = np.cross(d, u)
        low = np.array([(samples @ u).min(), (samples @ v).min()]) - 0.05
        place = ((np.stack([samples @ u, samples @ v], 1) - low) / cell).astype(int)
        width = place.max(0) + 8
        depth = np.full(width[0] * width[1], -1e9)
        np.maximum.at(depth, place[:, 0] * width[1] + place[:, 1], samples @ d)
        at = ((np.stack([lifted @ u, lifted @ v], 1) - low) / cell).astype(int)
        open_sky = lifted @ d > depth[at[:, 0] * width[1] + at[:, 1]] - 0.012
        weight = np.maximum(normals @ d, 0) * (0.75 + 0.25 * d[1])
        seen += weight * open_sky
        total += weight
    return seen / np.maximum(total, 1e-9)


def rasterise(points, faces, attributes, width, height):
    """points [V][3]: x, y in pixels, z larger is nearer. Attributes interpolated where covered."""
    depth = np.full((height, width), -np.inf)
    out = np.zeros((height, width, attributes.shape[1]))
    a, b, c = (points[faces[:, i]] for i in range(3))
    area = (b[:, 0] - a[:, 0]) * (c[:, 1] - a[:, 1]) - (b[:, 1] - a[:, 1]) * (c[:, 0] - a[:, 0])
    for f in np.nonzero(np.abs(area) > 1e-9)[0]:
        p = points[faces[f]]
        x0, y0 = np.floor(p[:, :2].min(0)).astype(int)
        x1, y1 = np.ceil(p[:, :2].max(0)).astype(int) + 1
        x0, y0, x1, y1 = max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)
        if x0 >= x1 or y0 >= y1:
            continue
        x, y = np.arange(x0, x1)[None] + 0.5, np.arange(y0, y1)[:, None] + 0.5
        w1 = ((x - p[0, 0]) * (p[2, 1] - p[0, 1]) - (y - p[0, 1]) * (p[2, 0] - p[0, 0])) / area[f]
        w2 = ((p[1, 0] - p[0, 0]) * (y - p[0, 1]) - (p[1, 1] - p[0, 1]) * (x - p[0, 0])) / area[f]
        w0 = 1 - w1 - w2
        z = w0 * p[0, 2] + w1 * p[1, 2] + w2 * p[2, 2]
        window = depth[y0:y1, x0:x1]
        hit = (w0 >= -1e-6) & (w1 >= -1e-6) & (w2 >= -1e-6) & (z > window)
        if hit.any():
            window[hit] = z[hit]
            w = np.stack([w0[hit], w1[hit], w2[hit]], 1)
            out[y0:y1, x0:x1][hit] = w @ attributes[faces[f]]
    return out, depth


def shade(normal, light):
    """normal [..][3] in the camera's frame (z towards the viewer), light [..] open sky 0..1."""
    normal = normal / np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-9)

    def lambert(direction):
        d = np.array(direction) / np.linalg.norm(direction)
        return np.clip(normal @ d, 0, 1)

    def gloss(direction, power):
        h = np.array(direction) / np.linalg.norm(direction) + [0, 0, 1]
        return np.clip(normal @ (h / np.linalg.norm(h)), 0, 1) ** power

    key, fill = lambert([-0.55, 0.65, 0.62]), lambert([0.8, 0.1, 0.45])
    sky = 0.5 + 0.5 * normal[..., 1]
    rim = (1 - np.clip(normal[..., 2], 0, 1)) ** 3
    warm, cool = np.array([1.0, 0.95, 0.88]), np.array([0.82, 0.90, 1.0])
    light = np.clip(light, 0, 1)
    diffuse = (
        0.86 * (key * (0.35 + 0.65 * light))[..., None] * warm
        + 0.16 * (fill * light)[..., None] * cool
        + (0.34 * light**1.4 * (0.35 + 0.65 * sky))[..., None] * cool
        + 0.05
    )
    colour = SKIN * diffuse + (0.10 * gloss([-0.55, 0.65, 0.62], 22) * light)[..., None]
    return colour + (0.10 * rim * sky * light)[..., None] * cool


def camera(yaw, pitch=0.0):
    cy, sy, cp, sp = np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch)
    return np.array([[1, 0, 0], [0, cp, -sp], [0, sp, cp]]) @ np.array(
        [[cy, 0, -sy], [0, 1, 0], [sy, 0, cy]]
    )


def draw(canvas, points, faces, view, centre, scale, at):
    """Draws one figure: `centre` (in the view) goes to the pixel `at`."""
    normals = vertex_normals(points, faces)
    sky = occlusion(points, faces, normals)
    seen = points @ view.T
    screen = np.stack(
        [at[0] + (seen[:, 0] - centre[0]) * scale, at[1] - (seen[:, 1] - centre[1]) * scale, seen[:, 2]],
        1,
    )
    attributes = np.concatenate([normals @ view.T, sky[:, None]], 1)
    out, depth = rasterise(screen, faces, attributes, canvas.shape[1], canvas.shape[0])
    hit = np.isfinite(depth)
    colour = shade(out[..., :3][hit], out[..., 3][hit])
    canvas[hit] = np.clip(colour, 0, 1) ** (1 / 1.15)


def ground(canvas, points, view, centre, scale, at):
    """A soft contact shadow under the figure."""
    low = points[:, 1].min()
    near = points[points[:, 1] < low + 0.25]
    yy, xx = np.mgrid[0 : canvas.shape[0], 0 : canvas.shape[1]]
    shadow = np.zeros(canvas.shape[:2])
    for p in near[:: max(1, len(near) // 60)]:
        q = view @ np.array([p[0], low, p[2]])
        x, y = at[0] + (q[0] - centre[0]) * scale, at[1] - (q[1] - centre[1]) * scale
        reach = 0.07 + 0.3 * (p[1] - low)
        d2 = ((xx - x) / (reach * scale)) ** 2 + ((yy - y) / (0.22 * reach * scale)) ** 2
        shadow = np.maximum(shadow, np.exp(-2 * d2) * 0.05 / reach * 0.30)
    canvas *= 1 - shadow[..., None]


def background(width, height):
    y = np.linspace(0, 1, height)[:, None, None]
    x = np.linspace(-1, 1, width)[None, :, None]
    return PAPER * (1 - 0.05 * y**2 - 0.03 * x**2)


def save(canvas, path, supersample):
    h, w = canvas.shape[0] // supersample, canvas.shape[1] // supersample
    small = canvas.reshape(h, supersample, w, supersample, 3).mean((1, 3))
    image = Image.fromarray((np.clip(small, 0, 1) * 255 + 0.5).astype(np.uint8))
    image.quantize(256).save(path, optimize=True)  # few hues: a palette halves the file


JOINTS = (
    "pelvis left_hip right_hip spine1 left_knee right_knee spine2 left_ankle right_ankle spine3 "
    "left_foot right_foot neck left_collar right_collar head left_shoulder right_shoulder "
    "left_elbow right_elbow left_wrist right_wrist left_hand right_hand"
).split()


def pose_of(**turns):
    pose = np.zeros((24, 3))
    for name, turn in turns.items():
        pose[JOINTS.index(name)] = turn
    return pose


STANDING = pose_of(
    left_collar=(0, 0, -0.10), right_collar=(0, 0, 0.10),
    left_shoulder=(0.0, -0.12, -1.20), right_shoulder=(0.0, 0.12, 1.20),
    left_elbow=(0, -0.22, 0), right_elbow=(0, 0.22, 0),
)
RUNNING = pose_of(
    pelvis=(0.16, 0.15, 0), spine1=(0.06, -0.14, 0), spine2=(0.04, -0.14, 0), spine3=(0.04, -0.10, 0),
    neck=(-0.10, 0.10, 0), head=(-0.12, 0.08, 0),
    left_hip=(-1.25, 0, 0.05), left_knee=(1.55, 0, 0), left_ankle=(-0.15, 0, 0),
    right_hip=(0.45, 0, -0.02), right_knee=(0.75, 0, 0), right_ankle=(0.55, 0, 0),
    right_foot=(-0.35, 0, 0),
    left_collar=(0, 0.06, -0.10), right_collar=(0, 0.10, 0.10),
    left_shoulder=(0.85, -0.2, -1.15), right_shoulder=(-0.55, 0.35, 1.15),
    left_elbow=(0, -1.50, 0), right_elbow=(0, 1.65, 0),
)


def sheet(body, path, height, supersample=2):
    tall = height * supersample
    scale = tall / 2.02
    figures = [  # shape, pose, yaw, width in metres
        ([], None, 0.0, 1.80),
        ([], STANDING, np.pi / 2, 0.52),
        ([], STANDING, np.pi * 0.86, 0.78),
        ([-0.6, -1.8, 0, 0.6, -0.5, -0.8, 0.6, -1.0, -0.8], STANDING, 0.35, 0.80),
        ([0.2, 0.2, 0.4, -0.8, -0.3, 1.6, 0.2, 2.2, 0.6], STANDING, 0.35, 0.84),
        ([0.0, 2.2, 1.4, 1.0, 1.2, 0, -0.2, -0.8, 0.6], STANDING, 0.35, 0.86),
        ([], RUNNING, 0.95, 1.22),
    ]
    canvas = background(int(sum(f[3] for f in figures) * scale) // supersample * supersample, tall)
    left = 0
    for betas, pose, yaw, width in figures:
        points = body.posed(betas, pose)
        view = camera(yaw, 0.06)
        seen = points @ view.T
        centre = ((seen[:, 0].min() + seen[:, 0].max()) / 2, seen[:, 1].min())
        at = ((left + width / 2) * scale, tall - 0.12 * scale)
        window = canvas[:, int(left * scale) : int((left + width) * scale)]
        local = (at[0] - int(left * scale), at[1])
        ground(window, points, view, centre, scale, local)
        draw(window, points, body.faces, view, centre, scale, local)
        left += width
    save(canvas, path, supersample)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("body", help="body in SMPL's npz layout")
    parser.add_argument("-o", "--output", required=True, help="PNG to write")
    parser.add_argument("--height", type=int, default=560, help="of the picture, in pixels")
    arguments = parser.parse_args()
    sheet(Body(arguments.body), arguments.output, arguments.height)


if __name__ == "__main__":
    main()
