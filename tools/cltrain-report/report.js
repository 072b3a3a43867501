"use strict";
// Curves of runs, from the JSON of the page: a drawing for each measure, a colour for each run; the held-out part is a line, training a dashed one.
const data = JSON.parse(document.getElementById("data").textContent);
const box = document.getElementById("curves");
const W = 560, H = 260, LEFT = 64, RIGHT = 16, TOP = 12, BOTTOM = 36;
const make = (name, attributes, parent, text) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  return parent.appendChild(e);
};
const html = (name, parent, text, kind) => {
  const e = parent.appendChild(document.createElement(name));
  if (text !== undefined) e.textContent = text;
  if (kind) e.className = kind;
  return e;
};
const shown = value => value === 0 ? "0" : Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3 ? value.toExponential(2) : String(+value.toPrecision(4));
const points = (run, key) => run.records.filter(r => Number.isFinite(r[key])).map(r => [r.step, r[key]]).sort((a, b) => a[0] - b[0]);

// Round numbers between two, some five of them; of a logarithmic scale powers of 10.
function ticks(low, high, log) {
  if (log) {
    const all = [];
    for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.floor(Math.log10(high) + 1e-9); e++) all.push(10 ** e);
    return all.length > 1 ? all : [low, high];
  }
  const raw = (high - low) / 5 || 1, size = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find(k => k * size >= raw) * size, all = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) all.push(k * step);
  return all;
}

function draw(title, lines, log) {
  lines = lines.filter(line => line.points.length);
  const all = lines.flatMap(line => line.points).filter(p => !log || p[1] > 0);
  if (!all.length) return;
  let x0 = Math.min(...all.map(p => p[0])), x1 = Math.max(...all.map(p => p[0])), y0 = Math.min(...all.map(p => p[1])), y1 = Math.max(...all.map(p => p[1]));
  if (x0 === x1) { x0 -= 1; x1 += 1; }
  if (y0 === y1) { y0 -= Math.abs(y0) * 0.1 || 1; y1 += Math.abs(y1) * 0.1 || 1; }
  const place = value => log ? Math.log(value) : value;
  const x = value => LEFT + (value - x0) / (x1 - x0) * (W - LEFT - RIGHT);
  const y = value => H - BOTTOM - (place(value) - place(y0)) / (place(y1) - place(y0)) * (H - TOP - BOTTOM);
  const figure = html("figure", box, undefined, "curve");
  html("h3", figure, title);
  const last = lines.map(line => line.name + " ends at " + shown(line.points[line.points.length - 1][1])).join("; ");
  const svg = make("svg", { viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": title + " by steps. " + last }, figure);
  for (const t of ticks(y0, y1, log)) {
    make("line", { x1: LEFT, x2: W - RIGHT, y1: y(t), y2: y(t), class: "grid" }, svg);
    make("text", { x: LEFT - 8, y: y(t) + 4, "text-anchor": "end" }, svg, shown(t));
  }
  for (const t of ticks(x0, x1, false)) {
    make("line", { x1: x(t), x2: x(t), y1: TOP, y2: H - BOTTOM, class: "grid" }, svg);
    make("text", { x: x(t), y: H - BOTTOM + 18, "text-anchor": "middle" }, svg, shown(t));
  }
  make("text", { x: W - RIGHT, y: H - 4, "text-anchor": "end" }, svg, "steps");
  const legend = html("p", figure, undefined, "legend");
  for (const line of lines) {
    const path = line.points.filter(p => !log || p[1] > 0).map((p, i) => (i ? "L" : "M") + x(p[0]).toFixed(1) + " " + y(p[1]).toFixed(1)).join("");
    make("path", { d: path, class: "line run" + line.run % 7 + (line.dashed ? " dashed" : "") }, svg);
    if (line.points.length === 1) make("circle", { cx: x(line.points[0][0]), cy: y(line.points[0][1]), r: 3, class: "dot run" + line.run % 7 }, svg);
    const entry = html("span", legend, undefined, "run" + line.run % 7);
    const mark = make("svg", { viewBox: "0 0 24 8", width: 24, height: 8, "aria-hidden": "true" }, entry);
    make("path", { d: "M0 4L24 4", class: "line run" + line.run % 7 + (line.dashed ? " dashed" : "") }, mark);
    html("span", entry, " " + line.name);
  }
}

function both(title, name, log) {
  const lines = [];
  data.runs.forEach((run, i) => {
    const held = run.held_out;
    lines.push({ run: i, name: run.name + ", training", dashed: true, points: points(run, "train_" + name) });
    lines.push({ run: i, name: run.name + ", " + held, points: points(run, held + "_" + name) });
  });
  draw(title, lines, log);
}

function one(title, key) {
  draw(title, data.runs.map((run, i) => ({ run: i, name: run.name, points: points(run, key) })), false);
}

const losses = data.runs.flatMap(run => points(run, "train_loss").concat(points(run, run.held_out + "_loss"))).map(p => p[1]);
both("Loss", "loss", losses.length && Math.min(...losses) > 0 && Math.max(...losses) / Math.min(...losses) > 50);
both("Accuracy", "accuracy", false);
both("Mean squared error", "mse", false);
one("Learning rate", "lr");
one("Samples a second", "samples_per_second");
one("Peak of device memory, bytes", "peak_device_bytes");
