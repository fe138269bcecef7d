#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the NumPy-made archives that test_npz.c and test_npy.c read: npz_types.npz (stored) and
npz_types_deflated.npz, the same arrays. Needs NumPy. Run it in this folder."""
import io
import zipfile

import numpy as np

numbers = np.array([[0, 1, -2], [3, 100, -128]])
arrays = {
    "scalar": np.float64(120.00004577636719),
    "int_scalar": np.int64(60),
    "text": np.array("female"),
    "text_array": np.array(["m\u00e4\u5973\U0001d11e"]),
    "bytes": np.array(b"male"),
    "empty_text": np.array(""),
    "big_text": np.array("neutral").astype(">U7"),
    "labels": np.array(["LFHD", "RFHD"]),
    "objects": np.array([None, {"a": 1}], dtype=object),
    "record": np.zeros(2, dtype=[("a", "<f4"), ("b", "<i8", (2,))]),
    "complex": np.zeros(2, dtype="<c16"),
    "date": np.zeros(2, dtype="<M8[ns]"),
    "empty": np.zeros((0, 3), dtype="<f4"),
    "flags": np.array([True, False, True]),
    "large": np.array([2**64 - 1], dtype="<u8"),
    "limits": np.array([-(2**63), 2**63 - 1], dtype="<i8"),
    "half_edges": np.array([6.0e-8, 6.1e-5, 65504, -0.0], dtype="<f2"),
    "nan": np.array([[0.0, 1.0], [np.nan, 2.0]], dtype="<f4"),
    "huge": np.array([1e300]),
    "cube": np.asfortranarray(np.arange(24, dtype="<i4").reshape(2, 3, 4)),
}
for code in ["f2", "f4", "f8", "i1", "i2", "i4", "i8"]:
    for order, name in [("<", "little"), (">", "big")]:
        arrays[f"{code}_{name}"] = numbers.astype(order + code)
        arrays[f"{code}_{name}_fortran"] = np.asfortranarray(numbers.astype(order + code))
for code in ["u1", "u2", "u4", "u8"]:
    for order, name in [("<", "little"), (">", "big")]:
        arrays[f"{code}_{name}"] = abs(numbers).astype(order + code)

np.savez("npz_types.npz", **arrays)
np.savez_compressed("npz_types_deflated.npz", **arrays)

# Versions 2 and 3 of the npy format, and an entry that was written to a pipe (data descriptors).
class Pipe(io.RawIOBase):
    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data)
        return len(data)


pipe = Pipe()
with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
    for major in (1, 2, 3):
        with archive.open(f"v{major}.npy", "w", force_zip64=major == 3) as member:
            np.lib.format.write_array(member, np.arange(5.0), version=(major, 0))
    archive.writestr("README.txt", "not an array")
with open("npz_piped.npz", "wb") as out:
    out.write(pipe.data)
