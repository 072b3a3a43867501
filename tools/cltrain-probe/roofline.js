"use strict";
// The roofline (Williams, Waterman, Patterson 2009): ops by arithmetic intensity and speed, both as logarithms, under the most that memory and
// arithmetic allow. Each figure of the page has its own data; labels stand so that none covers another.
const FAMILIES = ["matrix product", "convolution", "pooling", "normalization", "reduction", "update", "other"];
const make = (name, attributes, parent, text) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  return parent.appendChild(e);
};
const fixed = v => v.toFixed(1);
const short = v => v === 0 ? "0" : Math.abs(v) >= 1e4 || Math.abs(v) < 1e-4 ? v.toExponential(3) : String(+v.toPrecision(4));

// A mark of a family, from 1, around (x, y).
function mark(parent, family, x, y, radius) {
  const r = radius * [1, 0.88, 1.1, 1.15, 1.1, 1, 1][family - 1], w = r * 0.38;
  const path = {
    1: [`M${fixed(x - r)} ${fixed(y)}`, `a${r} ${r} 0 1 0 ${2 * r} 0`, `a${r} ${r} 0 1 0 ${-2 * r} 0z`],
    2: [`M${x - r} ${y - r}`, `h${2 * r}v${2 * r}h${-2 * r}z`],
    3: [`M${x} ${y - r}`, `L${x + r} ${y + r * 0.8}H${x - r}z`],
    4: [`M${x} ${y - r}`, `l${r} ${r}l${-r} ${r}l${-r} ${-r}z`],
    5: [`M${x} ${y + r}`, `L${x + r} ${y - r * 0.8}H${x - r}z`],
    6: [`M${x - w} ${y - r}`, `h${2 * w}v${r - w}h${r - w}v${2 * w}h${w - r}v${r - w}h${-2 * w}v${w - r}h${w - r}v${-2 * w}h${r - w}z`],
    7: [`M${x} ${y - r}`, `l${r * 0.87} ${r / 2}v${r}l${-r * 0.87} ${r / 2}l${-r * 0.87} ${-r / 2}v${-r}z`],
  }[family].join("");
  make("path", { class: "mark", d: path }, parent);
}

// ---- places of labels ----

const meet = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
const within = (box, frame) => box[0] >= frame[0] && box[1] >= frame[1] && box[2] <= frame[2] && box[3] <= frame[3];

// Liang and Barsky: whether the line has a part between both pairs of sides.
function crosses(b, x0, y0, x1, y1) {
  let from = 0, to = 1;
  const step = [x0 - x1, x1 - x0, y0 - y1, y1 - y0], room = [x0 - b[0], b[2] - x0, y0 - b[1], b[3] - y0];
  for (let i = 0; i < 4; i++) {
    if (step[i] === 0 && room[i] < 0) return false;
    if (step[i] < 0) from = Math.max(from, room[i] / step[i]);
    if (step[i] > 0) to = Math.min(to, room[i] / step[i]);
  }
  return from < to;
}

// The free place nearest to a point; far from it a line leads there, which crosses no label that is taken from `first` on. Null: none is near enough.
function seekLabel(map, x, y, radius, width, height, first) {
  const DIRECTIONS = 16;
  for (let ring = 0; ring < map.rings; ring++)
    for (let k = 0; k < DIRECTIONS; k++) {
      const turn = k % 2 ? (k + 1) / 2 : -k / 2; // the upper right first, then by turns on both sides of it
      const angle = (2 * turn - 4) * Math.PI / DIRECTIONS, reach = radius + 1 + 9 * ring;
      const cx = x + Math.cos(angle) * (reach + width / 2), cy = y + Math.sin(angle) * (reach + height / 2);
      const box = [cx - width / 2, cy - height / 2, cx + width / 2, cy + height / 2];
      if (!within(box, map.frame) || map.taken.some(other => meet(other, box))) continue;
      if (ring > 0 && map.taken.slice(first).some(other => crosses(other, x, y, cx, cy))) continue;
      map.taken.push(box);
      return { box, far: ring > 0 };
    }
  return null;
}

// ---- scales ----

function scale(values, share, least) {
  const logs = values.filter(v => v > 1e-9 && v < 1e12).map(Math.log10);
  let low = logs.length ? Math.min(...logs) : 0, high = logs.length ? Math.max(...logs) : 1;
  const more = Math.max(share * (high - low), (least - (high - low)) / 2);
  return [low - more, high + more];
}

// "0.01", "20"; what would be long: "2e-4".
const tickText = (digit, decade) => decade < -2 || decade > 4 ? digit + "e" + decade : String(+(digit * 10 ** decade).toPrecision(6));

