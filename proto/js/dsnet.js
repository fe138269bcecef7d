// SPDX-License-Identifier: Apache-2.0
// The client of a dsnetd stream for JavaScript: an ES module without dependencies, for browsers, workers, and
// Node (before Node 22, which has a WebSocket of its own, hand one over as `options.WebSocket`).
//
//   import { connect } from "./dsnet.js";
//   const stream = await connect("ws://127.0.0.1:8080/v1/stream", {
//     betas: [0.5, -1], reconnect: true,
//     onframe: ({ seq, data }) => { ... },        // Float32Array [V][3], metres, rest space of the shaped body
//   });
//   stream.sendPose(pose, trans);                 // [22][3] axis-angle radians, [3] metres; z-up unless up: "y"
//   await stream.drained();                       // every pose has been answered
//   stream.close();
//
// The protocol is described by proto/asyncapi.yaml; member names of options that go into the `open` message are
// those of that document in camel case.

const SUBPROTOCOL = "dsnet.v1";
const HEADER_SIZE = 16;
const KIND_POSE = 1;
const KINDS = { 2: "displacement", 3: "vertices", 4: "latent" };
const ENCODINGS = ["f32", "f16", "i16"];
const LOG_MAX = 4096; // poses and messages kept for a resume

// What the server or the connection refused. `code` is one of the protocol's error codes, or "closed" (with
// `closeCode`, of RFC 6455) or "unreachable".
export class DsnetError extends Error {
  constructor(code, message, closeCode = 0) {
    super(message);
    this.name = "DsnetError";
    this.code = code;
    this.closeCode = closeCode;
  }
}

// Frames -----------------------------------------------------------------------------------------------------

// The bytes of a pose frame. `pose` [joints][3] radians with 22 to 55 joints, `trans` [3] metres.
export function encodePose(seq, timestamp, pose, trans) {
  const message = new ArrayBuffer(HEADER_SIZE + 4 * (pose.length + 3));
  const view = new DataView(message);
  view.setUint8(0, KIND_POSE);
  view.setUint16(2, pose.length / 3, true);
  view.setUint32(4, seq, true);
  view.setFloat64(8, timestamp, true);
  for (let i = 0; i < pose.length; i++) view.setFloat32(HEADER_SIZE + 4 * i, pose[i], true);
  for (let i = 0; i < 3; i++) view.setFloat32(HEADER_SIZE + 4 * (pose.length + i), trans[i], true);
  return message;
}

let halves; // the value of each of the 65536 IEEE 754 halves

function halfTable() {
  halves = new Float32Array(65536);
  for (let i = 0; i < 65536; i++) {
    const exponent = (i >> 10) & 31, mantissa = i & 1023;
    const magnitude = exponent === 0 ? mantissa * 2 ** -24
      : exponent === 31 ? (mantissa ? NaN : Infinity)
      : (1024 + mantissa) * 2 ** (exponent - 25);
    halves[i] = i & 0x8000 ? -magnitude : magnitude;
  }
  return halves;
}

// The numbers of `count` halves from a Uint16Array.
export function decodeHalves(from, out = new Float32Array(from.length)) {
  const table = halves ?? halfTable();
  for (let i = 0; i < from.length; i++) out[i] = table[from[i]];
  return out;
}

