// Search, filters, sorting and comparing, without a server and without a framework.
// Every text of the index is untrusted: it becomes text nodes, never markup.
"use strict";

const kernelindex = (() => {
  const received = new Map();
  const waiting = new Map();

  // A page opened from a disk may load a script beside it, but may not read a file.
  function load(name, script) {
    if (received.has(name)) return Promise.resolve(received.get(name));
    return new Promise((resolve, reject) => {
      waiting.set(name, resolve);
      const element = document.createElement("script");
      element.src = script;
      element.onerror = () => reject(new Error(script + " could not be loaded"));
      document.head.append(element);
    });
  }

  function receive(name, data) {
    received.set(name, data);
    if (waiting.has(name)) waiting.get(name)(data);
  }

  return { load, receive };
})();

function made(tag, text, attributes) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  return element;
}

function latencyText(ns) {
  if (ns === null || ns === undefined) return "–";
  if (ns < 1e3) return ns.toFixed(0) + " ns";
  if (ns < 1e6) return (ns / 1e3).toFixed(1) + " µs";
  return (ns / 1e6).toFixed(3) + " ms";
}

function countText(number, noun) {
  return number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");
}

// Filters live in the address, so that a link shows what the sender saw.
function fromAddress(form) {
  const wanted = new URLSearchParams(location.search);
  for (const field of form.elements) {
    if (field.name && wanted.has(field.name)) field.value = wanted.get(field.name);
  }
}

function toAddress(form) {
  const address = new URLSearchParams(location.search);
  for (const field of form.elements) {
    if (!field.name) continue;
    if (field.value) address.set(field.name, field.value);
    else address.delete(field.name);
  }
  const query = address.toString();
  history.replaceState(null, "", location.pathname + (query ? "?" + query : "") + location.hash);
}

function onChange(form, act) {
  form.hidden = false;
  fromAddress(form);
  form.addEventListener("submit", (event) => event.preventDefault());
  // Some browsers and assistive tools send only the second of the two.
  for (const event of ["input", "change"]) {
    form.addEventListener(event, () => {
      toAddress(form);
      act();
    });
  }
  act();
}

function words(text) {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

function filterTable(form) {
  const rows = [...document.getElementById(form.dataset.filters).tBodies[0].rows];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const output = form.querySelector("output");
  onChange(form, () => {
    let shown = 0;
    rows.forEach((row, index) => {
      const keeps = [...form.elements].every((field) => {
        if (!field.name || !field.value) return true;
        if (field.type === "search") return words(field.value).every((w) => texts[index].includes(w));
        const value = row.dataset[field.name] || "";
        if ("words" in field.dataset) return value.split(field.dataset.words || " ").includes(field.value);
        return value === field.value;
      });
      row.hidden = !keeps;
      shown += keeps;
    });
    output.textContent = shown === rows.length ? countText(shown, "row") : `${shown} of ${countText(rows.length, "row")}`;
  });
}

// The workloads nearest to a wanted shape, by the ratio of each axis; exact ones come first.
function findShape(form) {
  const body = document.getElementById(form.dataset.shapes).tBodies[0];
  const rows = [...body.rows];
  const output = form.querySelector("output");
  const bound = new Map(rows.map((row) => [row, JSON.parse(row.dataset.axes)]));
  onChange(form, () => {
    const wanted = [...form.elements].filter((field) => field.type === "number" && field.value !== "");
    const gpu = form.elements.gpu.value;
    const here = rows.filter((row) => !gpu || row.dataset.gpu === gpu);
    const distance = (row) => wanted.reduce((sum, field) => {
      const has = Number(bound.get(row)[field.name]);
      return sum + Math.abs(Math.log((has + 1) / (Number(field.value) + 1)));
    }, 0);
    const exact = here.filter((row) => distance(row) === 0);
    const shown = exact.length ? exact : here.toSorted((a, b) => distance(a) - distance(b)).slice(0, 5);
    for (const row of rows) {
      row.hidden = !shown.includes(row);
      row.classList.toggle("near", !exact.length && shown.includes(row));
    }
    if (!wanted.length) output.textContent = countText(here.length, "group");
    else if (exact.length) output.textContent = countText(exact.length, "group") + " of exactly this shape";
    else output.textContent = `Nothing of exactly this shape; the ${shown.length} nearest are shown.`;
  });
}

function sortTable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = made("button", head.textContent, { type: "button" });
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const rows = [...table.tBodies[0].rows].sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        const [p, q] = [parseFloat(x), parseFloat(y)];
        const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y) : p - q;
        return ascending ? order : -order;
      });
      table.tBodies[0].append(...rows);
    });
  });
}

