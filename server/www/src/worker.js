// SPDX-License-Identifier: Apache-2.0
// Expands latents and skins the body away from the page's own thread: takes result frames, gives what is drawn.
// Buffers go back and forth, so that a frame allocates nothing.
import { Skin } from "./skin.js";

let skin;
const spare = [];

function buffers() {
  const size = 3 * skin.vertices;
  return spare.pop() ?? { bare: new Float32Array(size), bareNormals: new Float32Array(size),
                          moved: new Float32Array(size), movedNormals: new Float32Array(size),
                          magnitude: new Float32Array(skin.vertices) };
}

const zero = (displacement) => (zero.of ??= new Float32Array(displacement.length));

// What one vertex in fifty exceeds, to a millimetre.
function quantile(magnitude) {
  const counts = quantile.counts ??= new Uint32Array(256);
  counts.fill(0);
  for (const length of magnitude) counts[Math.min(255, Math.floor(1000 * length))]++;
  let left = magnitude.length / 50, bin = 255;
  while (bin > 0 && (left -= counts[bin]) > 0) bin--;
  return (bin + 1) / 1000;
}

function take({ id, frame, pose, trans, betas, gain }) {
  const out = buffers();
  if (betas) skin.shape(betas);
  skin.pose(pose, trans);
  const displacement = skin.decode(frame.kind, frame.data);
  skin.skin(zero(displacement), 0, out.bare, out.bareNormals);
  skin.skin(displacement, gain, out.moved, out.movedNormals);
  let peak = 0;
  for (let v = 0; v < skin.vertices; v++) {
    const length = Math.hypot(displacement[3 * v], displacement[3 * v + 1], displacement[3 * v + 2]);
    out.magnitude[v] = length;
    if (length > peak) peak = length;
  }
  postMessage({ id, peak, high: quantile(out.magnitude), out }, Object.values(out).map((array) => array.buffer));
}

onmessage = ({ data }) => {
  if (data.type === "body") skin = new Skin(data.body, data.decoder);
  else if (data.type === "spare") spare.push(data.out);
  else take(data);
};