// { seq, timestamp, kind, encoding, data, bytes } of a result frame: `data` is a Float32Array whatever the
// encoding, over the message itself for f32. Throws DsnetError for what is no result frame.
export function decodeFrame(buffer) {
  if (buffer.byteLength < HEADER_SIZE) throw new DsnetError("bad_size", "a result frame is 16 bytes long at least");
  const view = new DataView(buffer);
  const kind = KINDS[view.getUint8(0)], encoding = ENCODINGS[view.getUint8(1)];
  if (!kind || !encoding) throw new DsnetError("bad_kind", "the server sent a frame of an unknown kind or encoding");
  const body = encoding === "i16" ? HEADER_SIZE + 4 : HEADER_SIZE, width = encoding === "f32" ? 4 : 2;
  if (buffer.byteLength < body || (buffer.byteLength - body) % width)
    throw new DsnetError("bad_size", "the server sent a frame of an odd size");
  let data;
  if (encoding === "f32") {
    data = new Float32Array(buffer, HEADER_SIZE);
  } else if (encoding === "f16") {
    data = decodeHalves(new Uint16Array(buffer, HEADER_SIZE));
  } else {
    const scale = view.getFloat32(HEADER_SIZE, true), steps = new Int16Array(buffer, body);
    data = new Float32Array(steps.length);
    for (let i = 0; i < steps.length; i++) data[i] = steps[i] * scale;
  }
  return { seq: view.getUint32(4, true), timestamp: view.getFloat64(8, true), kind, encoding, data,
           bytes: buffer.byteLength };
}

// What a latent client needs ---------------------------------------------------------------------------------

// Reads a safetensors file as /v1/body and /v1/models/NAME/decoder give it: { metadata, tensors: { name: { shape,
// data } } }, with F16 as Float32Array. `metadata` is the JSON document that is described there.
export function parseTensors(buffer) {
  const view = new DataView(buffer), length = Number(view.getBigUint64(0, true)), start = 8 + length;
  if (start > buffer.byteLength) throw new DsnetError("bad_size", "the safetensors file ends in its header");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const types = { F32: Float32Array, F16: Uint16Array, U32: Uint32Array, I32: Int32Array, U8: Uint8Array };
  const file = { metadata: JSON.parse(header.__metadata__?.dsnet ?? "{}"), tensors: {} };
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const { dtype, shape, data_offsets: [from, to] } = entry;
    if (!types[dtype]) throw new DsnetError("unsupported", `tensor ${name} is of type ${dtype}`);
    const array = new types[dtype](buffer.slice(start + from, start + to));
    file.tensors[name] = { shape, data: dtype === "F16" ? decodeHalves(array) : array };
  }
  return file;
}

export async function fetchTensors(url) {
  const answer = await fetch(url);
  if (!answer.ok) throw new DsnetError("unreachable", `${url} answered ${answer.status}`);
  return parseTensors(await answer.arrayBuffer());
}

// displacement [V][3] = mean [V][3] + basis [V][3][Z] latent [Z], metres.
export function expandLatent({ mean, basis }, latent, out = new Float32Array(mean.length)) {
  const size = latent.length;
  for (let i = 0, k = 0; i < out.length; i++) {
    let sum = mean[i];
    for (let z = 0; z < size; z++, k++) sum += basis[k] * latent[z];
    out[i] = sum;
  }
  return out;
}

// Streams ----------------------------------------------------------------------------------------------------

const DEFAULTS = {
  model: "default", betas: [], fps: 60, up: "z", output: "displacement", encoding: "f32", delivery: "all",
  checkpointEvery: 0,
  resume: null,        // a token of a checkpoint, and `resumeSeq`, the frame it is of
  resumeSeq: -1,
  reconnect: false,    // true, or the seconds for which it is tried, 60 with true
  onframe: null,       // (frame) as decodeFrame gives it
  onrefused: null,     // (DsnetError with seq) a frame or message that the server could not use
  oncheckpoint: null,  // ({ seq, token })
  onstate: null,       // ("open" | "waiting" | "closed", DsnetError or null)
  WebSocket: null,
};

// Opens a session. Rejects with a DsnetError when it is refused; `reconnect` is for those that were open once.
// With `reconnect` checkpoints are asked for every second unless `checkpointEvery` says otherwise.
export async function connect(url, options = {}) {
  const stream = new Stream(url, { ...DEFAULTS, ...options });
  await stream._open();
  return stream;
}

