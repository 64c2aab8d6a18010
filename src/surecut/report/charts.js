"use strict";
// What the pages of a cut and of bands share: counts and values, numbers in words, charts.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const infinities = { inf: Infinity, "-inf": -Infinity };
const thresholds = data.grid.threshold.map((t) => (typeof t === "string" ? infinities[t] : t));
const size = thresholds.length;

// --- The mathematics: the same sums in the same order as in Python, so that the values are the same to the last bit.

const counts = (i) => {
  const tp = data.grid.tp[i], fp = data.grid.fp[i];
  return { tp, fp, fn: data.positives - tp, tn: data.negatives - fp };
};
const atPrior = (cells, prior) => {
  if (prior === null) return cells;
  const positive = prior / (cells.tp + cells.fn), negative = (1 - prior) / (cells.fp + cells.tn);
  return { tp: cells.tp * positive, fp: cells.fp * negative, fn: cells.fn * positive, tn: cells.tn * negative };
};
const ORDER = ["tp", "fp", "fn", "tn"];
const weights = (cells, positives, negatives) =>
  cells.constant.map((c, j) => c + cells.positives[j] * positives + cells.negatives[j] * negatives);
const dot = (w, cells) => {
  let sum = null;
  ORDER.forEach((name, j) => { if (w[j] !== 0) sum = sum === null ? w[j] * cells[name] : sum + w[j] * cells[name]; });
  return sum === null ? 0 : sum;
};
const formulas = {
  cells(metric, cells) {
    const positives = cells.tp + cells.fn, negatives = cells.fp + cells.tn;
    const bottom = dot(weights(metric.denominator, positives, negatives), cells);
    return bottom === 0 ? NaN : dot(weights(metric.numerator, positives, negatives), cells) / bottom;
  },
  MCC(metric, cells) {
    const positives = cells.tp + cells.fn, negatives = cells.fp + cells.tn, predicted = cells.tp + cells.fp;
    const scale = Math.sqrt(predicted * (positives + negatives - predicted)) * Math.sqrt(positives * negatives);
    return scale > 0 ? (cells.tp * negatives - cells.fp * positives) / scale : 0;
  },
  GMean(metric, cells) {
    return Math.sqrt((cells.tp / (cells.tp + cells.fn)) * (cells.tn / (cells.fp + cells.tn)));
  },
  HMean(metric, cells) {
    const tpr = cells.tp / (cells.tp + cells.fn), tnr = cells.tn / (cells.fp + cells.tn);
    return tpr + tnr > 0 ? (2 * tpr * tnr) / (tpr + tnr) : 0;
  },
};
const evaluate = (metric, i, prior) => {
  if (metric.kind === "values") return metric.values[i] === null ? NaN : metric.values[i];
  return formulas[metric.kind](metric, atPrior(counts(i), metric.fixed_prior ? data.given_prior : prior));
};
const best = (metric, prior, isAllowed = () => true) => {
  const values = thresholds.map((_, i) => (isAllowed(i) ? evaluate(metric, i, prior) : NaN));
  const top = values.reduce((most, v) => (v > most ? v : most), -Infinity);
  let slack = data.tie * Math.abs(top);
  if ((data.weighted || prior !== null) && metric.kind !== "values") slack += data.rounding * largestCorner(metric, prior);
  const at = values.findIndex((v) => v >= top - slack);
  return { at, value: values[at], values };
};
const largestCorner = (metric, given) => {
  const prior = given === null ? data.prior : given;
  let largest = 0;
  for (const fp of [0, 1 - prior]) for (const fn of [0, prior]) {
    const value = Math.abs(formulas[metric.kind](metric, { tp: prior - fn, fp, fn, tn: 1 - prior - fp }));
    if (value > largest) largest = value;
  }
  return largest;
};
const recall = (i) => rate(data.grid.tp[i], data.positives);
const fall = (i) => rate(data.grid.fp[i], data.negatives);
const nearest = (distance) => {
  let found = 0, least = Infinity;
  for (let i = 0; i < size; i++) { const d = distance(i); if (d < least) { least = d; found = i; } }
  return found;
};


