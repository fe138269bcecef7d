// SPDX-License-Identifier: Apache-2.0
// proto/js/dsnet.js in Node against a real dsnetd.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { connect, decodeFrame, DsnetError, encodePose, explain, fetchTensors } from "../../proto/js/dsnet.js";
import { Skin } from "../../server/www/src/skin.js";
import { load, Server } from "./server.mjs";

const { WebSocket } = load("ws");
const FRAMES = 90;
let server;

before(async () => { server = await Server.start(["--threads", "1"]); });
after(async () => { assert.equal(await server.stop(), 0); });

function pose(k) { // hops on the spot, arms swinging
  const pose = new Float32Array(66);
  pose[0] = Math.PI / 2;
  pose[16 * 3] = pose[17 * 3] = Math.sin(k / 5);
  return [pose, [0, 0, 0.95 + 0.1 * Math.abs(Math.sin(k / 6))]];
}

async function stream(options = {}, frames = FRAMES, url = server.stream) {
  const results = [];
  const stream = await connect(url, { WebSocket, ...options, onframe: (frame) => results.push(frame) });
  for (let k = 0; k < frames; k++) stream.sendPose(...pose(k));
  await stream.drained();
  return { stream, results };
}

const far = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);

test("every pose is answered in order, and the encodings agree", async () => {
  const { stream: f32, results } = await stream({ betas: [1, 2] });
  assert.deepEqual(results.map((frame) => frame.seq), [...Array(FRAMES).keys()]);
  assert.equal(results[5].timestamp, 5 / 60);
  assert.equal(results[0].data.length, 3 * f32.opened.vertices);
  const largest = results.at(-1).data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  assert.ok(largest > 1e-3, `only ${largest} m`);
  for (const [encoding, error] of [["f16", largest / 1024], ["i16", largest / 32767]]) {
    const other = await stream({ betas: [1, 2], encoding });
    assert.ok(far(results.at(-1).data, other.results.at(-1).data) <= error, encoding);
    assert.ok(other.results[0].bytes < 0.51 * results[0].bytes);
    other.stream.close();
  }
  f32.close();
});

test("latents expanded and skinned here are the server's displacements and vertices", async () => {
  const [body, decoder] = await Promise.all(["v1/body", "v1/models/default/decoder"].map((path) => fetchTensors(server.page + path)));
  const skin = new Skin(body, decoder), betas = [1, 2, -1, 0.5];
  const got = {};
  for (const output of ["latent", "displacement", "vertices"]) {
    const { stream: one, results } = await stream({ betas, output });
    got[output] = results.at(-1).data;
    one.close();
  }
  skin.shape(betas);
  skin.pose(...pose(FRAMES - 1));
  const displacement = skin.decode("latent", got.latent), positions = new Float32Array(displacement.length);
  const normals = new Float32Array(displacement.length);
  assert.ok(far(displacement, got.displacement) < 1e-6);
  skin.skin(displacement, 1, positions, normals);
  assert.ok(far(positions, got.vertices) < 1e-5, `${far(positions, got.vertices)} m`);
  for (let i = 0; i < normals.length; i += 3)
    assert.ok(Math.abs(Math.hypot(...normals.subarray(i, i + 3)) - 1) < 1e-4);
});

test("a shape sent midway is that of the poses after it", async () => {
  const { stream: one, results } = await stream({ betas: [0, 2] }, 3);
  const changed = [];
  const two = await connect(server.stream, { WebSocket, onframe: (frame) => changed.push(frame) });
  two.shape([0, 2]);
  for (let k = 0; k < 3; k++) two.sendPose(...pose(k));
  await two.drained();
  assert.equal(far(results[2].data, changed[2].data), 0);
  assert.ok(await two.ping() >= 0);
  assert.equal((await two.stats()).frames_in, 3);
  one.close();
  two.close();
});

test("a checkpoint's token goes on where it was taken", async () => {
  const { stream: whole, results } = await stream();
  const { stream: first } = await stream({}, 40);
  const { seq, token } = await first.checkpoint();
  assert.equal(seq, 39);
  first.close();
  const rest = [];
  const second = await connect(server.stream, { WebSocket, resume: token, resumeSeq: seq,
                                                onframe: (frame) => rest.push(frame) });
  for (let k = 40; k < FRAMES; k++) assert.equal(second.sendPose(...pose(k)), k);
  await second.drained();
  assert.equal(far(rest.at(-1).data, results.at(-1).data), 0);
  second.close();
  whole.close();
});

