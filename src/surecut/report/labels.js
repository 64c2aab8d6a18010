"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
  const percent = (x) => (x === null ? "–" : (100 * x).toFixed(1) + " %");
  const threshold = (x) => (x === "inf" ? "∞" : x === "-inf" ? "−∞" : String(Number(x.toPrecision(6))).replace("-", "−"));
  const infinite = { inf: Infinity, "-inf": -Infinity };
  const columns = [
    { title: "label", of: (l) => l.name, cell: (l) => l.name + (l.shared ? " ◇" : "") },
    { title: "positives", of: (l) => l.positives, cell: (l) => number.format(l.positives) },
    { title: "share", of: (l) => l.prior, cell: (l) => percent(l.prior) },
    { title: "threshold", of: (l) => (typeof l.threshold === "string" ? infinite[l.threshold] : l.threshold), cell: (l) => threshold(l.threshold) },
    { title: data.metric, of: (l) => l.value, cell: (l) => (l.value === null ? "undefined" : l.value.toFixed(4)) },
    { title: "precision", of: (l) => l.precision, cell: (l) => percent(l.precision) },
    { title: "recall", of: (l) => l.recall, cell: (l) => percent(l.recall) },
    { title: "flagged", of: (l) => l.flagged, cell: (l) => percent(l.flagged) },
  ];

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 132, HEIGHT = 30;
  const sparkline = (label) => {
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("width", WIDTH);
    svg.setAttribute("height", HEIGHT);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `${data.metric} of ${label.name} at every threshold`);
    const known = label.curve.filter((v) => v !== null), low = Math.min(0, ...known), high = Math.max(...known, low + 1e-9);
    const x = (share) => 3 + share * (WIDTH - 6), y = (v) => HEIGHT - 3 - ((v - low) / (high - low)) * (HEIGHT - 6);
    let d = "", open = false;
    label.curve.forEach((v, i) => {
      if (v === null) { open = false; return; }
      d += `${open ? "L" : "M"}${x(i / (label.curve.length - 1)).toFixed(1)} ${y(v).toFixed(1)}`;
      open = true;
    });
    const add = (name, attributes) => {
      const made = document.createElementNS(SVG, name);
      for (const key in attributes) made.setAttribute(key, attributes[key]);
      svg.append(made);
    };
    if (label.spread !== null) {
      const [start, end] = label.spread.map(x);
      add("rect", { class: "spread", x: start, width: Math.max(1, end - start), y: 1, height: HEIGHT - 2, fill: "var(--best)", opacity: .25 });
    }
    add("path", { d: d || "M0 0", fill: "none", stroke: "var(--accent)", "stroke-width": 1.6 });
    if (label.at !== null) add("line", { x1: x(label.at), x2: x(label.at), y1: 1, y2: HEIGHT - 1, stroke: "var(--ink)", "stroke-width": 1.4 });
    return svg;
  };

  labelTable({
    labels: data.labels,
    count: data.count,
    noun: "labels",
    columns,
    column: 1,
    extra: data.labels.some((l) => l.curve.length) ? { title: "at every threshold", cell: sparkline } : null,
  });
})();