function ticks(svg, c, vertical) {
  const [low, high] = vertical ? c.x : c.y, length = vertical ? c.right - c.left : c.bottom - c.top, perDecade = length / (high - low);
  const every = perDecade > 44 ? 1 : Math.ceil(44 / perDecade);
  for (let decade = Math.floor(low); decade <= Math.ceil(high); decade++)
    for (const digit of [1, 2, 5]) {
      const at = decade + Math.log10(digit);
      if (at < low || at > high || (digit > 1 && perDecade < (vertical ? 160 : 130))) continue; // "10000" and "20000" stand 0.3 decades apart
      const x = c.left + (at - c.x[0]) / (c.x[1] - c.x[0]) * (c.right - c.left), y = c.bottom - (at - c.y[0]) / (c.y[1] - c.y[0]) * (c.bottom - c.top);
      make("path", { class: "grid", d: vertical ? `M${fixed(x)} ${c.top}V${c.bottom}` : `M${c.left} ${fixed(y)}H${c.right}` }, svg);
      if (digit === 1 && decade % every !== 0) continue;
      const text = tickText(digit, decade), half = text.length * c.font * 0.32;
      make("text", { class: "tick", "text-anchor": vertical ? "middle" : "end", x: fixed(vertical ? Math.min(x, c.width - half - 1) : c.left - 6), y: fixed(vertical ? c.bottom + 17 : y + 4) }, svg, text);
    }
}

// ---- the peaks and their names ----

// The ends of memory's slope and of arithmetic's line, where they are in the frame.
function peaks(c, data) {
  const lines = [], ridge = data.gflops > 0 && data.gbytes > 0 ? Math.log10(data.gflops / data.gbytes) : Infinity;
  if (data.gbytes > 0) {
    const slope = Math.log10(data.gbytes), low = Math.max(c.x[0], c.y[0] - slope), high = Math.min(c.x[1], c.y[1] - slope, ridge);
    if (low < high) lines.push({ name: "memory", figure: short(data.gbytes) + " GB/s", ends: [c.atX(10 ** low), c.atY(data.gbytes * 10 ** low), c.atX(10 ** high), c.atY(data.gbytes * 10 ** high)] });
  }
  if (data.gflops > 0) {
    const x = data.gbytes > 0 ? Math.max(c.left, c.atX(data.gflops / data.gbytes)) : c.left, y = c.atY(data.gflops);
    lines.push({ name: "FMA f32", figure: short(data.gflops) + " GFLOP/s", ends: [x, y, c.right, y] });
  }
  return lines;
}

// The boxes along a text that begins at (x, y) above a line of direction (dx, dy).
function textBoxes(x, y, dx, dy, length, font) {
  const PIECES = 24, half = length / PIECES, boxes = [];
  for (let i = 0; i < PIECES; i++) {
    const along = length * (i + 0.5) / PIECES, cx = x + dx * along + dy * font * 0.4, cy = y + dy * along - dx * font * 0.4;
    const w = half * Math.abs(dx) / 2 + font * 0.55 * Math.abs(dy) + 1, h = half * Math.abs(dy) / 2 + font * 0.55 * Math.abs(dx) + 1;
    boxes.push([cx - w, cy - h, cx + w, cy + h]);
  }
  return boxes;
}

// The place along a line, rather above it, where a text covers the fewest points; null: it is too long.
function seekName(c, map, nPoints, text, [x0, y0, x1, y1]) {
  const TRIES = 25, run = Math.hypot(x1 - x0, y1 - y0), dx = (x1 - x0) / run, dy = (y1 - y0) / run, length = text.length * c.font * 0.62;
  let best = null;
  if (!(length + 8 <= run)) return best;
  for (const gap of [6, -6 - 0.75 * c.font])
    for (let i = 0; i < TRIES; i++) {
      const at = 4 + (run - length - 8) * (TRIES - 1 - i) / (TRIES - 1), x = x0 + dx * at + dy * gap, y = y0 + dy * at - dx * gap;
      const boxes = textBoxes(x, y, dx, dy, length, c.font);
      const hits = boxes.reduce((n, b) => n + map.taken.slice(0, nPoints).filter(p => meet(p, b)).length + (within(b, map.frame) ? 0 : 100), 0);
      if (!best || hits < best.hits) best = { hits, x, y, boxes, text, turn: Math.atan2(dy, dx) * 180 / Math.PI };
    }
  return best;
}

// The name of a roofline with its figure, or, where there is no room, the figure alone.
function namePeak(svg, c, map, nPoints, line) {
  const whole = seekName(c, map, nPoints, line.name + " " + line.figure, line.ends);
  const place = whole && !whole.hits ? whole : seekName(c, map, nPoints, line.figure, line.ends);
  if (!place) return;
  map.taken.push(...place.boxes);
  make("text", { class: "halo roofname", transform: `translate(${fixed(place.x)} ${fixed(place.y)}) rotate(${place.turn.toFixed(2)})` }, svg, place.text);
}

// Numbers stay off the lines.
function takeLine(map, [x0, y0, x1, y1]) {
  const STEPS = 64, w = Math.abs(x1 - x0) / STEPS / 2 + 1, h = Math.abs(y1 - y0) / STEPS / 2 + 1;
  for (let i = 0; i < STEPS; i++) {
    const t = (i + 0.5) / STEPS, cx = x0 + t * (x1 - x0), cy = y0 + t * (y1 - y0);
    map.taken.push([cx - w, cy - h, cx + w, cy + h]);
  }
}

