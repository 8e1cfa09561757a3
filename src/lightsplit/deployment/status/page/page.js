// Draws state.json once a second. Every text goes in as text, never as markup.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
const EVERY_MS = 1000;
const SERIES = 4;

const at = (id) => document.getElementById(id);

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function bytesText(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) { count /= 1024; unit += 1; }
  return `${unit ? count.toFixed(1) : count} ${units[unit]}`;
}

function timeText(seconds) {
  if (seconds === null || seconds === undefined) return "none yet";
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

const numberText = (value, digits = 3) => (value === null || value === undefined ? "–" : value.toFixed(digits));

function fill(id, rows) {
  const body = at(id).querySelector("tbody");
  body.replaceChildren(...rows.map(([cells, kind]) => {
    const row = element("tr", undefined, kind);
    row.append(...cells.map((cell) => (cell instanceof Node ? cell : element("td", cell))));
    return row;
  }));
}

function drawTiles(state) {
  const connected = state.clients.filter((one) => one.is_connected).length;
  const refused = Object.values(state.refusals).reduce((sum, one) => sum + one, 0);
  const tiles = [
    state.rounds === null ? ["turns", state.turns] : ["rounds", state.rounds], ["steps", state.steps], ["steps/s", state.steps_per_second.toFixed(1)],
    ["connected", `${connected} of ${state.expected_clients}`],
    ["bytes", bytesText(state.bytes.total || 0)], ["refused", refused],
    ["last checkpoint", timeText(state.checkpoint_age_seconds)],
    ["memory", state.resident_bytes === null ? "–" : bytesText(state.resident_bytes)],
    ["up for", timeText(state.uptime_seconds)],
    ["computing", `${(100 * state.computing_share).toFixed(0)} %`],
  ];
  at("tiles").replaceChildren(...tiles.map(([name, value]) => {
    const tile = element("div", undefined, "tile");
    tile.append(element("b", String(value)), element("span", name));
    return tile;
  }));
}

function drawClients(state) {
  const working = state.rounds === null ? "in turn" : "at work";
  fill("clients", state.clients.map((one) => {
    const word = !one.is_connected ? "away" : one.is_in_turn ? working : "waits";
    const kind = { away: "bad", [working]: "good", waits: "soft" }[word];
    const cells = [one.name, element("td", word, kind), String(one.steps), bytesText(one.up), bytesText(one.down),
      bytesText(one.other), numberText(one.loss), timeText(one.waited_seconds)];
    return [cells, word === working ? "turn" : ""];
  }));
}

function drawVerdicts(state) {
  const names = Object.fromEntries(state.clients.map((one) => [one.index, one.name]));
  const rows = [...state.verdicts].reverse().flatMap((one) => [one, ...(one.others || [])].map((seen) => {
    const scores = seen.clients.map((client, i) => `${names[client]} ${numberText(seen.scores[i], 1)}`).join(", ");
    const flagged = seen.flagged.map((client) => names[client]).join(", ");
    return [[String(one.round), seen.detector, numberText(seen.threshold, 2), scores,
      element("td", flagged || "nobody", flagged ? "bad" : "soft")], ""];
  }));
  fill("verdicts", rows.length ? rows : [[[element("td", "none so far", "soft")], ""]]);
}

function drawCounts(id, counts, text, empty) {
  const rows = Object.entries(counts).filter(([key, value]) => key !== "total" && value);
  fill(id, rows.length ? rows.map(([key, value]) => [[key.replaceAll("_", " "), text(value)], ""])
    : [[[element("td", empty, "soft")], ""]]);
}

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function drawCurves(id, series) {
  const all = series.flatMap(([, points]) => points);
  if (!all.length) {
    at(id).replaceChildren(shape("text", { x: 200, y: 110 }, "nothing yet"));
    return;
  }
  const box = { left: 52, right: 470, top: 10, bottom: 192 };
  const [x0, x1] = [Math.min(...all.map((p) => p[0])), Math.max(...all.map((p) => p[0]))];
  const [low, high] = [Math.min(...all.map((p) => p[1])), Math.max(...all.map((p) => p[1]))];
  const x = (v) => box.left + (box.right - box.left) * (x1 > x0 ? (v - x0) / (x1 - x0) : 0.5);
  const y = (v) => box.bottom - (box.bottom - box.top) * (high > low ? (v - low) / (high - low) : 0.5);
  const drawn = [
    shape("line", { class: "axis", x1: box.left, y1: box.bottom, x2: box.right, y2: box.bottom }),
    shape("line", { class: "axis", x1: box.left, y1: box.top, x2: box.left, y2: box.bottom }),
    shape("text", { x: box.left - 6, y: box.top + 10, "text-anchor": "end" }, high.toPrecision(3)),
    shape("text", { x: box.left - 6, y: box.bottom, "text-anchor": "end" }, low.toPrecision(3)),
    shape("text", { x: box.left, y: box.bottom + 18 }, `step ${x0}`),
    shape("text", { x: box.right, y: box.bottom + 18, "text-anchor": "end" }, `step ${x1}`),
  ];
  series.forEach(([, points], i) => {
    const d = points.map((p, n) => `${n ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[1]).toFixed(1)}`).join(" ");
    drawn.push(shape("path", { class: `line s${i % SERIES}`, d }));
    const [px, py] = points[points.length - 1];
    drawn.push(shape("circle", { class: `line s${i % SERIES}`, cx: x(px), cy: y(py), r: 3 }));
  });
  at(id).replaceChildren(...drawn);
}

function drawNamed(id, series) {
  const drawn = series.filter(([, points]) => points.length);
  drawCurves(id, drawn);
  at(`${id}-legend`).replaceChildren(...drawn.map(([name, points], i) =>
    element("span", `${name} ${numberText(points[points.length - 1][1], 4)}`, `s${i % SERIES}`)));
}

const curve = (state, name) => state.history.filter((line) => typeof line[name] === "number")
  .map((line) => [line.step, line[name]]);

function drawHistory(state) {
  const names = Object.keys(state.history[state.history.length - 1] || {})
    .filter((key) => key.startsWith("test_") && key !== "test_loss");
  drawNamed("losses", [["training, as reported", state.losses], ["test", curve(state, "test_loss")]]);
  drawNamed("figures", names.map((name) => [name.replace("test_", ""), curve(state, name)]));
}

function draw(state) {
  if (!state.run) {
    at("state").textContent = "the server is starting";
    return;
  }
  at("run").textContent = `run ${state.run}`;
  const word = state.finished ? `finished: ${state.finished}`
    : state.clients.some((one) => one.is_in_turn && one.is_connected) ? "training" : "waiting for clients";
  at("state").textContent = word;
  at("state").className = `pill ${word === "waiting for clients" ? "" : "good"}`;
  drawTiles(state);
  drawClients(state);
  drawHistory(state);
  drawCounts("bytes", state.bytes, bytesText, "none so far");
  drawCounts("refusals", state.refusals, String, "none so far");
  drawVerdicts(state);
}

async function tick() {
  try {
    const reply = await fetch("state.json", { cache: "no-store" });
    if (!reply.ok) throw new Error(`the server said ${reply.status}`);
    draw(await reply.json());
  } catch (error) {
    at("state").textContent = `no answer: ${error.message}`;
    at("state").className = "pill bad";
  }
  setTimeout(tick, EVERY_MS);
}

tick();
