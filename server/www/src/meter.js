// SPDX-License-Identifier: Apache-2.0
// The live numbers of a stream: rates over the last second, round trips of the last frames, a sparkline.
const SAMPLES = 240;

export class Meter {
  constructor(canvas) {
    this.canvas = canvas;
    this.clear();
  }

  clear() {
    this.trips = [];
    this.frames = 0;
    this.bytes = 0;
    this.since = performance.now();
  }

  add(trip, bytes) {
    this.trips.push(trip);
    if (this.trips.length > SAMPLES) this.trips.shift();
    this.frames++;
    this.bytes += bytes;
  }

  // { fps, rate (bytes a second), p50, p99 (ms) } since the last call.
  take() {
    const now = performance.now(), seconds = (now - this.since) / 1000;
    const sorted = [...this.trips].sort((a, b) => a - b);
    const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    const numbers = { fps: this.frames / seconds, rate: this.bytes / seconds, p50: at(0.5), p99: at(0.99) };
    this.frames = this.bytes = 0;
    this.since = now;
    return numbers;
  }

  draw() {
    const { canvas, trips } = this, { width, height } = canvas, context = canvas.getContext("2d");
    const most = Math.max(5, ...trips) * 1.1;
    context.clearRect(0, 0, width, height);
    const line = new Path2D();
    trips.forEach((trip, i) => line.lineTo(width - (trips.length - 1 - i) * width / (SAMPLES - 1), height - 4 - trip / most * (height - 8)));
    context.strokeStyle = "#f2a65a";
    context.lineWidth = 2.5;
    context.lineJoin = "round";
    context.stroke(line);
    context.fillStyle = "#a3adba";
    context.font = "20px system-ui, sans-serif";
    context.fillText(`${most.toFixed(0)} ms`, 8, 24);
  }
}
