"use strict";
// A table of labels: sorted by the buttons in its heading, searched by name. A column has a title, a value to sort by
// (`of`) and what stands in its cells (`cell`: text or an element).

const labelTable = ({ labels, count, noun, columns, column = 0, extra = null }) => {
  const number = new Intl.NumberFormat("en");
  const state = { column, descending: true, filter: "" };
  const body = document.querySelector(".labels tbody");
  const made = new Map(); // rows are made once, when they are first shown
  const rowOf = (label) => {
    if (made.has(label)) return made.get(label);
    const row = document.createElement("tr");
    columns.forEach((column, k) => {
      const cell = document.createElement(k === 0 ? "th" : "td");
      if (k === 0) cell.scope = "row";
      cell.append(column.cell(label));
      row.append(cell);
    });
    if (extra) { const cell = document.createElement("td"); cell.append(extra.cell(label)); row.append(cell); }
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
    const shown = labels.filter((l) => l.name.toLowerCase().includes(wanted)).sort(compare);
    body.replaceChildren(...shown.map(rowOf));
    document.getElementById("count").textContent = `${number.format(shown.length)} of ${number.format(count)} ${noun}`;
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
  if (extra) { const cell = document.createElement("th"); cell.scope = "col"; cell.textContent = extra.title; head.append(cell); }
  document.getElementById("filter").addEventListener("input", (event) => { state.filter = event.target.value; show(); });
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  show();
};
