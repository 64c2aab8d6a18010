"use strict";
(() => {
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
  const best = (metric, prior) => {
    const values = thresholds.map((_, i) => evaluate(metric, i, prior));
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
  // How many false alarms a metric trades for one missed positive where its value is `value`: the ratio of its slopes.
  const trade = (metric, value, given) => {
    if (metric.kind !== "cells") return NaN;
    const prior = given === null ? data.prior : given;
    const [n, d] = [metric.numerator, metric.denominator].map((cells) => weights(cells, prior, 1 - prior));
    const alarm = value * (d[1] - d[3]) - (n[1] - n[3]), miss = value * (d[2] - d[0]) - (n[2] - n[0]);
    return miss / alarm;
  };

  // --- What is asked.

  const worth = { tp: 0, fp: -1, fn: -10, tn: 0 };
  const none = [0, 0, 0, 0];
  const costs = {
    name: "costs", title: "Costs of your own", formula: "mean worth of a row", kind: "cells", fixed_prior: false,
    numerator: { constant: none, positives: none, negatives: none },
    denominator: { constant: [1, 1, 1, 1], positives: none, negatives: none },
  };
  const metrics = [...data.metrics, costs];
  const start = { metric: data.chosen.metric, at: data.chosen.at, prior: data.given_prior };
  const state = { metric: null, at: 0, prior: null, axis: "score", best: null };

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
      this.margin = { left: 46, right: 14, top: labels.y ? 26 : 12, bottom: 40 };
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
      const pick = (event) => {
        const frame = this.svg.getBoundingClientRect();
        this.onPick(((event.clientX - frame.left) / frame.width) * this.width, ((event.clientY - frame.top) / frame.height) * this.height);
      };
      this.svg.addEventListener("pointerdown", (event) => { this.svg.setPointerCapture(event.pointerId); this.dragging = true; pick(event); event.preventDefault(); });
      this.svg.addEventListener("pointermove", (event) => { if (this.dragging) pick(event); });
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
    dot(x, y, name, radius) {
      if (!Number.isNaN(x) && !Number.isNaN(y)) element("circle", { cx: this.px(x), cy: this.py(y), r: radius, class: name }, this.live);
    }
  }

  const flagged = (i) => { const c = atPrior(counts(i), state.prior); return (c.tp + c.fp) / (c.tp + c.fp + c.fn + c.tn); };
  const recall = (i) => rate(data.grid.tp[i], data.positives);
  const fall = (i) => rate(data.grid.fp[i], data.negatives);
  const precision = (i) => { const c = atPrior(counts(i), state.prior); return rate(c.tp, c.tp + c.fp); };
  const abscissa = (i) => (state.axis === "share" ? 1 - flagged(i) : Math.min(Math.max(thresholds[i], data.axis[0] - 1e-3 * (data.axis[1] - data.axis[0])), data.axis[1] + 1e-3 * (data.axis[1] - data.axis[0])));
  const nearest = (distance) => {
    let found = 0, least = Infinity;
    for (let i = 0; i < size; i++) { const d = distance(i); if (d < least) { least = d; found = i; } }
    return found;
  };

  const curve = new Chart("curve", { height: 300 });
  const histogram = new Chart("histogram", { height: 190 });
  const roc = new Chart("roc", { square: true });
  const pr = new Chart("pr", { square: true });
  curve.onPick = histogram.onPick = (x) => move(nearest((i) => Math.abs(curve.px(abscissa(i)) - x)));
  roc.onPick = (x, y) => move(nearest((i) => Math.hypot(roc.px(fall(i)) - x, roc.py(recall(i)) - y)));
  pr.onPick = (x, y) => move(nearest((i) => Math.hypot(pr.px(recall(i)) - x, pr.py(precision(i)) - y)));

  const all = [...Array(size).keys()];
  const draw = () => {
    const range = state.axis === "share" ? [0, 1] : data.axis;
    const xLabel = state.axis === "share" ? "share of the rows not flagged" : "threshold on the score";
    const values = state.best.values.filter((v) => Number.isFinite(v));
    let low = Math.min(...values, 0), high = Math.max(...values, state.metric === costs ? low : 1);
    if (state.metric === costs) { high = Math.max(...values); low = Math.min(...values); const room = (high - low || 1) * 0.06; low -= room; high += room; }
    curve.begin(range, [low, high], { x: xLabel, percentX: state.axis === "share" }, `${state.metric.title} at every threshold. Best ${shown(state.best.value)} at threshold ${short(thresholds[state.best.at])}.`);
    const hasContext = !["precision", "recall", "costs"].includes(state.metric.name) && data.positives > 0;
    byId("legend-title").textContent = state.metric.title;
    byId("legend-context").hidden = !hasContext;
    if (hasContext) {
      curve.path(all.map((i) => [abscissa(i), precision(i)]), { class: "context" }, true);
      curve.path(all.map((i) => [abscissa(i), recall(i)]), { class: "context dashed" }, true);
    }
    const band = data.bands && state.prior === data.given_prior ? data.bands[state.metric.name] : null;
    if (band) {
      const there = all.filter((i) => band.lower[i] !== null && band.upper[i] !== null);
      const outline = [...there.map((i) => [abscissa(i), band.upper[i]]), ...there.reverse().map((i) => [abscissa(i), band.lower[i]])];
      element("path", { class: "band", d: "M" + outline.map(([x, y]) => `${curve.px(x).toFixed(1)} ${curve.py(y).toFixed(1)}`).join("L") + "Z" }, curve.layer);
    }
    byId("band-note").hidden = !band;
    drawSpread();
    curve.path(all.map((i) => [abscissa(i), state.best.values[i]]), { class: "main" }, true);

    const edges = data.histogram.edges;
    const share = (weights, whole) => weights.map((w) => (whole > 0 ? w / whole : 0));
    const up = share(data.histogram.positive, data.positives), down = share(data.histogram.negative, data.negatives);
    if (state.axis === "score") {
      const top = Math.max(...up, ...down);
      histogram.begin(range, [-top, top], { x: "score; bars are shares of their own class", percentY: true }, "Histogram of the scores, positives upward, negatives downward.");
      bars(edges.slice(0, -1).map((e, k) => [e, edges[k + 1]]), up, down);
    } else {
      const step = 1 / 40, cells = [];
      for (let k = 0; k < 40; k++) cells.push([k * step, (k + 1) * step]);
      const of = (count, whole) => {
        const filled = cells.map(() => 0);
        for (let i = 1; i < size; i++) {
          const a = 1 - flagged(i), b = 1 - flagged(i - 1), weight = rate(count[i] - count[i - 1], whole) || 0;
          for (let k = Math.max(0, Math.floor(a * 40)); k < 40 && k * step < b; k++) filled[k] += weight * (Math.min(b, (k + 1) * step) - Math.max(a, k * step)) / (b - a || 1);
        }
        return filled;
      };
      const upper = of(data.grid.tp, data.positives), lower = of(data.grid.fp, data.negatives), top = Math.max(...upper, ...lower);
      histogram.begin(range, [-top, top], { x: "rank; bars are shares of their own class", percentX: true, percentY: true }, "Histogram of the ranks, positives upward, negatives downward.");
      bars(cells, upper, lower);
    }
    roc.begin([0, 1], [0, 1], { x: "false positive rate", y: "true positive rate" }, "ROC curve, the best cut and this cut.");
    roc.path([[0, 0], [1, 1]], { class: "context dashed" });
    roc.path(all.map((i) => [fall(i), recall(i)]), { class: "main" });
    pr.begin([0, 1], [0, 1], { x: "recall", y: "precision" }, "Precision against recall, the best cut and this cut.");
    pr.path(all.map((i) => [recall(i), precision(i)]), { class: "main" });
  };
  // Where resamples put a stable cut: known for the metric and the prior that it was tuned for.
  const spread = data.chosen.stability;
  const drawSpread = () => {
    if (!spread) return;
    const isKnown = state.metric.name === start.metric && state.prior === start.prior;
    byId("spread-note").hidden = !isKnown;
    if (!isKnown) return;
    const at = (text) => {
      const t = typeof text === "string" ? infinities[text] : text;
      if (state.axis === "score") return curve.px(Math.min(Math.max(t, data.axis[0]), data.axis[1]));
      return curve.px(abscissa(Math.max(0, thresholds.findLastIndex((threshold) => threshold >= t))));
    };
    const bottom = curve.height - curve.margin.bottom;
    const rectangle = (name, [low, high], y, height) =>
      element("rect", { class: name, x: at(low), width: Math.max(1, at(high) - at(low)), y, height }, curve.layer);
    const [lowest, lowerQuarter, , upperQuarter, highest] = spread.quantiles;
    rectangle("spread", [lowest, highest], curve.margin.top, bottom - curve.margin.top);
    rectangle("spread half", [lowerQuarter, upperQuarter], curve.margin.top, bottom - curve.margin.top);
    rectangle("near-optimal", spread.near_optimal, bottom - 5, 5);
  };
  const bars = (cells, up, down) => {
    histogram.bars = [];
    const zero = histogram.py(0);
    cells.forEach(([a, b], k) => {
      const x = histogram.px(a) + 0.5, width = Math.max(0.5, histogram.px(b) - histogram.px(a) - 1);
      for (const [name, height] of [["positive", up[k]], ["negative", -down[k]]]) {
        const y = histogram.py(height);
        const bar = element("rect", { x, width, y: Math.min(y, zero), height: Math.abs(y - zero), class: name }, histogram.layer);
        histogram.bars.push([bar, (a + b) / 2]);
      }
    });
    const y = histogram.margin.top;
    const right = { x: histogram.width - histogram.margin.right - 4, "text-anchor": "end", class: "label" };  // low scores crowd the left
    element("text", { ...right, y: y + 12 }, histogram.layer, "positive");
    element("text", { ...right, y: histogram.height - histogram.margin.bottom - 6 }, histogram.layer, "negative");
  };
  const drawLive = () => {
    const here = abscissa(state.at), top = state.best;
    for (const chart of [curve, histogram]) {
      chart.live.replaceChildren();
      const x = chart.px(here);
      element("line", { class: "cut", x1: x, x2: x, y1: chart.margin.top, y2: chart.height - chart.margin.bottom }, chart.live);
      element("path", { class: "handle", d: `M${x - 7} ${chart.margin.top - 8}h14l-7 11z` }, chart.live);
    }
    curve.dot(abscissa(top.at), top.value, "best", 6);
    curve.dot(here, top.values[state.at], "here", 5.5);
    for (const [bar, centre] of histogram.bars) bar.classList.toggle("off", centre < here);
    roc.live.replaceChildren(); pr.live.replaceChildren();
    roc.dot(fall(top.at), recall(top.at), "best", 6); roc.dot(fall(state.at), recall(state.at), "here", 5.5);
    pr.dot(recall(top.at), precision(top.at), "best", 6); pr.dot(recall(state.at), precision(state.at), "here", 5.5);
  };

  // --- Telling.

  const tell = () => {
    const metric = state.metric, here = counts(state.at), top = counts(state.best.at);
    const value = state.best.values[state.at], threshold = thresholds[state.at], lost = state.best.value - value;
    byId("metric-title").textContent = metric === costs ? "Worth of a row" : metric.title;
    byId("value").textContent = shown(value);
    byId("value").dataset.exact = String(value);
    byId("outcome").dataset.best = String(state.best.value);
    byId("outcome").dataset.bestThreshold = String(thresholds[state.best.at]);
    const versus = byId("versus"), isBest = state.at === state.best.at;
    versus.classList.toggle("at-best", isBest);
    versus.textContent = isBest ? "This is the best cut." :
      `The best is ${shown(state.best.value)}, at ${short(thresholds[state.best.at])}: this cut ` + (Number.isNaN(value) ? "has no value." : lost < 5e-5 * Math.abs(state.best.value) ? "is as good." : `loses ${shown(lost)}.`);
    const whole = { tp: data.positives, fn: data.positives, fp: data.negatives, tn: data.negatives };
    for (const cell of ORDER) {
      byId(cell).innerHTML = `${group.format(here[cell])}<small>${percent(rate(here[cell], whole[cell]))}</small>`;
    }
    byId("threshold").value = threshold === Infinity ? "nothing flagged" : String(threshold);
    byId("rule").textContent = threshold === Infinity ? "predict nothing" : `score >= ${threshold}`;
    const slider = byId("slider");
    slider.value = String(size - 1 - state.at);
    slider.setAttribute("aria-valuetext", `threshold ${short(threshold)}, ${metric.title} ${shown(value)}, ${percent(flagged(state.at))} flagged`);
    byId("best").disabled = isBest;

    const now = atPrior(here, state.prior), then = atPrior(top, state.prior), sum = now.tp + now.fp + now.fn + now.tn;
    const rare = Math.min((now.tp + now.fn) / sum, 0.5);
    const per = rare > 0 ? Math.max(1000, 10 ** Math.ceil(Math.log10(10 / rare))) : 1000;
    const of = (cell) => Math.round((cell / sum) * per); // parts are differences, so that they add up
    const positive = of(now.tp + now.fn), flags = of(now.tp + now.fp), hits = Math.min(of(now.tp), positive, flags);
    const sentences = [
      `Of ${group.format(per)} rows, <b>${group.format(positive)}</b> are positive. This cut flags <b>${group.format(flags)}</b>: ${group.format(hits)} rightly, ${plural(group.format(flags - hits), "is a false alarm", "are false alarms")}. It misses ${group.format(positive - hits)}.`,
    ];
    if (!isBest && Number.isFinite(value)) {
      const scale = per / sum, found = Math.round((now.tp - then.tp) * scale), alarms = Math.round((now.fp - then.fp) * scale);
      const more = (n, what) => (n === 0 ? `as many ${what}s` : `${group.format(Math.abs(n))} ${n > 0 ? "more" : "fewer"} ${what}${Math.abs(n) === 1 ? "" : "s"}`);
      sentences.push(`Beside the best cut it finds ${more(found, "positive")} and raises ${more(alarms, "false alarm")} in ${group.format(per)} rows.`);
      if (metric === costs) sentences.push(`That costs <b>${short(lost * per)}</b> in ${group.format(per)} rows.`);
    }
    const ratio = trade(metric, state.best.value, state.prior);
    if (Number.isFinite(ratio) && ratio > 0) {
      const chance = 1 / (1 + ratio);
      sentences.push(`${safe(metric.title)}, at its best, counts one missed positive like <b>${short(Number(ratio.toPrecision(3)))}</b> false alarm${ratio === 1 ? "" : "s"}: it pays to flag a row whose chance to be positive is ${percent(chance)} or more.`);
    }
    byId("words").innerHTML = sentences.map((s) => `<p>${s}</p>`).join("");
  };
  const tabulate = () => {
    const body = document.querySelector("#all tbody");
    body.replaceChildren(...metrics.map((metric) => {
      const top = best(metric, state.prior), row = document.createElement("tr");
      const head = document.createElement("th"), button = document.createElement("button");
      head.scope = "row";
      button.type = "button";
      button.textContent = metric.title;
      button.addEventListener("click", () => { choose(metric); byId("metric").focus({ preventScroll: true }); });
      head.append(button);
      row.append(head);
      row.dataset.metric = metric.name;
      if (metric === state.metric) row.setAttribute("aria-current", "true");
      const cells = [short(thresholds[top.at]), shown(top.value), shown(evaluate(metric, state.at, state.prior)), percent(precision(top.at)), percent(recall(top.at)), percent(flagged(top.at)), metric.formula];
      for (const text of cells) { const cell = document.createElement("td"); cell.textContent = text; row.append(cell); }
      return row;
    }));
  };
  const tabulateHere = () => {
    for (const row of document.querySelectorAll("#all tbody tr")) {
      const metric = metrics.find((m) => m.name === row.dataset.metric);
      row.children[3].textContent = shown(evaluate(metric, state.at, state.prior));
    }
  };

  // --- Acting.

  const move = (at) => { state.at = Math.min(Math.max(at, 0), size - 1); drawLive(); tell(); tabulateHere(); };
  const refresh = () => { state.best = best(state.metric, state.prior); draw(); tabulate(); };
  const choose = (metric) => {
    state.metric = metric;
    byId("metric").value = metric.name;
    byId("worth").hidden = metric !== costs;
    byId("prior").disabled = metric.fixed_prior;
    refresh();
    move(state.best.at);
  };
  const complain = (input, message) => {
    input.setAttribute("aria-invalid", message ? "true" : "false");
    byId("prior-message").textContent = message;
    return !message;
  };
  const parsed = (text) => { const plain = text.trim().replace("−", "-").replace(/[%\s]/g, "").replace(/,/g, "."); return plain === "" ? NaN : Number(plain); };

  byId("metric").append(...metrics.map((metric) => new Option(metric.title, metric.name)));
  byId("metric").addEventListener("change", (event) => choose(metrics.find((m) => m.name === event.target.value)));
  byId("slider").max = String(size - 1);
  byId("slider").addEventListener("input", (event) => move(size - 1 - Number(event.target.value)));
  byId("best").addEventListener("click", () => move(state.best.at));
  byId("controls").addEventListener("submit", (event) => event.preventDefault());
  byId("threshold").addEventListener("change", (event) => {
    const typed = parsed(event.target.value);
    if (!complain(event.target, Number.isNaN(typed) ? "The threshold must be a number." : "")) return;
    // the lowest cut that is not below what was typed accepts the same scores, up to the grid
    let at = size - 1;
    while (at > 0 && thresholds[at] < typed) at--;
    move(at);
  });
  byId("prior").addEventListener("input", (event) => {
    const empty = event.target.value.trim() === "", typed = parsed(event.target.value) / 100;
    if (!empty && !complain(event.target, typed > 0 && typed < 1 ? "" : "The share of positives must lie between 0 and 100 %.")) return;
    complain(event.target, "");
    state.prior = empty || Math.abs(typed - data.prior) < 1e-12 ? null : typed;
    refresh();
    move(state.best.at);
  });
  for (const cell of ORDER) {
    byId(`worth-${cell}`).value = String(worth[cell]);
    byId(`worth-${cell}`).addEventListener("input", (event) => {
      const typed = parsed(event.target.value);
      if (!complain(event.target, Number.isFinite(typed) ? "" : "The worth of a row must be a number.")) return;
      worth[cell] = typed;
      const wrong = worth.fp > worth.tn ? "A false positive must not be worth more than a true negative: costs are negative." :
        worth.fn > worth.tp ? "A false negative must not be worth more than a true positive: costs are negative." : "";
      if (!complain(event.target, wrong)) return;
      costs.numerator.constant = ORDER.map((name) => worth[name]);
      refresh();
      move(state.best.at);
    });
  }
  costs.numerator.constant = ORDER.map((name) => worth[name]);
  for (const axis of ["score", "share"]) {
    byId(`axis-${axis}`).addEventListener("click", () => {
      state.axis = axis;
      for (const other of ["score", "share"]) byId(`axis-${other}`).setAttribute("aria-pressed", String(other === axis));
      draw();
      drawLive();
    });
  }
  const open = () => {
    state.prior = start.prior;
    byId("prior").value = start.prior === null ? "" : String(Number((100 * start.prior).toPrecision(12)));
    byId("prior").placeholder = (100 * data.prior).toPrecision(4);
    byId("prior").disabled = data.positives === 0 || data.negatives === 0;
    complain(byId("prior"), "");
    choose(metrics.find((m) => m.name === start.metric));
    move(start.at);
  };
  byId("reset").addEventListener("click", open);
  let width = window.innerWidth;
  const redraw = () => { draw(); drawLive(); };
  window.addEventListener("resize", () => { if (window.innerWidth !== width) { width = window.innerWidth; redraw(); } });
  window.addEventListener("beforeprint", redraw);
  open();
})();
