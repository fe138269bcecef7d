// SPDX-License-Identifier: Apache-2.0
// A dsnetd that a test starts and stops, and the packages that run.sh has installed.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

export const load = createRequire(process.env.DSNET_NODE_MODULES);

export class Server {
  // `port` 0 for a free one.
  static async start(args = [], port = 0) {
    const server = new Server();
    server.process = spawn(process.env.DSNETD, ["--port", String(port), ...args],
      { stdio: ["ignore", "pipe", "ignore"], env: { ...process.env, DSNET_DRAIN_GRACE: "0", DSNET_MAX_LATE: "1" } });
    server.ended = new Promise((resolve) => server.process.on("exit", resolve));
    for await (const line of createInterface({ input: server.process.stdout })) {
      server.port = Number(/:(\d+)/.exec(line)[1]);
      break;
    }
    if (!server.port) throw new Error(`dsnetd did not start: ${await server.ended}`);
    server.page = `http://127.0.0.1:${server.port}/`;
    server.stream = `ws://127.0.0.1:${server.port}/v1/stream`;
    while ((await fetch(server.page + "readyz")).status !== 200) await new Promise((resolve) => setTimeout(resolve, 50));
    return server;
  }

  async stop(signal = "SIGTERM") {
    this.process.kill(signal);
    return this.ended;
  }
}