for (const signal of ["SIGTERM", "SIGKILL"])
  test(`a stream outlives a restart of its server (${signal}) without a difference`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "dsnet-"));
    const key = join(folder, "key");
    writeFileSync(key, Buffer.alloc(32, 7), { mode: 0o600 });
    const args = ["--threads", "1", "--state-key-file", key];
    let replica = await Server.start(args);
    const { port } = replica;
    const { stream: whole, results } = await stream();
    const again = [], states = [];
    const lasting = await connect(replica.stream, { WebSocket, reconnect: 60, checkpointEvery: 20,
      onframe: (frame) => again.push(frame), onstate: (state) => states.push(state) });
    for (let k = 0; k < 50; k++) lasting.sendPose(...pose(k));
    await lasting.drained();
    await replica.stop(signal);
    for (let k = 50; k < FRAMES; k++) lasting.sendPose(...pose(k)); // into the void, kept
    replica = await Server.start(args, port);
    await lasting.drained();
    assert.deepEqual(again.map((frame) => frame.seq), [...Array(FRAMES).keys()]);
    assert.equal(far(again.at(-1).data, results.at(-1).data), 0);
    assert.equal(lasting.reconnects, 1);
    assert.ok(states.includes("waiting"));
    lasting.close();
    whole.close();
    await replica.stop();
    rmSync(folder, { recursive: true });
  });

test("the README's example runs", async () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const folder = mkdtempSync(join(tmpdir(), "dsnet-")), path = join(folder, "example.mjs");
  const example = /```js\n(.*?)```/s.exec(readme)[1].replace("127.0.0.1:8080", `127.0.0.1:${server.port}`)
    .replace("./proto/js/dsnet.js", new URL("../../proto/js/dsnet.js", import.meta.url).href);
  const old = `import { createRequire } from "node:module";
    globalThis.WebSocket ??= createRequire(process.env.DSNET_NODE_MODULES)("ws").WebSocket;\n`;
  writeFileSync(path, old + example);
  const { stdout } = await promisify(execFile)(process.execPath, [path]);
  assert.match(stdout, /^\d+ vertices, [1-9]\d*\.\d+ mm at most\n$/);
  rmSync(folder, { recursive: true });
});

test("refusals carry the protocol's codes", async () => {
  await assert.rejects(connect(server.stream, { WebSocket, model: "nobody" }), { code: "no_model" });
  await assert.rejects(connect(server.stream, { WebSocket, resume: "AAAA" }), { code: "bad_token" });
  const refused = [];
  const bad = await connect(server.stream, { WebSocket, onrefused: (error) => refused.push(error) });
  bad.sendPose(new Float32Array(66).fill(NaN), [0, 0, 1]);
  bad.sendPose(...pose(0));
  await bad.drained();
  assert.deepEqual(refused.map(({ seq, code }) => [seq, code]), [[0, "not_finite"]]);
  bad.close();
});

test("a server that is full, or gone, is told apart", async () => {
  const full = await Server.start(["--threads", "1", "--max-sessions", "1"]);
  const only = await connect(full.stream, { WebSocket });
  await assert.rejects(connect(full.stream, { WebSocket }), { code: "unreachable" });
  assert.equal((await explain(full.stream)).code, "full");
  const waiting = only.drained();
  only.sendPose(...pose(0));
  const lost = assert.rejects(only.drained(), { code: "closed" });
  await waiting;
  only.close();
  await lost;
  await full.stop();
  assert.equal((await explain(full.stream)).code, "gone");
});

test("frames that are none are refused", () => {
  assert.throws(() => decodeFrame(new ArrayBuffer(15)), DsnetError);
  assert.throws(() => decodeFrame(encodePose(0, 0, new Float32Array(66), [0, 0, 0])), { code: "bad_kind" });
  assert.throws(() => decodeFrame(new Uint8Array([2, 0, ...Array(17).fill(0)]).buffer), { code: "bad_size" });
});