// --- Numbers and words.

const group = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const percent = (x) => (Number.isNaN(x) ? "–" : (100 * x).toFixed(Math.abs(x) < 0.1 ? 2 : 1) + " %");
const short = (x) => {
  if (x === Infinity) return "∞";
  if (x === -Infinity) return "−∞";
  if (Number.isNaN(x)) return "undefined";
  const a = Math.abs(x);
  if (a !== 0 && (a < 1e-3 || a >= 1e6)) return x.toExponential(3).replace("e+", "e").replace("-", "−");
  return String(Number(x.toPrecision(a >= 1000 ? 6 : 4))).replace("-", "−");
};
const shown = (x) => (Number.isNaN(x) ? "undefined" : Math.abs(x) >= 1e5 ? short(x) : x.toFixed(4).replace("-", "−"));
const rate = (top, bottom) => (bottom > 0 ? top / bottom : NaN);
const plural = (n, one, many) => `${n} ${n === "1" ? one : many}`;

const rowsInWords = (prior) => {  // so many that some of the rarer class are among them
  const rare = Math.min(prior, 0.5);
  return rare > 0 ? Math.max(1000, 10 ** Math.ceil(Math.log10(10 / rare))) : 1000;
};
const escaped = document.createElement("span");
const safe = (text) => { escaped.textContent = text; return escaped.innerHTML; };

// --- Drawing.

const SVG = "http://www.w3.org/2000/svg";
const element = (name, attributes, parent, text) => {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.appendChild(made);
  return made;
};
const ticks = (low, high, wanted) => {
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  let found = [];
  for (const step of [10, 5, 2, 1].map((k) => k * power)) {  // the widest that leaves three to read
    found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && found.length < 20; k++) found.push(k * step);
    if (step <= raw * 1.2 || (step < raw * 2 && found.length >= 3)) break;
  }
  return found;
};
const tidy = (x, low, high) => (Math.abs(x) < (high - low) * 1e-9 ? "0" : short(Number(x.toPrecision(6))));