// ---- the drawing ----

function drawPoint(svg, c, p) {
  const group = make("g", { class: "point f" + p.family + (p.suspect ? " suspect" : "") }, svg);
  make("title", {}, group, p.number + ": " + p.problem + (p.suspect ? ": suspect" : ": " + short(p.y) + " GFLOP/s at " + short(p.x) + " flop/byte"));
  mark(group, p.family, c.atX(p.x), c.atY(p.y), c.radius);
}

function drawLabel(svg, c, map, p, first) {
  const x = c.atX(p.x), y = c.atY(p.y), font = c.font - 1, text = String(p.number);
  const place = seekLabel(map, x, y, c.radius, text.length * font * 0.66 + 2, font + 1, first);
  if (!place) return;
  const [x0, y0, x1, y1] = place.box;
  if (place.far) {
    const tx = Math.min(Math.max(x, x0), x1), ty = Math.min(Math.max(y, y0), y1), run = Math.hypot(tx - x, ty - y);
    make("path", { class: "leader", d: `M${fixed(x + (tx - x) / run * c.radius)} ${fixed(y + (ty - y) / run * c.radius)}L${fixed(tx)} ${fixed(ty)}` }, svg);
  }
  make("text", { class: "label halo", "text-anchor": "middle", x: fixed((x0 + x1) / 2), y: fixed(y1 - font * 0.2) }, svg, text);
}

function draw(figure, data, kind, width, height, font, rings) {
  const ridge = data.gflops > 0 && data.gbytes > 0 ? [data.gflops / data.gbytes, 3 * data.gflops / data.gbytes] : []; // with some of the roofline behind it
  const c = { width, left: 46, top: 24, right: width - 8, bottom: height - 46, font, radius: 4.5 };
  c.x = scale(data.points.map(p => p.x).concat(ridge), 0.05, 2);
  c.y = scale(data.points.map(p => p.y).concat(data.gflops), 0.07, 2);
  c.atX = value => c.left + (Math.log10(value) - c.x[0]) / (c.x[1] - c.x[0]) * (c.right - c.left);
  c.atY = value => c.bottom - (Math.log10(value) - c.y[0]) / (c.y[1] - c.y[0]) * (c.bottom - c.top);
  const svg = make("svg", { class: "roofline " + kind, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Roofline: ${data.points.length} ops by arithmetic intensity and speed` }, figure);
  ticks(svg, c, true);
  ticks(svg, c, false);
  make("rect", { class: "frame", x: c.left, y: c.top, width: c.right - c.left, height: c.bottom - c.top }, svg);
  make("text", { x: c.right, y: height - 4, "text-anchor": "end" }, svg, "Arithmetic intensity, flop/byte");
  make("text", { x: 2, y: 14 }, svg, "GFLOP/s");
  const lines = peaks(c, data), reach = c.radius * 1.1, map = { frame: [c.left + 1, c.top + 1, c.right - 1, c.bottom - 1], taken: [], rings };
  for (const line of lines) make("path", { class: "roof", d: `M${fixed(line.ends[0])} ${fixed(line.ends[1])}L${fixed(line.ends[2])} ${fixed(line.ends[3])}` }, svg);
  for (const p of [...data.points].reverse()) drawPoint(svg, c, p);
  for (const p of data.points) map.taken.push([c.atX(p.x) - reach, c.atY(p.y) - reach, c.atX(p.x) + reach, c.atY(p.y) + reach]);
  for (const line of lines) takeLine(map, line.ends);
  const first = map.taken.length;
  for (const line of lines) namePeak(svg, c, map, data.points.length, line);
  for (const p of data.points) drawLabel(svg, c, map, p, first);
}

function legend(figure, data) {
  const list = figure.appendChild(document.createElement("ul"));
  list.className = "legend";
  const entry = (family, classes, text) => {
    const item = list.appendChild(document.createElement("li"));
    mark(make("svg", { class: classes, viewBox: "0 0 12 12", "aria-hidden": "true" }, item), family, 6, 6, 5);
    item.appendChild(document.createTextNode(text));
  };
  FAMILIES.forEach((name, i) => {
    const n = data.points.filter(p => p.family === i + 1).length;
    if (n) entry(i + 1, "f" + (i + 1), name + " (" + n + ")");
  });
  const suspects = data.points.filter(p => p.suspect).length;
  if (suspects) entry(1, "f6 suspect", "hollow: suspect (" + suspects + ")");
}

const rooflines = JSON.parse(document.getElementById("data").textContent).rooflines;
document.querySelectorAll("figure.roofline").forEach((figure, i) => {
  const data = rooflines[i];
  data.points.sort((a, b) => b.us - a.us || a.number - b.number); // what takes longest gets its label first
  draw(figure, data, "wide", 1000, 600, 13, 7);
  draw(figure, data, "narrow", 340, 480, 12, 2);
  legend(figure, data);
});
