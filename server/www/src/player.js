// SPDX-License-Identifier: Apache-2.0
// Plays a clip through a stream: sends its poses as their time comes and matches results with the poses they are of.
// Changing the clip or the encoding opens another session, which takes over with its first result.
import { connect } from "../../../proto/js/dsnet.js";

const IN_FLIGHT_MAX = 24;
const BURST_MAX = 8;        // poses sent for one picture; time is let go rather than caught up
const RECONNECT_SECONDS = 900;

export class Player {
  // `on`: { frame({ frame, pose, trans, betas, index, trip }), state(state, error, resumed), refused(error) }
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.playing = true;
    this.speed = 1;
    this.clip = null;
    this.betas = [];
    this.model = "default";
    this.encoding = "latent";
    this.stream = null;
    this.generation = 0;
    this.stopAt = Infinity;
  }

  // Resolves when the session is open.
  async open() {
    const generation = ++this.generation, latent = this.encoding === "latent";
    const pending = new Map();
    const stream = await connect(this.url, {
      model: this.model, betas: this.betas, fps: this.clip.fps, delivery: "latest", reconnect: RECONNECT_SECONDS,
      output: latent ? "latent" : "displacement", encoding: latent ? "f32" : this.encoding,
      onframe: (frame) => this.take(frame, pending),
      onrefused: (error) => this.on.refused(error),
      onstate: (state, error) => {
        if (generation !== this.generation) return;
        if (state === "open" && this.stream) pending.forEach((entry) => { entry.late = true; });
        this.on.state(state, error, this.stream?.lastCheckpoint != null);
      },
    });
    if (generation !== this.generation) return stream.close();
    this.stream?.close();
    this.stream = stream;
    this.pending = pending;
    this.position = this.next = 0;
    this.shaped = this.betas;
  }

  take(frame, pending) {
    const entry = pending.get(frame.seq);
    for (const seq of pending.keys()) if (seq <= frame.seq) pending.delete(seq); else break;
    if (entry && pending === this.pending)
      this.on.frame({ frame, ...entry, trip: entry.late ? null : performance.now() - entry.sent });
  }

  close() {
    this.generation++;
    this.stream?.close();
    this.stream = null;
  }

  get connected() { return this.stream?.state === "open"; }

  restart() {
    if (!this.connected) return;
    this.stream.reset();
    this.position = this.next = 0;
  }

  // Sends the poses whose time has come since the last call, `seconds` ago.
  advance(seconds) {
    if (!this.connected || !this.playing) return;
    const due = this.position + Math.min(seconds, 0.1) * this.clip.fps * this.speed;
    for (let burst = 0; this.next <= due && burst < BURST_MAX; burst++) if (!this.step()) break;
    this.position = Math.min(due, this.next);
    if (this.next > this.stopAt) {
      this.playing = false;
      this.stopAt = Infinity;
    }
  }

  // One pose. False when too many are unanswered.
  step() {
    if (!this.connected || this.stream.inFlight >= IN_FLIGHT_MAX || this.next > this.stopAt) return false;
    if (this.shaped !== this.betas) this.stream.shape(this.shaped = this.betas);
    if (this.next >= this.clip.frames) this.restart();
    const index = this.next++;
    const pose = this.clip.pose.subarray(66 * index, 66 * index + 66);
    const trans = this.clip.trans.subarray(3 * index, 3 * index + 3);
    const seq = this.stream.sendPose(pose, trans);
    this.pending.set(seq, { pose, trans, betas: this.betas, index, sent: performance.now(), late: false });
    this.position = Math.max(this.position, index);
    return true;
  }
}
