// SPDX-License-Identifier: Apache-2.0
// The page in a real browser: headless Chromium, whose WebGL is a software renderer here, so nothing is asserted about
// its speed. Pictures are compared as pixels.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { load, Server } from "./server.mjs";

const { chromium } = load("playwright-core");
const TIMEOUT = 90_000;
const SOFTWARE = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"];
const folder = mkdtempSync(join(tmpdir(), "dsnet-page-"));
let server, browser, lightTable;

before(async () => {
  writeFileSync(join(folder, "key"), Buffer.alloc(32, 5), { mode: 0o600 });
  server = await Server.start(["--threads", "1", "--state-key-file", join(folder, "key")]);
  browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: SOFTWARE });
  lightTable = await browser.newPage(); // an empty page in which pictures are decoded
});

after(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(folder, { recursive: true });
});

// Opens the page, and when `use` has run asserts that it asked nobody else for anything and complained of nothing.
async function visit(query, use, { at = server, from = browser, complaints = [] } = {}) {
  const page = await from.newPage({ viewport: { width: 900, height: 620 } });
  const errors = [], foreign = [], origin = new URL(at.page).host;
  page.setDefaultTimeout(TIMEOUT);
  page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
  page.on("pageerror", (error) => errors.push(String(error)));
  const watch = (url) => { if (!/^(data|blob):/.test(url) && new URL(url).host !== origin) foreign.push(url); };
  page.on("request", (request) => watch(request.url()));
  page.on("websocket", (socket) => watch(socket.url()));
  try {
    await page.goto(at.page + query);
    await use(page);
    assert.deepEqual(foreign, []);
    assert.deepEqual(errors.filter((error) => !complaints.some((expected) => expected.test(error))), []);
  } finally {
    await page.close();
  }
}

const frames = (page) => page.evaluate(() => Number(document.getElementById("stage").dataset.frames));
const framesAfter = (page, count) =>
  page.waitForFunction((least) => Number(document.getElementById("stage").dataset.frames) >= least, count);
const reaches = (page, index) =>
  page.waitForFunction((wanted) => Number(document.getElementById("stage").dataset.index) === wanted, index);
const banner = (page, text) => page.locator("#banner p", { hasText: text }).waitFor();

// The picture without what lies over it: { width, height, data } in RGBA. Given two turns to be drawn.
async function picture(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  await page.evaluate(() => document.querySelectorAll("#stage > :not(canvas)").forEach((part) => { part.style.opacity = 0; }));
  const png = await page.locator("#view").screenshot();
  await page.evaluate(() => document.querySelectorAll("#stage > :not(canvas)").forEach((part) => { part.style.opacity = ""; }));
  const { width, height, bytes } = await lightTable.evaluate(async (base64) => {
    const blob = new Blob([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], { type: "image/png" });
    const image = await createImageBitmap(blob);
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    let bytes = "";
    for (let i = 0; i < data.length; i += 8192) bytes += String.fromCharCode(...data.subarray(i, i + 8192));
    return { width: image.width, height: image.height, bytes: btoa(bytes) };
  }, png.toString("base64"));
  return { width, height, data: Buffer.from(bytes, "base64") };
}

// The share of skin among the pixels of columns [from, to) of the width: warm and not dark.
function skin({ width, height, data }, from, to) {
  let count = 0;
  for (let y = 0; y < height; y++)
    for (let x = Math.ceil(from * width); x < Math.floor(to * width); x++) {
      const i = 4 * (y * width + x);
      if (data[i] > 110 && data[i] > data[i + 2] + 12) count++;
    }
  return count / (height * (to - from) * width);
}

// The share of pixels that differ by more than an antialiased edge's rounding.
function difference(a, b) {
  assert.equal(a.data.length, b.data.length);
  let count = 0;
  for (let i = 0; i < a.data.length; i += 4)
    if (Math.max(...[0, 1, 2].map((c) => Math.abs(a.data[i + c] - b.data[i + c]))) > 12) count++;
  return count / (a.data.length / 4);
}

test("two bodies appear, and move", () => visit("", async (page) => {
  await framesAfter(page, 3);
  const one = await picture(page);
  assert.ok(skin(one, 0, 0.5) > 0.03, `left ${skin(one, 0, 0.5)}`);
  assert.ok(skin(one, 0.5, 1) > 0.03, `right ${skin(one, 0.5, 1)}`);
  await framesAfter(page, await frames(page) + 30);
  assert.ok(difference(one, await picture(page)) > 0.005);
  await page.locator("#fps", { hasText: /^[1-9]/ }).waitFor();
  await page.locator("#p99", { hasText: /\d/ }).waitFor();
  assert.equal(await page.locator("#shapes input").count(), 10);
}));