function listRuns(form) {
  const table = document.getElementById(form.dataset.runs);
  const root = table.dataset.root.replace(/index\.html$/, "");
  const more = document.querySelector(`[data-more="${table.id}"]`);
  const output = form.querySelector("output");
  const options = [...form.elements.operation.options].filter((option) => option.dataset.script);
  const page = 200;
  let limit = page;
  let turn = 0;

  function matches(data, run) {
    const text = (name) => data.words[run[data.columns.indexOf(name)]];
    const field = (name) => form.elements[name].value;
    return (
      (!field("author") || text("author") === field("author")) &&
      (!field("gpu") || text("gpu_product") === field("gpu")) &&
      (!field("status") || text("status") === field("status")) &&
      (!field("evidence") || text("evidence_level") === field("evidence")) &&
      (!field("dtype") || text("dtypes").split(" ").includes(field("dtype"))) &&
      words(field("q")).every((word) =>
        (run[0] + " " + ["operation", "workload", "solution", "author", "gpu_product"].map(text).join(" ")).toLowerCase().includes(word))
    );
  }

  function rowOf(data, run) {
    const value = (name) => run[data.columns.indexOf(name)];
    const text = (name) => data.words[value(name)];
    const row = made("tr");
    const cell = (content, kind) => {
      const made_ = made("td", content, kind ? { class: kind } : {});
      row.append(made_);
      return made_;
    };
    const head = made("th", null, { scope: "row" });
    head.append(made("a", run[0].slice(0, 8), { href: `${root}runs/${run[0]}.html` }));
    row.append(head);
    const what = cell(text("operation"));
    what.append(made("br"), made("small", text("workload")));
    cell(text("solution"));
    cell(text("author"));
    cell(text("gpu_product"));
    const passed = text("status") === "passed";
    cell().append(made("span", text("status").replaceAll("_", " "), { class: "badge " + (passed ? "good" : "bad") }));
    cell(text("evidence_level"));
    cell(latencyText(value("latency_ns")), "n");
    cell(value("rank") === null ? "–" : `${value("rank")} of ${value("group_size")}`, "n");
    return row;
  }

  async function show() {
    const mine = ++turn;
    const chosen = form.elements.operation.value;
    const wanted = options.filter((option) => (chosen ? option.value === chosen : "all" in form.dataset));
    if (!wanted.length) {
      output.textContent = "Choose an operation.";
      table.tBodies[0].replaceChildren();
      more.hidden = true;
      return;
    }
    const parts = await Promise.all(wanted.map((option) => kernelindex.load(option.dataset.name, option.dataset.script)));
    if (mine !== turn) return;
    let found = 0;
    const rows = [];
    for (const data of parts) {
      for (const run of data.rows) {
        if (!matches(data, run)) continue;
        if (++found <= limit) rows.push(rowOf(data, run));
      }
    }
    table.tBodies[0].replaceChildren(...rows);
    output.textContent = countText(found, "run");
    more.hidden = found <= limit;
  }

  more.addEventListener("click", () => {
    limit += page;
    show();
  });
  onChange(form, () => {
    limit = page;
    show();
  });
}

