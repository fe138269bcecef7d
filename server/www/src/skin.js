// SPDX-License-Identifier: Apache-2.0
// The body in the page: shape, forward kinematics, linear blend skinning, normals. The same mathematics as
// model/body/pose.h; positions are in the z-up world, metres, beside the root.
import { expandLatent } from "../../../proto/js/dsnet.js";

const JOINTS = 24, POSE_JOINTS = 22, WEIGHTS = 4;

// [9] of an axis-angle rotation.
function rotation(pose, joint, out) {
  const [x0, y0, z0] = joint < POSE_JOINTS ? pose.subarray(3 * joint, 3 * joint + 3) : [0, 0, 0];
  const angle = Math.hypot(x0, y0, z0), scale = angle > 1e-12 ? 1 / angle : 0;
  const x = x0 * scale, y = y0 * scale, z = z0 * scale, s = Math.sin(angle), c = Math.cos(angle), d = 1 - c;
  out[0] = c + d * x * x; out[1] = d * x * y - s * z; out[2] = d * x * z + s * y;
  out[3] = d * x * y + s * z; out[4] = c + d * y * y; out[5] = d * y * z - s * x;
  out[6] = d * x * z - s * y; out[7] = d * y * z + s * x; out[8] = c + d * z * z;
}

export class Skin {
  // `body` as parseTensors gives /v1/body, `decoder` likewise or null.
  constructor(body, decoder) {
    this.tensors = body.tensors;
    this.decoder = decoder && { mean: decoder.tensors.mean.data, basis: decoder.tensors.basis.data };
    this.vertices = body.tensors.v_template.shape[0];
    this.shapes = body.tensors.shapedirs.shape[2];
    this.faces = body.tensors.faces.data;
    this.rest = new Float32Array(3 * this.vertices);      // T(betas)
    this.base = this.tensors.posedirs ? new Float32Array(this.rest.length) : this.rest;  // and the pose part
    this.joints = new Float32Array(3 * JOINTS);
    this.transforms = new Float32Array(12 * JOINTS);      // row-major [3][4], rest joint subtracted
    this.displacement = new Float32Array(3 * this.vertices);
    this.rotations = Array.from({ length: JOINTS }, () => new Float32Array(9));
    this.shape([]);
  }

  shape(betas) {
    const { v_template, shapedirs, joints, joint_shapedirs } = this.tensors;
    const apply = (base, directions, out) => {
      for (let i = 0; i < out.length; i++) {
        let sum = base[i];
        for (let k = 0; k < this.shapes; k++) sum += directions[i * this.shapes + k] * (betas[k] ?? 0);
        out[i] = sum;
      }
    };
    apply(v_template.data, shapedirs.data, this.rest);
    apply(joints.data, joint_shapedirs.data, this.joints);
  }

  pose(pose, trans) {
    const parents = this.tensors.parents.data, { joints, rotations, transforms } = this;
    const world = this.world ??= new Float32Array(12 * JOINTS);
    for (let j = 0; j < JOINTS; j++) {
      const local = rotations[j], parent = parents[j];
      rotation(pose, j, local);
      for (let r = 0; r < 3; r++) {
        const at = 12 * j + 4 * r;
        if (parent < 0) {
          for (let c = 0; c < 3; c++) world[at + c] = local[3 * r + c];
          world[at + 3] = joints[r] + trans[r];
          continue;
        }
        const p = 12 * parent + 4 * r;
        for (let c = 0; c < 3; c++)
          world[at + c] = world[p] * local[c] + world[p + 1] * local[3 + c] + world[p + 2] * local[6 + c];
        world[at + 3] = world[p + 3];
        for (let c = 0; c < 3; c++)
          world[at + 3] += world[p + c] * (joints[3 * j + c] - joints[3 * parent + c]);
      }
    }
    for (let j = 0; j < JOINTS; j++)
      for (let r = 0; r < 3; r++) {
        const at = 12 * j + 4 * r;
        let moved = world[at + 3];
        for (let c = 0; c < 3; c++) {
          transforms[at + c] = world[at + c];
          moved -= world[at + c] * joints[3 * j + c];
        }
        transforms[at + 3] = moved;
      }
    this.addPosePart();
  }

  // Pose blend shapes, for bodies that have them: posedirs (R(pose) - I) of joints 1 to 23.
  addPosePart() {
    const directions = this.tensors.posedirs?.data;
    if (!directions) return;
    const columns = 9 * (JOINTS - 1), features = new Float32Array(columns);
    for (let j = 1; j < JOINTS; j++)
      for (let i = 0; i < 9; i++) features[9 * (j - 1) + i] = this.rotations[j][i] - (i % 4 ? 0 : 1);
    for (let i = 0; i < this.base.length; i++) {
      let sum = this.rest[i];
      for (let k = 0; k < columns; k++) sum += directions[i * columns + k] * features[k];
      this.base[i] = sum;
    }
  }

  // The displacement [V][3] of a result frame.
  decode(kind, data) {
    if (kind === "latent") return expandLatent(this.decoder, data, this.displacement);
    this.displacement.set(data);
    return this.displacement;
  }

  // positions [V][3] and normals [V][3] of the posed body with `gain` times the displacement.
  skin(displacement, gain, positions, normals) {
    const { base, transforms: t, vertices } = this;
    const weights = this.tensors.weights.data, indices = this.tensors.weight_joints.data;
    for (let v = 0; v < vertices; v++) {
      const i = 3 * v;
      const x = base[i] + gain * displacement[i], y = base[i + 1] + gain * displacement[i + 1];
      const z = base[i + 2] + gain * displacement[i + 2];
      let px = 0, py = 0, pz = 0;
      for (let k = WEIGHTS * v; k < WEIGHTS * (v + 1); k++) {
        const w = weights[k], m = 12 * indices[k];
        if (!w) continue;
        px += w * (t[m] * x + t[m + 1] * y + t[m + 2] * z + t[m + 3]);
        py += w * (t[m + 4] * x + t[m + 5] * y + t[m + 6] * z + t[m + 7]);
        pz += w * (t[m + 8] * x + t[m + 9] * y + t[m + 10] * z + t[m + 11]);
      }
      positions[i] = px; positions[i + 1] = py; positions[i + 2] = pz;
    }
    this.measureNormals(positions, normals);
  }

  // Area-weighted.
  measureNormals(p, normals) {
    const { faces } = this;
    normals.fill(0);
    for (let f = 0; f < faces.length; f += 3) {
      const a = 3 * faces[f], b = 3 * faces[f + 1], c = 3 * faces[f + 2];
      const ux = p[b] - p[a], uy = p[b + 1] - p[a + 1], uz = p[b + 2] - p[a + 2];
      const vx = p[c] - p[a], vy = p[c + 1] - p[a + 1], vz = p[c + 2] - p[a + 2];
      const x = uy * vz - uz * vy, y = uz * vx - ux * vz, z = ux * vy - uy * vx;
      normals[a] += x; normals[a + 1] += y; normals[a + 2] += z;
      normals[b] += x; normals[b + 1] += y; normals[b + 2] += z;
      normals[c] += x; normals[c + 1] += y; normals[c + 2] += z;
    }
    for (let i = 0; i < normals.length; i += 3) {
      const scale = 1 / Math.max(Math.hypot(normals[i], normals[i + 1], normals[i + 2]), 1e-20);
      normals[i] *= scale; normals[i + 1] *= scale; normals[i + 2] *= scale;
    }
  }
}