test("a shape slider changes the body", () => visit("?mode=with&clip=hop&frame=30", async (page) => {
  await reaches(page, 30);
  const before = await picture(page), shown = await frames(page);
  await page.getByRole("slider", { name: "mass" }).focus();
  await page.keyboard.press("End");
  await framesAfter(page, shown + 1);
  assert.ok(difference(before, await picture(page)) > 0.01);
}));

test("latent, i16, f16 and f32 give the same picture, and displacement another than none", async () => {
  const pictures = {};
  for (const encoding of ["f32", "f16", "i16", "latent"])
    await visit(`?mode=with&clip=hop&frame=40&encoding=${encoding}`, async (page) => {
      await reaches(page, 40);
      await page.locator("#heat").uncheck();
      pictures[encoding] = await picture(page);
      if (encoding !== "f32") return;
      const shown = await frames(page);
      await page.locator("#gain").fill("0");
      await framesAfter(page, shown + 1);
      pictures.none = await picture(page);
    });
  for (const encoding of ["f16", "i16", "latent"])
    assert.ok(difference(pictures.f32, pictures[encoding]) < 2e-4, `${encoding}: ${difference(pictures.f32, pictures[encoding])}`);
  assert.ok(difference(pictures.f32, pictures.none) > 2e-3, `none: ${difference(pictures.f32, pictures.none)}`);
});

test("a restart of the server is bridged by the state token", () => visit("?clip=run", async (page) => {
  await framesAfter(page, 90); // a checkpoint has come
  const { port } = server;
  await server.stop();
  await banner(page, "server is restarting");
  server = await Server.start(["--threads", "1", "--state-key-file", join(folder, "key")], port);
  await banner(page, "goes on from its state token");
  await framesAfter(page, await frames(page) + 10);
  assert.equal(await page.locator("#status").textContent(), "streaming");
}, { complaints: [/WebSocket connection/, /ERR_/] }));

test("a dropped AMASS clip plays, and what is none is refused", () => visit("", async (page) => {
  await framesAfter(page, 1);
  const drop = (name, bytes) => page.evaluate(([name, base64]) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))], name));
    dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
  }, [name, bytes.toString("base64")]);
  await drop("notes.npz", Buffer.from("this is text"));
  await banner(page, "notes.npz: this is not an npz");
  for (const clip of ["clip_smplh", "clip_parts"]) {
    await drop(`${clip}.npz`, readFileSync(new URL(`../model/data/${clip}.npz`, import.meta.url)));
    await page.waitForFunction((title) => document.title.endsWith(title), `${clip}.npz`);
    await framesAfter(page, await frames(page) + 5);
  }
}));

test("a model by any other name is shown as well", async () => {
  const file = new URL("../../model/builtin/model.safetensors", import.meta.url).pathname;
  const named = await Server.start(["--threads", "1", "--model", `flesh=${file}`]);
  try {
    await visit("?model=nobody", async (page) => {
      await framesAfter(page, 3);
      assert.ok(skin(await picture(page), 0.5, 1) > 0.03);
    }, { at: named });
  } finally {
    await named.stop();
  }
});

test("a full server is a banner, and a place that falls free is taken", async () => {
  const full = await Server.start(["--threads", "1", "--max-sessions", "1"]);
  try {
    const first = await browser.newPage();
    await first.goto(full.page);
    await framesAfter(first, 1);
    await visit("", async (page) => {
      await banner(page, "at a limit");
      assert.equal(await page.locator("#status").textContent(), "no session");
      await first.close();
      await framesAfter(page, 1);
      await page.locator("#banner").waitFor({ state: "hidden" });
    }, { at: full, complaints: [/WebSocket connection/] });
  } finally {
    await full.stop();
  }
});

test("everything is there with the keyboard alone", () => visit("?clip=twist", async (page) => {
  await framesAfter(page, 3);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the controls");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("Space");
  await page.locator("#play[aria-pressed=false]").waitFor();
  await page.keyboard.press("2");
  await page.locator("#divider").waitFor({ state: "visible" });
  await page.locator("#view").focus();
  const before = await picture(page);
  for (let i = 0; i < 8; i++) await page.keyboard.press("ArrowLeft");
  assert.ok(difference(before, await picture(page)) > 0.01);
  const shown = await frames(page);
  await page.keyboard.press(".");
  await framesAfter(page, shown + 1);
}));

test("without WebGL 2 the page says so", async () => {
  const plain = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-3d-apis"] });
  try {
    await visit("", (page) => banner(page, "no WebGL 2"), { from: plain, complaints: [/WebGL/] });
  } finally {
    await plain.close();
  }
});