function compareRuns(form) {
  const runs = JSON.parse(document.getElementById(form.dataset.compare).textContent);
  const place = document.getElementById("comparison");
  const byName = new Map(runs.map((run) => [run.page.split("/").pop().replace(".html", ""), run]));
  const shown = [
    ["rank", (run) => `#${run.rank}`],
    ["author", (run) => run.author],
    ["latency", (run) => latencyText(run.primary_value)],
    ["vs reference, as reported", (run) => (run.reported_speedup === null ? "–" : run.reported_speedup.toFixed(2) + "x")],
    ["evidence", (run) => run.evidence_level],
    ["max absolute error", (run) => run.max_absolute_error ?? "–"],
    ["max relative error", (run) => run.max_relative_error ?? "–"],
    ["observed", (run) => run.observed_at],
    ["to know", (run) => run.caveats.map((code) => code.toLowerCase().replaceAll("_", " ")).join(", ") || "no caveat"],
  ];
  onChange(form, () => {
    const a = byName.get(form.elements.a.value);
    const b = byName.get(form.elements.b.value);
    if (!a || !b) return;
    const ratio = b.primary_value / a.primary_value;
    const verdict =
      a === b ? "A and B are the same run."
        : ratio === 1 ? "A and B are equal."
          : ratio > 1 ? `A is ${ratio.toFixed(2)}x as fast as B.`
            : `B is ${(1 / ratio).toFixed(2)}x as fast as A.`;
    const table = made("table");
    const head = made("tr");
    head.append(made("th", "", { scope: "col" }));
    for (const [name, run] of [["A", a], ["B", b]]) {
      const cell = made("th", null, { scope: "col" });
      cell.append(made("a", `${name}: ${run.solution}`, { href: "../" + run.page }));
      head.append(cell);
    }
    head.cells[0].append(made("span", "what", { class: "hidden" }));
    table.createTHead().append(head);
    const body = table.createTBody();
    for (const [label, read] of shown) {
      const row = made("tr");
      row.append(made("th", label, { scope: "row" }), made("td", read(a)), made("td", read(b)));
      body.append(row);
    }
    const box = made("div", null, { class: "scroll", role: "region", tabindex: "0", "aria-label": "Comparison" });
    box.append(table);
    place.replaceChildren(made("p", verdict, { class: "lead" }), box);
  });
}

async function search(form) {
  const results = document.getElementById("search-results");
  const count = document.getElementById("search-count");
  const root = results.dataset.root.replace(/index\.html$/, "");
  const data = await kernelindex.load("search", form.dataset.search);
  onChange(form, () => {
    const query = form.elements.q.value.trim();
    const digest = /^(?:sha256:)?([0-9a-f]{32})[0-9a-f]*$/i.exec(query);
    const asked = words(query);
    let found = [];
    if (digest) {
      const page = digest[1].toLowerCase();
      found = [["run", "run " + page.slice(0, 12), "if the index has one of this digest", `runs/${page}.html`],
        ...data.rows.filter((row) => row[3].includes(page))];
    } else if (asked.length) {
      found = data.rows.filter((row) => asked.every((word) => (row[1] + " " + row[2] + " " + row[0]).toLowerCase().includes(word)));
      const kinds = ["operation", "GPU", "author", "implementation"];
      const place = (row) => (row[1].toLowerCase().startsWith(asked[0]) ? 0 : kinds.length) + kinds.indexOf(row[0]);
      found.sort((x, y) => place(x) - place(y));
    }
    results.replaceChildren(...found.slice(0, 100).map(([kind, name, about, page]) => {
      const item = made("li");
      item.append(made("a", name, { href: root + page }), " ", made("span", kind, { class: "badge" }), made("br"), made("small", about));
      return item;
    }));
    count.textContent = query ? countText(found.length, "result") + (found.length > 100 ? ", the first 100 are shown" : "") : "";
  });
  form.elements.q.focus();
}

function copyButton(button) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

document.addEventListener("DOMContentLoaded", () => {
  const each = (selector, act) => document.querySelectorAll(selector).forEach(act);
  each("[data-filters]", filterTable);
  each("[data-shapes]", findShape);
  each("table.sortable", sortTable);
  each("[data-runs]", listRuns);
  each("[data-compare]", compareRuns);
  each("[data-search]", search);
  each("[data-copy]", copyButton);
  each("[data-accessed]", (element) => {
    element.textContent = ` (accessed ${new Date().toISOString().slice(0, 10)})`;
  });
});
