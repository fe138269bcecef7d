#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the NumPy-made clips that test_clip.c reads, one archive for each variant of the AMASS layout.
All hold the same three frames: pose value = frame + column / 1000, trans = (frame, 2 frame, 1).
Needs NumPy. Run it in this folder."""
import numpy as np

N = 3


def columns(count, dtype="<f8"):
    return (np.arange(N)[:, None] + np.arange(count)[None, :] / 1000).astype(dtype)


poses = columns(156)
trans = np.stack([np.arange(N), 2 * np.arange(N), np.ones(N)], axis=1)
betas = np.arange(16) / 10

# AMASS's SMPL-H releases: float64, deflated or not, with soft-tissue coefficients and markers.
np.savez(
    "clip_smplh.npz", trans=trans, gender=np.array("female"), mocap_framerate=np.float64(120.00004577636719),
    betas=betas, dmpls=np.zeros((N, 8)), poses=poses, marker_data=np.full((N, 4, 3), np.nan),
    marker_labels=np.array(["LFHD", "RFHD"]), meta=np.array([{"a": 1}, None], dtype=object))
np.savez_compressed("clip_float32.npz", poses=poses.astype("<f4"), trans=trans.astype("<f4"),
                    mocap_framerate=np.int64(60), gender=np.array(b"male", dtype="S6"), betas=betas[:10])
# SMPL's 24 joints, in Fortran order and without betas and gender.
np.savez("clip_smpl.npz", poses=np.asfortranarray(columns(72)), trans=np.asfortranarray(trans),
         mocap_framerate=np.array([30]))
# 24 joints as a tensor, big-endian; shape as one row of 300; a gender that is None.
np.savez_compressed("clip_tensor.npz", poses=columns(72).reshape(N, 24, 3).astype(">f4"), trans=trans.astype(">f8"),
                    mocap_framerate=np.float32(59.94), betas=np.pad(betas, (0, 284))[None], gender=None)
# SMPL-X releases: 55 joints, also in parts, and the other spelling of the rate.
np.savez_compressed("clip_smplx.npz", poses=columns(165), root_orient=columns(165)[:, :3] + 9, pose_body=columns(165)[:, 3:66] + 9,
                    trans=trans, mocap_frame_rate=np.float64(120), gender=np.array("neutral"), betas=betas,
                    surface_model_type=np.array("smplx"), num_betas=np.int64(16))
np.savez_compressed("clip_parts.npz", root_orient=columns(66)[:, :3], pose_body=columns(66)[:, 3:], trans=trans,
                    mocap_frame_rate=np.float64(120), gender=np.array("neutral"), betas=betas)
