// SPDX-License-Identifier: Apache-2.0
// The page: controls, live numbers, and what is said when something is missing. It speaks to the server only through
// proto/js/dsnet.js. The address may say how to begin: ?clip=hop&encoding=i16&mode=slider&frame=90 plays up to that frame.
import { explain, fetchTensors } from "../../../proto/js/dsnet.js";
import { readClip } from "./clip.js";
import { Meter } from "./meter.js";
import { Player } from "./player.js";
import { View } from "./view.js";

const $ = (id) => document.getElementById(id);
const base = new URL(".", location.href);
const streamUrl = new URL("v1/stream", base).href.replace(/^http/, "ws");
const settings = new URLSearchParams(location.search);
const RANGES = [2, 5, 10, 20, 40, 80]; // millimetres that the legend may span
const HIGHS = 180; // frames that the legend looks back
const RETRY_MS = 4000;

// Messages ---------------------------------------------------------------------------------------------------

let bannerTimer;

// `retry` is what the button does; without one there is none. A note goes away by itself.
function say(message, { retry = null, note = false } = {}) {
  clearTimeout(bannerTimer);
  const banner = $("banner"), button = banner.querySelector("button");
  banner.querySelector("p").textContent = message;
  banner.dataset.kind = note ? "note" : "trouble";
  button.hidden = !retry;
  button.onclick = retry;
  banner.hidden = false;
  if (note) bannerTimer = setTimeout(hush, 4000);
}

function hush() {
  clearTimeout(bannerTimer);
  $("banner").hidden = true;
}

function setStatus(state, text) {
  $("status").dataset.state = state;
  $("status").textContent = text;
}

// The body in its worker -------------------------------------------------------------------------------------

const worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
const meter = new Meter($("spark"));
let view, gain = 1, busy = false, waiting = null, last = null, range = 0, highs = [];

// Gives a result to the worker, or keeps it until the worker has finished the one before.
function present(item) {
  last = item;
  if (busy) {
    waiting = item;
    return;
  }
  busy = true;
  const { frame, pose, trans, betas, index } = item;
  // The root stays over the middle of the floor.
  worker.postMessage({ id: index, frame: { kind: frame.kind, data: frame.data }, pose, trans: [0, 0, trans[2]], betas, gain });
}

// The legend spans what the last seconds have shown, but for single frames that stand out.
function fitLegend(high) {
  highs.push(high);
  if (highs.length > HIGHS) highs.shift();
  const usual = [...highs].sort((a, b) => a - b)[Math.floor(0.9 * (highs.length - 1))];
  const wanted = RANGES.find((most) => most >= 1000 * usual) ?? RANGES.at(-1);
  if (wanted === range || (wanted < range && highs.length < HIGHS)) return;
  range = wanted;
  view.set({ range: range / 1000 });
  $("tick-half").textContent = range / 2;
  $("tick-full").textContent = range;
}

worker.onmessage = ({ data: { id, peak, high, out } }) => {
  view.setFrame(out, last.trans);
  worker.postMessage({ type: "spare", out }, Object.values(out).map((array) => array.buffer));
  busy = false;
  fitLegend(high);
  $("peak").textContent = (peak * 1000).toFixed(1);
  $("stage").dataset.frames = Number($("stage").dataset.frames) + 1;
  $("stage").dataset.index = id;
  $("progress").value = id / Math.max(1, player.clip.frames - 1);
  $("time").textContent = `${(id / player.clip.fps).toFixed(1)} / ${(player.clip.frames / player.clip.fps).toFixed(1)} s`;
  if (waiting) {
    const next = waiting;
    waiting = null;
    present(next);
  }
};

// What is shown again with other settings while no new frame comes.
function refresh() {
  if (last) present({ ...last, betas: player.betas });
}

// The stream -------------------------------------------------------------------------------------------------

let lost = false;

const player = new Player(streamUrl, {
  frame(item) {
    if (item.trip !== null) meter.add(item.trip, item.frame.bytes);
    present(item);
  },
  refused: (error) => say(`The server could not use a frame: ${error.message}`, { note: true }),
  state(state, error, resumed) {
    if (state === "open") {
      setStatus("open", "streaming");
      if (lost) say(resumed ? "Connected again: the motion goes on from its state token." :
        "Connected again: the server could not open the state token, so the motion began anew.", { note: true });
      lost = false;
    } else if (state === "waiting") {
      setStatus("waiting", "reconnecting");
      if (lost) return; // the first reason is the one that tells
      lost = true;
      say(error.closeCode === 1012 ? "The server is restarting. The stream is taken up again as soon as it is back." :
        "The connection is lost. Trying to take the stream up again …");
    } else if (error?.closeCode !== 1000) {
      setStatus("closed", "disconnected");
      say(`The stream has ended: ${error.message}`, { retry: open });
    }
  },
});

let retryTimer;