// A chart: a viewBox of fixed width per layout, margins, scales; dragging inside it picks a grid cut.
class Chart {
  constructor(id, { square = false, height = 300 }) {
    this.box = byId(id);
    this.square = square;
    this.wanted = height;
    this.dragging = false;
  }
  begin(x, y, labels, description) {
    const width = Math.max(280, Math.round(this.box.clientWidth || 600));
    const height = this.square ? Math.min(width, 440) : this.wanted;
    this.margin = { left: 46, right: 14, top: labels.top || (labels.y ? 26 : 12), bottom: 40 };
    this.width = width; this.height = height; this.x = x; this.y = y;
    this.svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": description });
    const axis = element("g", { class: "axis", "aria-hidden": "true" }, this.svg);
    for (const t of ticks(x[0], x[1], width < 420 ? 4 : 7)) {
      element("line", { x1: this.px(t), x2: this.px(t), y1: this.margin.top, y2: height - this.margin.bottom }, axis);
      element("text", { x: this.px(t), y: height - this.margin.bottom + 16, "text-anchor": "middle" }, axis, labels.percentX ? Math.round(t * 100) + " %" : tidy(t, ...x));
    }
    for (const t of ticks(y[0], y[1], 5)) {
      element("line", { x1: this.margin.left, x2: width - this.margin.right, y1: this.py(t), y2: this.py(t) }, axis);
      element("text", { x: this.margin.left - 6, y: this.py(t) + 4, "text-anchor": "end" }, axis, labels.percentY ? Math.round(Math.abs(t) * 100) + " %" : tidy(t, ...y));
    }
    element("text", { x: (this.margin.left + width - this.margin.right) / 2, y: height - 6, "text-anchor": "middle" }, axis, labels.x);
    if (labels.y) element("text", { x: 4, y: 13 }, axis, labels.y);
    this.layer = element("g", {}, this.svg);
    this.live = element("g", {}, this.svg);
    this.box.replaceChildren(this.svg);
    this.listen();
  }
  px(v) { const [a, b] = this.x; return this.margin.left + (Math.min(Math.max((v - a) / (b - a), -0.002), 1.002)) * (this.width - this.margin.left - this.margin.right); }
  py(v) { const [a, b] = this.y; return this.height - this.margin.bottom - (Math.min(Math.max((v - a) / (b - a), -0.01), 1.01)) * (this.height - this.margin.top - this.margin.bottom); }
  listen() {
    const pick = (event, isStart) => {
      const frame = this.svg.getBoundingClientRect();
      this.onPick(((event.clientX - frame.left) / frame.width) * this.width, ((event.clientY - frame.top) / frame.height) * this.height, isStart);
    };
    this.svg.addEventListener("pointerdown", (event) => { this.svg.setPointerCapture(event.pointerId); this.dragging = true; pick(event, true); event.preventDefault(); });
    this.svg.addEventListener("pointermove", (event) => { if (this.dragging) pick(event, false); });
    for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, () => { this.dragging = false; });
  }
  path(points, attributes, step) {
    let d = "", last = null, open = false;
    for (const [x, y] of points) {
      if (Number.isNaN(x + y)) { open = false; last = null; continue; }
      const sx = this.px(x).toFixed(1), sy = this.py(y).toFixed(1);
      if (open && last && last[0] === sx && last[1] === sy) continue;
      d += open ? (step && last[0] !== sx && last[1] !== sy ? `L${sx} ${last[1]}` : "") + `L${sx} ${sy}` : `M${sx} ${sy}`;
      open = true; last = [sx, sy];
    }
    return element("path", { d: d || "M0 0", ...attributes }, this.layer);
  }
  area(cuts, abscissa, band, name = "band") {
    const there = cuts.filter((i) => band.lower[i] !== null && band.upper[i] !== null);
    const outline = [...there.map((i) => [abscissa(i), band.upper[i]]), ...there.reverse().map((i) => [abscissa(i), band.lower[i]])];
    return element("path", { class: name, d: "M" + outline.map(([x, y]) => `${this.px(x).toFixed(1)} ${this.py(y).toFixed(1)}`).join("L") + "Z" }, this.layer);
  }
  dot(x, y, name, radius) {
    if (!Number.isNaN(x) && !Number.isNaN(y)) element("circle", { cx: this.px(x), cy: this.py(y), r: radius, class: name }, this.live);
  }
}

const classShares = () => {
  const share = (weights, whole) => weights.map((w) => (whole > 0 ? w / whole : 0));
  return [share(data.histogram.positive, data.positives), share(data.histogram.negative, data.negatives)];
};
const bars = (chart, cells, up, down) => {
  chart.bars = [];
  const zero = chart.py(0);
  cells.forEach(([a, b], k) => {
    const x = chart.px(a) + 0.5, width = Math.max(0.5, chart.px(b) - chart.px(a) - 1);
    for (const [name, height] of [["positive", up[k]], ["negative", -down[k]]]) {
      const y = chart.py(height);
      const bar = element("rect", { x, width, y: Math.min(y, zero), height: Math.abs(y - zero), class: name }, chart.layer);
      chart.bars.push([bar, (a + b) / 2]);
    }
  });
  const y = chart.margin.top;
  const right = { x: chart.width - chart.margin.right - 4, "text-anchor": "end", class: "label" };  // low scores crowd the left
  element("text", { ...right, y: y + 12 }, chart.layer, "positive");
  element("text", { ...right, y: chart.height - chart.margin.bottom - 6 }, chart.layer, "negative");
};

// --- What a person types.

const complain = (input, message) => {
  input.setAttribute("aria-invalid", message ? "true" : "false");
  byId("prior-message").textContent = message;
  return !message;
};
const parsed = (text) => { const plain = text.trim().replace("−", "-").replace(/[%\s]/g, "").replace(/,/g, "."); return plain === "" ? NaN : Number(plain); };
