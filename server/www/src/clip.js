// SPDX-License-Identifier: Apache-2.0
// AMASS clips, read in the page: an npz is a zip of npy arrays. Every size in it is checked before it is used.
const RATE = 60;
const BYTES_MAX = 1 << 30;
const FRAMES_MAX = 1e6;
const WANTED = ["poses", "root_orient", "pose_body", "trans", "mocap_framerate", "mocap_frame_rate", "betas"];

const END = 0x06054b50, ENTRY = 0x02014b50, LOCAL = 0x04034b50;

function fail(message) {
  throw new Error(message);
}

async function inflate(bytes, size) {
  if (!("DecompressionStream" in globalThis)) fail("this browser cannot unpack a compressed npz");
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const out = new Uint8Array(size);
  for (let at = 0;;) {
    const { value, done } = await reader.read();
    if (done) return at === size ? out : fail("the npz is damaged");
    if (at + value.length > size) fail("the npz is damaged");
    out.set(value, at);
    at += value.length;
  }
}

function directory(view) {
  let at = view.byteLength - 22;
  while (at >= 0 && at > view.byteLength - 66000 && view.getUint32(at, true) !== END) at--;
  if (at < 0 || view.getUint32(at, true) !== END) fail("this is not an npz");
  const count = view.getUint16(at + 10, true), entries = {};
  at = view.getUint32(at + 16, true);
  for (let i = 0; i < count; i++) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== ENTRY) fail("the npz is damaged");
    const length = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(view.buffer, at + 46, length));
    entries[name] = { method: view.getUint16(at + 10, true), packed: view.getUint32(at + 20, true),
                      size: view.getUint32(at + 24, true), offset: view.getUint32(at + 42, true) };
    at += 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return entries;
}

async function extract(buffer, { method, packed, size, offset }) {
  const view = new DataView(buffer);
  if (size > BYTES_MAX) fail("the npz has an array of more than a gigabyte");
  if (offset + 30 > buffer.byteLength || view.getUint32(offset, true) !== LOCAL) fail("the npz is damaged");
  const start = offset + 30 + view.getUint16(offset + 26, true) + view.getUint16(offset + 28, true);
  if (start + packed > buffer.byteLength) fail("the npz is cut short");
  const bytes = new Uint8Array(buffer, start, packed);
  if (method === 0) return bytes.slice();
  return method === 8 ? inflate(bytes, size) : fail("the npz is packed in an unknown way");
}

const TYPES = { f4: Float32Array, f8: Float64Array, i4: Int32Array, i8: BigInt64Array, u1: Uint8Array };

// { shape, data }, data as numbers in row-major order.
function parseNpy(name, bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || view.getUint32(0) !== 0x934e554d) fail(`${name} is not a numpy array`);
  const wide = bytes[6] > 1, length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const start = (wide ? 12 : 10) + length;
  const header = new TextDecoder().decode(bytes.subarray(wide ? 12 : 10, start));
  const type = /'descr':\s*'[<|]([fiu]\d)'/.exec(header)?.[1], Type = TYPES[type];
  const shape = /'shape':\s*\(([^)]*)\)/.exec(header)?.[1].split(",").filter((part) => part.trim()).map(Number);
  if (!Type || !shape) fail(`${name} is an array of a type that is not read here`);
  if (/'fortran_order':\s*True/.test(header) && shape.length > 1) fail(`${name} is in Fortran's order`);
  const count = shape.reduce((product, size) => product * size, 1);
  if (!(count >= 0) || start + count * Type.BYTES_PER_ELEMENT > bytes.length) fail(`${name} is cut short`);
  const data = new Type(bytes.slice(start, start + count * Type.BYTES_PER_ELEMENT).buffer);
  return { shape, data: type === "i8" ? Float64Array.from(data, Number) : data };
}

function column(arrays, name, width, frames) {
  const array = arrays[name];
  if (!array) fail(`there is no array "${name}": an AMASS clip has poses, trans and mocap_framerate`);
  if (array.shape.length !== 2 || array.shape[1] < width || (frames && array.shape[0] !== frames))
    fail(`${name} has the shape (${array.shape})`);
  return array;
}

// { name, frames, fps, pose [T][66], trans [T][3], betas [<=10] }: at most some 60 frames a second, every n-th of a
// faster clip.
export async function readClip(name, buffer) {
  const entries = directory(new DataView(buffer)), arrays = {};
  for (const wanted of WANTED)
    if (entries[wanted + ".npy"]) arrays[wanted] = parseNpy(wanted, await extract(buffer, entries[wanted + ".npy"]));
  const parts = arrays.poses ? [[column(arrays, "poses", 66), 0, 66]]
    : [[column(arrays, "root_orient", 3), 0, 3], [column(arrays, "pose_body", 63), 3, 63]];
  const total = parts[0][0].shape[0], trans = column(arrays, "trans", 3, total);
  if (parts.some(([array]) => array.shape[0] !== total)) fail("root_orient and pose_body differ in length");
  const rate = Number((arrays.mocap_framerate ?? arrays.mocap_frame_rate)?.data[0] ?? 0);
  if (!(rate >= 1 && rate <= 1000)) fail("there is no mocap_framerate of 1 to 1000");
  if (total < 1 || total > FRAMES_MAX) fail(`the clip has ${total} frames`);
  const stride = Math.max(1, Math.floor(rate / RATE + 0.01)), frames = Math.ceil(total / stride);
  const clip = { name, frames, fps: rate / stride, pose: new Float32Array(66 * frames),
                 trans: new Float32Array(3 * frames), betas: Array.from(arrays.betas?.data.slice(0, 10) ?? [], Number) };
  for (let k = 0; k < frames; k++) {
    for (const [{ shape, data }, at, width] of parts)
      for (let i = 0; i < width; i++) clip.pose[66 * k + at + i] = data[k * stride * shape[1] + i];
    for (let i = 0; i < 3; i++) clip.trans[3 * k + i] = trans.data[k * stride * trans.shape[1] + i];
  }
  if (!clip.pose.every(Number.isFinite) || !clip.trans.every(Number.isFinite)) fail("the clip has values that are not finite");
  return clip;
}