async function open() {
  clearTimeout(retryTimer);
  setStatus("loading", "connecting");
  try {
    await player.open();
    hush();
    setStatus("open", "streaming");
    meter.clear();
  } catch (error) {
    const { message } = error.code === "unreachable" ? await explain(streamUrl) : error;
    setStatus("closed", "no session");
    say(message, { retry: open });
    retryTimer = setTimeout(open, RETRY_MS);
  }
}

function setClip(clip) {
  player.clip = clip;
  highs = [];
  document.title = `DSNet – ${clip.name}`;
  return open();
}

async function chooseClip(name) {
  const answer = await fetch(new URL(`www/${name}.npz`, base));
  if (!answer.ok) throw new Error(`the clip ${name} cannot be had`);
  return readClip($("clip").selectedOptions[0].textContent, await answer.arrayBuffer());
}

async function openFile(file) {
  try {
    const clip = await readClip(file.name, await file.arrayBuffer());
    const option = [...$("clip").options].find(({ value }) => value === "") ?? $("clip").appendChild(new Option("", ""));
    option.textContent = file.name;
    option.clip = clip;
    option.selected = true;
    if (clip.betas.length) setShape(clip.betas);
    await setClip(clip);
  } catch (error) {
    say(`${file.name}: ${error.message}`, { note: true });
  }
}

// Controls ---------------------------------------------------------------------------------------------------

function setPlaying(playing) {
  player.playing = playing;
  $("play").setAttribute("aria-pressed", playing);
  $("play").querySelector(".name").textContent = playing ? "Pause" : "Play";
}

function setMode(mode) {
  view.set({ mode });
  document.querySelector(`input[name=mode][value=${mode}]`).checked = true;
  $("divider").hidden = mode !== "slider";
  $("tag-left").hidden = mode === "with";
  $("tag-right").hidden = false;
  const [left, right] = mode === "slider" ? [view.split / 2, (1 + view.split) / 2] : mode === "side" ? [0.25, 0.75] : [0, 0.5];
  $("tag-left").style.left = `${100 * left}%`;
  $("tag-right").style.left = `${100 * right}%`;
}

function setSplit(split) {
  view.set({ split: Math.min(1, Math.max(0, split)) });
  $("divider").style.left = `${100 * view.split}%`;
  $("divider").setAttribute("aria-valuenow", Math.round(100 * view.split));
  setMode("slider");
}

function setShape(betas) {
  player.betas = [...$("shapes").querySelectorAll("input")].map((input, i) => {
    input.value = betas[i] ?? 0;
    input.nextElementSibling.textContent = Number(input.value).toFixed(1);
    return Number(input.value);
  });
  highs = [];
  refresh();
}

function makeShapes({ shapes, shape_names: names }) {
  for (let k = 0; k < shapes; k++) {
    const label = document.createElement("label"), name = document.createElement("span");
    const input = document.createElement("input"), output = document.createElement("output");
    name.textContent = names[k] ?? `Direction ${k + 1}`;
    Object.assign(input, { type: "range", min: -3, max: 3, step: 0.1, value: 0, id: `shape-${k}` });
    input.oninput = () => setShape([...$("shapes").querySelectorAll("input")].map(({ value }) => Number(value)));
    output.textContent = "0.0";
    label.append(name, input, output);
    $("shapes").append(label);
  }
}

const keys = {
  " ": () => setPlaying(!player.playing),
  ".": () => { setPlaying(false); player.step(); },
  Home: () => player.restart(),
  c: () => $("heat").click(),
  0: () => view.home(),
  1: () => setMode("side"), 2: () => setMode("slider"), 3: () => setMode("with"),
};
const TURN = 0.12, PAN = 0.05;
const cameraKeys = {
  ArrowLeft: (shift) => shift ? { x: -PAN } : { azimuth: -TURN }, ArrowRight: (shift) => shift ? { x: PAN } : { azimuth: TURN },
  ArrowUp: (shift) => shift ? { y: PAN } : { polar: -TURN }, ArrowDown: (shift) => shift ? { y: -PAN } : { polar: TURN },
  "+": () => ({ zoom: 0.9 }), "=": () => ({ zoom: 0.9 }), "-": () => ({ zoom: 1 / 0.9 }),
};

function listenToKeys() {
  addEventListener("keydown", (event) => {
    const { target, key } = event, own = target.closest("button, select, a, [role=slider], input:not([type=range])");
    if (event.ctrlKey || event.metaKey || event.altKey || own || !keys[key] || (key === "Home" && target.type === "range")) return;
    event.preventDefault();
    keys[key]();
  });
  $("view").addEventListener("keydown", (event) => {
    if (!cameraKeys[event.key]) return;
    event.preventDefault();
    view.move(cameraKeys[event.key](event.shiftKey));
  });
  $("divider").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    setSplit(view.split + step);
  });
}

