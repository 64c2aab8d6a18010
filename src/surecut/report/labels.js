"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });
  const percent = (x) => (x === null ? "–" : (100 * x).toFixed(1) + " %");
  const threshold = (x) => (x === "inf" ? "∞" : x === "-inf" ? "−∞" : String(Number(x.toPrecision(6))).replace("-", "−"));
  const infinite = { inf: Infinity, "-inf": -Infinity };
  const columns = [
    { title: "label", of: (l) => l.name, text: (l) => l.name + (l.shared ? " ◇" : "") },
    { title: "positives", of: (l) => l.positives, text: (l) => number.format(l.positives) },
    { title: "share", of: (l) => l.prior, text: (l) => percent(l.prior) },
    { title: "threshold", of: (l) => (typeof l.threshold === "string" ? infinite[l.threshold] : l.threshold), text: (l) => threshold(l.threshold) },
    { title: data.metric, of: (l) => l.value, text: (l) => (l.value === null ? "undefined" : l.value.toFixed(4)) },
    { title: "precision", of: (l) => l.precision, text: (l) => percent(l.precision) },
    { title: "recall", of: (l) => l.recall, text: (l) => percent(l.recall) },
    { title: "flagged", of: (l) => l.flagged, text: (l) => percent(l.flagged) },
  ];
  const hasCurves = data.labels.some((l) => l.curve.length);
  const state = { column: 1, descending: true, filter: "" };

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

  const body = document.querySelector(".labels tbody");
  const made = new Map(); // rows are made once, when they are first shown
  const rowOf = (label) => {
    if (made.has(label)) return made.get(label);
    const row = document.createElement("tr");
    columns.forEach((column, k) => {
      const cell = document.createElement(k === 0 ? "th" : "td");
      if (k === 0) cell.scope = "row";
      cell.textContent = column.text(label);
      row.append(cell);
    });
    if (hasCurves) { const cell = document.createElement("td"); cell.append(sparkline(label)); row.append(cell); }
    made.set(label, row);
    return row;
  };
  const compare = (a, b) => {
    const x = columns[state.column].of(a), y = columns[state.column].of(b);
    if (x === null || y === null) return (x === null) - (y === null); // what is undefined stands last
    const order = typeof x === "string" ? x.localeCompare(y, undefined, { numeric: true }) : x - y;
    return state.descending ? -order : order;
  };
  const show = () => {
    const wanted = state.filter.trim().toLowerCase();
    const shown = data.labels.filter((l) => l.name.toLowerCase().includes(wanted)).sort(compare);
    body.replaceChildren(...shown.map(rowOf));
    document.getElementById("count").textContent = `${number.format(shown.length)} of ${number.format(data.count)} labels`;
    document.querySelectorAll(".labels thead th").forEach((head, k) => {
      if (k < columns.length) head.setAttribute("aria-sort", k !== state.column ? "none" : state.descending ? "descending" : "ascending");
    });
  };
  const head = document.querySelector(".labels thead tr");
  columns.forEach((column, k) => {
    const cell = document.createElement("th"), button = document.createElement("button");
    cell.scope = "col";
    button.type = "button";
    button.textContent = column.title;
    button.addEventListener("click", () => {
      state.descending = state.column === k ? !state.descending : k !== 0;
      state.column = k;
      show();
    });
    cell.append(button);
    head.append(cell);
  });
  if (hasCurves) { const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = "at every threshold"; head.append(cell); }
  document.getElementById("filter").addEventListener("input", (event) => { state.filter = event.target.value; show(); });
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  show();
})();
