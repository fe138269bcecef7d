#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the small bodies of test_body, test_pose and test_region, and what those tests compare with.

Needs numpy and scipy. Run in this folder; the files it writes are committed:
  body_smpl.npz    24 joints, float32, 10 shape directions, 207 pose directions, soft_tissue
  body_smplh.npz   52 joints, float64, 16 shape directions, 459 pose directions
  body_golden.npz  inputs, and results in float64 by the textbook formulas below (4x4 matrices down
                   the tree, dense blending, numpy's solver), which share nothing with the library
The bodies are rings of points about SMPL's joints: nobody's shape, but with a front, a back and a
left-right symmetry.
"""
import hashlib

import numpy as np
from scipy.spatial.transform import Rotation

PARENTS = [-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21]
MIRROR = [0, 2, 1, 3, 5, 4, 6, 8, 7, 9, 11, 10, 12, 14, 13, 15, 17, 16, 19, 18, 21, 20, 23, 22]
PLACES = {  # centre and left joints
    0: (0, -.24, -.02), 1: (.07, -.33, -.01), 3: (0, -.12, -.03), 4: (.10, -.71, -.01),
    6: (0, .02, -.01), 7: (.09, -1.12, -.05), 9: (0, .08, .01), 10: (.12, -1.17, .06),
    12: (0, .29, -.02), 13: (.08, .19, -.01), 15: (0, .36, .03), 16: (.17, .23, -.02),
    18: (.43, .21, -.05), 20: (.68, .22, -.05), 22: (.77, .21, -.06)}
TOWARDS = {  # the second ring lies this far along
    0: (0, .05, 0), 1: (.015, -.19, 0), 3: (0, .07, .01), 4: (0, -.2, -.02), 6: (0, .03, .01),
    7: (.01, -.03, .06), 9: (0, .1, -.01), 10: (.01, 0, .05), 12: (0, .04, .02),
    13: (.05, .02, 0), 15: (0, .12, 0), 16: (.13, -.01, -.01), 18: (.12, 0, 0),
    20: (.05, 0, 0), 22: (.06, 0, 0)}
RADII = {0: .15, 1: .09, 3: .13, 4: .06, 6: .13, 7: .04, 9: .14, 10: .03, 12: .06, 13: .07,
         15: .09, 16: .06, 18: .04, 20: .03, 22: .025}
ACROSS = {13, 16, 18, 20, 22}  # arms run along x, everything else along y


def rings():
    """Vertices [V][3], the joint each belongs to, which ring (0 or 1), and the mirrored vertex."""
    points, owner, ring, mirror = [], [], [], []
    for joint in PLACES:
        centre = MIRROR[joint] == joint
        first = len(points)
        for k in range(2):
            for degrees in (45, 135, 225, 315):
                a, b = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
                offset = (0, a, b) if joint in ACROSS else (a, 0, b)
                at = np.array(PLACES[joint]) + k * np.array(TOWARDS[joint])
                points.append(at + RADII[joint] * np.array(offset))
                owner.append(joint)
                ring.append(k)
        count = len(points) - first
        if centre:  # 45 and 135 degrees mirror each other, and so do 225 and 315
            mirror += [first + i - i % 4 + [1, 0, 3, 2][i % 4] for i in range(count)]
            continue
        mirror += [first + count + i for i in range(count)]
        for i in range(count):
            points.append(points[first + i] * (-1, 1, 1))
            owner.append(MIRROR[joint])
            ring.append(ring[first + i])
            mirror.append(first + i)
    return np.array(points), np.array(owner), np.array(ring), np.array(mirror)


def rounded(values, bits):
    return np.round(np.asarray(values) * 2.0**bits) / 2.0**bits


def symmetric_weights(random, owner, mirror, entries):
    """Mostly the own joint, some of its parent, and traces of others up to `entries` in all."""
    weights = np.zeros((len(owner), 24))
    for v in range(len(owner)):
        if mirror[v] < v:
            weights[v] = weights[mirror[v]][MIRROR]
            continue
        own = owner[v]
        weights[v, own] = 0.6 + 0.3 * random.random()
        if PARENTS[own] >= 0:
            weights[v, PARENTS[own]] += 0.3 * random.random()
        for j in random.choice(list(PLACES), entries - 2, replace=False):
            weights[v, j] += 0.03 * random.random()
    return weights / weights.sum(axis=1, keepdims=True)


def regressor(owner, ring):
    rows = np.array([(owner == j) & (ring == 0) for j in range(24)], float)
    return rows / rows.sum(axis=1, keepdims=True)


def sparse(random, shape, density, bits):
    return rounded(random.normal(size=shape) * (random.random(shape) < density) * 0.02, bits)


def smpl(random):
    points, owner, ring, mirror = rings()
    V = len(points)
    weights = symmetric_weights(random, owner, mirror, 7).astype(np.float32)
    kintree = np.array([PARENTS, range(24)]).astype(np.uint32)
    faces = np.array([(i, (i + 1) % V, (i + 2) % V) for i in range(V)], np.uint32)
    return dict(v_template=points.astype(np.float32),
                shapedirs=rounded(random.normal(size=(V, 3, 10)) * 0.01, 14).astype(np.float32),
                posedirs=sparse(random, (V, 3, 207), .05, 12).astype(np.float32),
                J_regressor=regressor(owner, ring).astype(np.float32), weights=weights,
                kintree_table=kintree, f=faces,
                soft_tissue=rounded(random.random(V), 8).astype(np.float32)), mirror


def smplh(random):
    """Five fingers of three joints a hand; joints 22 to 36 left, 37 to 51 right."""
    points, owner, ring, mirror = rings()
    V = len(points)
    parents = PARENTS[:22]
    for wrist in (20, 21):
        for finger in range(5):
            first = len(parents)
            parents += [wrist, first, first + 1]
    weights24 = symmetric_weights(random, owner, mirror, 3)
    weights = np.zeros((V, 52))
    weights[:, :22] = weights24[:, :22]
    for hand, first in ((22, 22), (23, 37)):  # a hand's weight is shared out to its fingers
        share = random.random((V, 15))
        weights[:, first:first + 15] = weights24[:, [hand]] * share / share.sum(1, keepdims=True)
    rows = np.zeros((52, V))
    rows[:22] = regressor(owner, ring)[:22]
    for j in range(22, 52):
        on_hand = np.flatnonzero(owner == (22 if j < 37 else 23))
        rows[j, random.choice(on_hand, 3, replace=False)] = 1 / 3
    faces = np.array([(i, (i + 1) % V, (i + 2) % V) for i in range(V)], np.int32)
    # Values that float32 holds, so that the golden results do not depend on the conversion.
    f32 = lambda a: np.asarray(a).astype(np.float32).astype(np.float64)
    return dict(v_template=f32(points),
                shapedirs=f32(rounded(random.normal(size=(V, 3, 16)) * 0.01, 10)),
                posedirs=f32(sparse(random, (V, 3, 459), .01, 12)), J_regressor=f32(rows),
                weights=f32(weights), kintree_table=np.array([parents, range(52)], np.int64),
                f=faces)


def heaviest(weights, count):
    kept = np.zeros_like(weights)
    for v, row in enumerate(weights):
        order = np.argsort(-row, kind="stable")[:count]
        kept[v, order] = row[order] / row[order].sum()
    return kept


def canonical_hash(body):
    """The bytes that model/body/hash.h lists, for a 24-joint body with pose directions."""
    V, F = len(body["v_template"]), len(body["f"])
    order = np.argsort(-body["weights"], axis=1, kind="stable")[:, :4]
    kept = np.take_along_axis(body["weights"], order, axis=1).astype(np.float64)
    kept = (kept / kept.sum(axis=1, keepdims=True)).astype("<f4")
    digest = hashlib.blake2b(b"dsnet body 1", digest_size=32)
    digest.update(np.array([V, F, body["shapedirs"].shape[2], 207], "<u4").tobytes())
    for name in ("v_template", "shapedirs", "posedirs", "J_regressor"):
        digest.update(body[name].astype("<f4").tobytes())
    digest.update(order.astype(np.uint8).tobytes())
    digest.update(kept.tobytes())
    digest.update(np.array(PARENTS, "<i4").tobytes())
    digest.update(body["f"].astype("<u4").tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


def solve(body, betas, pose, trans, displacement, offset):
    """Everything the library computes, with 4x4 matrices, in float64."""
    a = {name: value.astype(np.float64) for name, value in body.items()}
    parents = body["kintree_table"][0].astype(np.int64)
    J = len(parents)
    B = min(10, a["shapedirs"].shape[2])
    used = np.zeros(B)
    used[:min(B, len(betas))] = betas[:B]
    shaped = a["v_template"] + a["shapedirs"][:, :, :B] @ used
    joints = a["J_regressor"] @ shaped
    turns = np.tile(np.eye(3), (J, 1, 1))
    turns[:22] = Rotation.from_rotvec(pose.astype(np.float64)).as_matrix()
    pose_part = a["posedirs"] @ (turns[1:] - np.eye(3)).reshape(-1)[:a["posedirs"].shape[2]]
    rest = shaped + pose_part
    world = np.zeros((J, 4, 4))
    for j in range(J):
        local = np.eye(4)
        local[:3, :3] = turns[j]
        local[:3, 3] = joints[j] - (joints[parents[j]] if j else 0)
        world[j] = (world[parents[j]] if j else np.eye(4)) @ local
    world[:, :3, 3] += trans
    relative = world.copy()
    relative[:, :3, 3] -= np.einsum("jik,jk->ji", world[:, :3, :3], joints)
    weights = heaviest(a["weights"], 4) if J == 24 else a["weights"]
    blend = np.einsum("vj,jik->vik", weights, relative)
    homogeneous = np.concatenate([rest + displacement, np.ones((len(rest), 1))], axis=1)
    posed = np.einsum("vik,vk->vi", blend, homogeneous)[:, :3]
    target = (posed + offset).astype(np.float32)
    unposed = np.linalg.solve(blend[:, :3, :3], (target - blend[:, :3, 3])[:, :, None])[:, :, 0]
    return dict(shaped=shaped, joints=joints[:24 if J == 24 else 22], rest=rest,
                transforms=relative[:24 if J == 24 else 22, :3],
                posed_joints=world[:24 if J == 24 else 22, :3, 3], posed=posed, target=target,
                unposed=unposed - rest)


def main():
    random = np.random.default_rng(20220107)
    bodies = {}
    bodies["smpl"], mirror = smpl(random)
    bodies["smplh"] = smplh(random)
    golden = {"mirror": mirror.astype(np.int32), "smpl_hash": canonical_hash(bodies["smpl"])}
    f32 = lambda a: np.asarray(a).astype(np.float32)
    for name, body in bodies.items():
        np.savez_compressed(f"body_{name}.npz", **body)
        V = len(body["v_template"])
        cases = {
            "mild": (random.normal(size=10), random.normal(size=(22, 3)) * .3, (.3, -.2, .9)),
            "wild": (random.normal(size=10) * 3, random.normal(size=(22, 3)) * 1.5, (-1, .5, .2)),
            "few_betas": (random.normal(size=4), random.normal(size=(22, 3)) * .1, (0, 0, 0)),
        }
        for case, (betas, pose, trans) in cases.items():
            inputs = dict(betas=f32(rounded(betas, 10)), pose=f32(rounded(pose, 12)),
                          trans=f32(trans), displacement=f32(rounded(random.normal(size=(V, 3)) * .01, 16)))
            offset = rounded(random.normal(size=(V, 3)) * .01, 16)
            results = solve(body, *(inputs[k] for k in ("betas", "pose", "trans", "displacement")),
                            offset)
            for key, value in {**inputs, **results}.items():
                golden[f"{name}_{case}_{key}"] = value
    np.savez_compressed("body_golden.npz", **golden)


if __name__ == "__main__":
    main()