class Stream {
  constructor(url, options) {
    this.url = url;
    this.options = options;
    this.state = "connecting";
    this.opened = null;       // the server's opened message
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.reconnects = 0;
    // What a lost connection goes on from: { seq, token }, or null when there is none or its token was refused.
    this.lastCheckpoint = options.resume ? { seq: options.resumeSeq, token: options.resume } : null;
    this.nextSeq = options.resumeSeq + 1;
    this.answered = options.resumeSeq;  // the last seq that has been answered
    this.log = [];            // what went out after the last checkpoint: { seq, data }; seq -1 for text
    this.questions = [];      // { type, resolve, reject } in order
    this.waiters = [];        // of drained()
    if (options.reconnect && !options.checkpointEvery) options.checkpointEvery = Math.round(options.fps);
  }

  // Sends a pose and returns its seq. The timestamp, seconds, goes up by 1 / fps with every pose unless one is given.
  sendPose(pose, trans, timestamp = this.nextSeq / this.options.fps) {
    if (this.state === "closed") throw new DsnetError("closed", "the stream is closed");
    const seq = this.nextSeq++;
    this._send(encodePose(seq, timestamp, pose, trans), seq);
    return seq;
  }

  // The poses that follow are of this shape.
  shape(betas) {
    this.options.betas = [...betas];
    this._send(JSON.stringify({ type: "shape", betas: this.options.betas }), -1);
  }

  // The next pose starts the sequence anew.
  reset() {
    this._send(JSON.stringify({ type: "reset" }), -1);
  }

  // { frames_in, skipped, ... } as the protocol's stats message has it.
  stats() { return this._ask("stats"); }

  // Milliseconds to the server and back, past the results that wait.
  async ping() {
    const start = performance.now();
    await this._ask("pong", "ping");
    return performance.now() - start;
  }

  // The state after the poses sent so far, sealed: { seq, token } for the options resume and resumeSeq.
  checkpoint() { return this._ask("checkpoint"); }

  // Poses that have not been answered.
  get inFlight() { return this.nextSeq - 1 - this.answered; }

  // Resolves when there are none.
  drained() {
    if (!this.inFlight) return Promise.resolve();
    return new Promise((resolve, reject) => this.waiters.push({ resolve, reject }));
  }

  close() {
    this._end(new DsnetError("closed", "the stream was closed", 1000));
    this.socket?.close(1000);
  }

  // Inside ---------------------------------------------------------------------------------------------------

  _setState(state, error = null) {
    if (this.state === state && !error) return;
    this.state = state;
    this.options.onstate?.(state, error);
  }

  _send(data, seq) {
    const keep = this.options.reconnect !== false;
    if (keep) {
      this.log.push({ seq, data });
      if (this.log.length > LOG_MAX) this.log.shift();
    }
    if (this.state === "open") this._write(data);
  }

  _write(data) {
    this.bytesOut += typeof data === "string" ? data.length : data.byteLength;
    this.socket.send(data);
  }

  _ask(type, question = type) {
    if (this.state !== "open") return Promise.reject(new DsnetError("closed", "the stream is not connected"));
    return new Promise((resolve, reject) => {
      this.questions.push({ type, resolve, reject });
      this._write(JSON.stringify({ type: question }));
    });
  }

  // One socket, up to its opened message.
  _open() {
    const Socket = this.options.WebSocket ?? globalThis.WebSocket;
    if (!Socket) throw new DsnetError("unsupported", "there is no WebSocket here: give one as options.WebSocket");
    return new Promise((resolve, reject) => {
      const socket = new Socket(this.url, SUBPROTOCOL);
      const { model, betas, fps, up, output, encoding, delivery } = this.options;
      let open = false;
      socket.binaryType = "arraybuffer";
      socket.onopen = () => socket.send(JSON.stringify({
        type: "open", model, betas: [...betas], fps, up, output, encoding, delivery,
        checkpoint_every: this.options.checkpointEvery,
        ...(this.lastCheckpoint && { resume: this.lastCheckpoint.token }),
      }));
      socket.onerror = () => {}; // a close follows, and tells as much
      socket.onclose = ({ code, reason }) => {
        const error = open || code !== 1006
          ? new DsnetError("closed", reason || `the connection was closed (${code})`, code)
          : new DsnetError("unreachable", "the server does not accept the connection", code);
        if (!open) reject(error);
        else if (this.socket === socket) this._lost(error);
      };
      socket.onmessage = ({ data }) => {
        if (open) return this._take(data);
        const message = typeof data === "string" ? JSON.parse(data) : { code: "bad_type", message: "a frame" };
        if (message.type === "keepalive") return;
        if (message.type !== "opened") {
          reject(new DsnetError(message.code, message.message));
          socket.close(1000);
          return;
        }
        if (this.state === "closed") return socket.close(1000);
        open = true;
        this.socket = socket;
        this.opened = message;
        // What the server may not have seen. Results that have come already come again, and are dropped.
        for (const entry of this.log) this._write(entry.data);
        this._setState("open");
        resolve(this);
      };
    });
  }