function listenToDivider() {
  const divider = $("divider");
  divider.onpointerdown = (event) => divider.setPointerCapture(event.pointerId);
  divider.onpointermove = (event) => {
    if (!divider.hasPointerCapture(event.pointerId)) return;
    const { left, width } = $("stage").getBoundingClientRect();
    setSplit((event.clientX - left) / width);
  };
}

function listenToFiles() {
  let depth = 0;
  const show = (change) => { depth = Math.max(0, depth + change); $("drop").hidden = !depth; };
  addEventListener("dragenter", (event) => { event.preventDefault(); show(1); });
  addEventListener("dragleave", () => show(-1));
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("drop", (event) => {
    event.preventDefault();
    show(-depth);
    if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
  });
  $("file").onchange = () => { if ($("file").files[0]) openFile($("file").files[0]); };
}

function listen() {
  $("play").onclick = () => setPlaying(!player.playing);
  $("step").onclick = keys["."];
  $("again").onclick = keys.Home;
  $("camera").onclick = () => view.home();
  $("speed").onchange = () => { player.speed = Number($("speed").value); };
  $("heat").onchange = () => {
    view.set({ heat: $("heat").checked ? 1 : 0 });
    $("legend").hidden = !$("heat").checked;
  };
  $("gain").oninput = () => {
    gain = Number($("gain").value);
    $("gain-value").textContent = `${gain}×`;
    refresh();
  };
  $("shape-reset").onclick = () => setShape([]);
  $("encoding").onchange = () => { player.encoding = $("encoding").value; open(); };
  $("clip").onchange = async () => {
    try {
      await setClip($("clip").selectedOptions[0].clip ?? await chooseClip($("clip").value));
    } catch (error) {
      say(`${error.message}`, { note: true });
    }
  };
  for (const input of document.querySelectorAll("input[name=mode]")) input.onchange = () => setMode(input.value);
  listenToKeys();
  listenToDivider();
  listenToFiles();
  addEventListener("pagehide", () => player.close());
}

// Running ----------------------------------------------------------------------------------------------------

function size(bytes) {
  return bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB/s` : `${(bytes / 1e3).toFixed(1)} kB/s`;
}

async function report() {
  const { fps, rate, p50, p99 } = meter.take();
  $("fps").textContent = fps.toFixed(0);
  $("rate").textContent = size(rate);
  $("p50").textContent = p50?.toFixed(1) ?? "–";
  $("p99").textContent = p99?.toFixed(1) ?? "–";
  meter.draw();
  if (!player.connected) return;
  const stats = await player.stream.stats().catch(() => null); // answered by the banner when the connection goes
  if (stats) $("skipped").textContent = stats.skipped;
}

let before = performance.now();

function turn(now) {
  player.advance(Math.max(0, now - before) / 1000);
  before = now;
  if ($("play").getAttribute("aria-pressed") !== String(player.playing)) setPlaying(player.playing);
  view.draw();
  requestAnimationFrame(turn);
}

// The model that the address asks for, else the one called "default", else the first.
async function pickModel() {
  const answer = await fetch(new URL("v1/models", base));
  const names = (await answer.json()).models.map((model) => model.name);
  return [settings.get("model"), "default", names[0]].find((name) => names.includes(name));
}

async function loadGeometry() {
  player.model = await pickModel();
  const [body, decoder] = await Promise.all(
    ["v1/body", `v1/models/${encodeURIComponent(player.model)}/decoder`].map((path) => fetchTensors(new URL(path, base))));
  makeShapes(body.metadata);
  view.setBody(body.metadata.vertices, body.tensors.faces.data);
  worker.postMessage({ type: "body", body, decoder });
}

function choose(select, name) {
  const value = settings.get(name);
  if ([...select.options].some((option) => option.value === value)) select.value = value;
  return select.value;
}

async function start() {
  try {
    view = new View($("view"));
  } catch {
    setStatus("closed", "no WebGL 2");
    say("This browser has no WebGL 2, which the view needs. The stream itself works without: see the links below the controls.");
    return;
  }
  listen();
  player.encoding = choose($("encoding"), "encoding");
  if (/^\d{1,6}$/.test(settings.get("frame") ?? "")) player.stopAt = Number(settings.get("frame"));
  setMode(["side", "slider", "with"].includes(settings.get("mode")) ? settings.get("mode") : "side");
  if (view.mode === "slider") setSplit(0.5);
  try {
    const [clip] = await Promise.all([chooseClip(choose($("clip"), "clip")), loadGeometry()]);
    performance.mark("loaded");
    await setClip(clip);
    setInterval(report, 1000);
    requestAnimationFrame(turn);
  } catch (error) {
    console.error(error);
    const { message } = await explain(streamUrl);
    setStatus("closed", "no session");
    say(message, { retry: () => location.reload() });
  }
}

// The page is painted before the view is made, which takes a slow renderer a while.
requestAnimationFrame(() => setTimeout(start));