  _take(data) {
    if (typeof data === "string") {
      this.bytesIn += data.length;
      return this._takeText(JSON.parse(data));
    }
    this.bytesIn += data.byteLength;
    const frame = decodeFrame(data);
    if (frame.seq <= this.answered) return; // came before the connection was lost
    this._answer(frame.seq);
    this.options.onframe?.(frame);
  }

  _takeText(message) {
    if (message.type === "checkpoint") this._takeCheckpoint(message);
    if (message.type === "error") {
      const error = new DsnetError(message.code, message.message);
      error.seq = message.seq ?? -1;
      if (error.seq >= 0 && error.seq <= this.answered) return;
      if (error.seq >= 0) this._answer(error.seq);
      else this.questions.shift()?.reject(error);
      this.options.onrefused?.(error);
      return;
    }
    const at = this.questions.findIndex((question) => question.type === message.type);
    if (at >= 0) this.questions.splice(at, 1)[0].resolve(message);
  }

  _takeCheckpoint({ seq, token }) {
    this.lastCheckpoint = { seq, token };
    const last = this.log.findIndex((entry) => entry.seq === seq);
    if (last >= 0) this.log.splice(0, last + 1);
    this.options.oncheckpoint?.(this.lastCheckpoint);
  }

  _answer(seq) {
    this.answered = seq;
    if (!this.inFlight) for (const waiter of this.waiters.splice(0)) waiter.resolve();
  }

  async _lost(error) {
    for (const question of this.questions.splice(0)) question.reject(error);
    if (this.state === "closed") return;
    if (!this.options.reconnect) return this._end(error);
    const seconds = this.options.reconnect === true ? 60 : this.options.reconnect;
    const end = performance.now() + 1000 * seconds;
    this._setState("waiting", error);
    for (let pause = 100; performance.now() < end && this.state === "waiting"; pause = Math.min(2 * pause, 3000)) {
      await new Promise((resolve) => setTimeout(resolve, pause * (0.5 + Math.random())));
      if (this.state !== "waiting") return;
      try {
        await this._open();
        this.reconnects++;
        return;
      } catch (refused) {
        error = refused;
        // A token that no key opens means starting anew with what is still there.
        if (/_token$|^wrong_model$/.test(refused.code)) this.lastCheckpoint = null;
        else if (!/^(closed|unreachable|overloaded|internal)$/.test(refused.code)) break;
        this.options.onstate?.("waiting", refused);
      }
    }
    this._end(error);
  }

  _end(error) {
    if (this.state === "closed") return;
    this._setState("closed", error);
    for (const waiter of this.waiters.splice(0)) waiter.reject(error);
  }
}

// Why a stream cannot be had, for people: browsers tell a page nothing about a refused handshake. Asks the server's
// other addresses: { code: "gone" | "not_ready" | "full", message }.
export async function explain(url) {
  const base = new URL("/readyz", url.replace(/^ws/, "http"));
  try {
    const answer = await fetch(base, { cache: "no-store" });
    if (answer.ok)
      return { code: "full", message: "The server runs, but takes no further session: it is at a limit." };
    return { code: "not_ready", message: "The server is starting or shutting down." };
  } catch {
    return { code: "gone", message: "The server cannot be reached." };
  }
}
