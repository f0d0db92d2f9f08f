// Tables: ops, which can be sorted and picked, and the plain ones.

const SHOWN_OPS = 30;
let opOrder = [], opColumns = [], sortedBy = 0, sortedDown = true, allOps = false;

function plainTable(table, head, rows) {
  if (head)
    table.append(make("thead", {}, make("tr", {}, ...head.map((one, i) =>
      make("th", { scope: "col", class: i === 0 || one.left ? "l" : null, text: one.text === undefined ? one : one.text })))));
  table.append(make("tbody", {}, ...rows.map((row) => make("tr", { class: row.sum ? "sum" : null },
    ...row.cells.map((cell, i) => i === 0
      ? make("th", { scope: "row", class: "l" }, cell)
      : make("td", { class: row.left && row.left.includes(i) ? "l" : null }, cell))))));
}

// --- ops ---

// The side that a figure of its own column is taken from: the last that has the op.
function figures(op) {
  return [...op.sides].reverse().find((side) => side) || null;
}

function kernelOf(op) {
  const side = figures(op);
  return side && side.kernels.length ? side.kernels[0] : null;
}

function column(label, value, show, options = {}) {
  return { label, value, show, ...options };
}

function ofSide(s, key, show) {
  const value = (op) => op.sides[s] ? op.sides[s][key] : null;
  return column(key, value, (op) => {
    const v = value(op);
    return v === null || v === undefined ? (op.sides[s] ? "n/a" : "\u2013") : show(v);
  }, { group: s });
}

function meter(share) {
  const bar = make("i");
  bar.style.width = Math.round(Math.max(0, Math.min(1, share)) * 100) + "%";
  return make("span", { class: "meter", "aria-hidden": "true" }, bar);
}

function makeColumns() {
  const own = (key, show) => column(key, (op) => figures(op) ? figures(op)[key] : null, (op) => {
    const side = figures(op);
    return side && side[key] !== null && side[key] !== undefined ? show(side[key]) : "n/a";
  });
  const columns = [column("op", (op) => op.name, (op) => op.name, { words: true, pick: true })];

  if (data.profile)
    columns.push(column("alternative", (op) => op.alternative, (op) => op.alternative, { words: true, mono: true }),
      column("phase", (op) => op.phase || "", (op) => op.phase || "\u2013", { words: true }));
  else if (data.ops.some((op) => op.kind !== "kernel"))
    columns.push(column("kind", (op) => op.kind, (op) => op.kind, { words: true }));
  if (data.profile) columns.push(own("calls", count));
  data.sides.forEach((_, s) => {
    if (!data.profile) columns.push(ofSide(s, "calls", count), ofSide(s, "total", time));
    columns.push({ ...ofSide(s, "share", percent), meter: true }, ofSide(s, "median", time), ofSide(s, "p95", time));
  });
  if (data.profile)
    columns.push({ ...own("flops", (v) => scaled(v, "")), label: "FLOPs" }, own("bytes", bytes),
      { ...own("flop_rate", (v) => scaled(v, "FLOP/s")), label: "FLOP rate" }, { ...own("byte_rate", (v) => scaled(v, "B/s")), label: "byte rate" },
      { ...own("of_floor", percent), label: "of floor" },
      column("bound by", (op) => (figures(op) || {}).bound || "", (op) => (figures(op) || {}).bound || "n/a", { words: true }));
  else {
    const kernel = (key, show) => column(key, (op) => {
      const one = kernelOf(op);
      return !one || one[key] === null ? null : Array.isArray(one[key]) ? one[key].reduce((a, b) => a * b, 1) : one[key];
    }, (op) => {
      const one = kernelOf(op);
      return one && one[key] !== null ? show(one[key]) : "n/a";
    });
    columns.push(kernel("grid", dims), kernel("block", dims), { ...kernel("registers", count), label: "regs" }, { ...kernel("shared", bytes), label: "shared" });
  }
  return columns;
}

function sortOps() {
  const { value, words } = opColumns[sortedBy];
  const sign = sortedDown ? -1 : 1;
  const keyed = data.ops.map((op, i) => [value(op), i]);

  // What is not known comes last, whichever way.
  keyed.sort(([a, i], [b, k]) => {
    const noA = a === null || a === undefined || a === "", noB = b === null || b === undefined || b === "";
    if (noA || noB) return noA - noB || i - k;
    return sign * (words ? String(a).localeCompare(String(b)) : a - b) || i - k;
  });
  opOrder = keyed.map(([, i]) => i);
}

function classOf(one, i) {
  const begins = data.sides.length > 1 && i > 0 && one.group !== opColumns[i - 1].group;
  return [one.words ? "l" : "", one.mono ? "name c-name" : "", begins ? "first" : ""].join(" ").trim() || null;
}

function headOfOps() {
  const groups = make("tr"), head = make("tr");
  const several = data.sides.length > 1;

  opColumns.forEach((one, i) => {
    const sorted = i === sortedBy ? (sortedDown ? "descending" : "ascending") : null;
    const button = make("button", { type: "button", text: one.label, onclick: () => sortBy(i) });
    head.append(make("th", { scope: "col", class: classOf(one, i), "aria-sort": sorted }, button));
    if (!several) return;
    const before = opColumns[i - 1];
    if (one.group !== undefined && (!before || before.group !== one.group))
      groups.append(make("th", { class: "group first", scope: "colgroup", colspan: opColumns.filter((other) => other.group === one.group).length,
        text: data.sides[one.group].short }));
    else if (one.group === undefined) groups.append(make("td"));
  });
  return make("thead", {}, several ? groups : null, head);
}

function sortBy(i) {
  if (i === sortedBy) sortedDown = !sortedDown;
  else {
    sortedBy = i;
    sortedDown = !opColumns[i].words;
  }
  showOps();
  byId("op-table").tHead.rows[byId("op-table").tHead.rows.length - 1].cells[i].firstChild.focus();
}

function kernelRows(op) {
  const rows = [];
  op.sides.forEach((side, s) => (side ? side.kernels : []).forEach((kernel) => rows.push(make("tr", {},
    data.sides.length > 1 ? make("td", { class: "l", text: data.sides[s].short }) : null,
    make("td", { class: "l name", text: kernel.name }),
    ...(data.profile ? [make("td", { text: count(kernel.calls) }), make("td", { text: time(kernel.median) })] : []),
    make("td", { text: dims(kernel.grid) }), make("td", { text: dims(kernel.block) }),
    make("td", { text: kernel.registers === null ? "n/a" : count(kernel.registers) }), make("td", { text: bytes(kernel.shared) })))));
  return make("table", {}, make("thead", {}, make("tr", {},
    ...(data.sides.length > 1 ? [""] : []).concat(["kernel"]).map((words) => make("th", { class: "l", text: words })),
    ...(data.profile ? ["calls", "median"] : []).concat(["grid", "block", "registers", "shared"]).map((words) => make("th", { text: words })))),
  make("tbody", {}, ...rows));
}

function rowOfOp(i) {
  const op = data.ops[i], picked = i === view.selected;
  const cells = opColumns.map((one, k) => {
    const words = one.show(op);
    if (one.pick) {
      const label = words || "not claimed by an op";
      return make("td", { class: "l" }, make("button", {
        type: "button", class: "pick", title: label, "aria-pressed": picked ? "true" : "false",
        text: data.profile ? label : shortName(label),
      }));
    }
    const cell = make("td", { class: classOf(one, k), title: one.mono ? words : null });
    if (one.meter && one.value(op) !== null) cell.append(meter(one.value(op)));
    cell.append(one.mono ? shortName(words) : words);
    return cell;
  });
  const row = make("tr", { class: "op" + (picked ? " picked" : ""), "data-op": i, onclick: () => select(view.selected === i ? -1 : i) }, ...cells);
  if (!picked) return [row];
  return [row, make("tr", { class: "detail" }, make("td", { colspan: opColumns.length }, kernelRows(op)))];
}

function showOps() {
  const table = byId("op-table"), focused = document.activeElement && document.activeElement.closest("tr[data-op]");
  const most = allOps || theme.printing || opOrder.length <= SHOWN_OPS + 5 ? opOrder.length : SHOWN_OPS;

  sortOps();
  const shown = opOrder.slice(0, Math.max(most, Math.min(opOrder.length, SHOWN_OPS)));
  if (view.selected >= 0 && !shown.includes(view.selected)) shown.push(view.selected);
  table.replaceChildren(headOfOps(), make("tbody", {}, ...shown.flatMap(rowOfOp)));
  const more = byId("more-ops");
  more.hidden = shown.length >= opOrder.length;
  more.textContent = `all ${count(opOrder.length)} ops`;
  if (focused) {
    const again = table.querySelector(`tr[data-op="${focused.dataset.op}"] .pick`);
    if (again) again.focus({ preventScroll: true });
  }
}

// Picks an op everywhere: on the timeline, in the table, in the roofline. -1: none.
function select(op, reveal) {
  view.selected = op;
  showOps();
  document.querySelectorAll(".point").forEach((point) => point.classList.toggle("picked", Number(point.dataset.op) === op));
  refresh();
  if (reveal && op >= 0) {
    const row = document.querySelector(`tr[data-op="${op}"]`);
    const box = byId("op-table").parentElement;
    if (row && box.scrollWidth > box.clientWidth) box.scrollLeft = 0;
  }
}

function startOps() {
  if (!data.ops.length) return byId("ops").remove();
  opColumns = makeColumns();
  sortedBy = opColumns.findIndex((one) => one.label === (data.profile ? "share" : "total"));
  opOrder = data.ops.map((_, i) => i);
  showOps();
  byId("more-ops").addEventListener("click", () => {
    allOps = true;
    showOps();
  });
  theme.listeners.push(showOps);
  byId("op-note").textContent = (data.profile
    ? "Median and p95 are those of a step. Rates, floor and bound are of the graph, where it was traced."
    : "One row a name. Launch shape of the last trace that has it.") +
    (data.ops_left_out ? ` ${count(data.ops_left_out)} names with less time are left out.` : "");
}

// --- gaps ---

function startGaps() {
  const sides = data.sides.filter((side) => side.devices.length);
  if (!sides.length) return byId("gaps").remove();
  const sum = (side, key, c, k) => side.devices.reduce((all, device) => all + device[key][c][k], 0);
  const steps = sides.map((side) => {
    const pass = data.profile ? data.profile.passes.find((one) => one.mode === side.title) : null;
    return pass && pass.n_steps ? pass.n_steps : side.n_steps;
  });
  const head = make("tr", {}, make("th", { scope: "col", class: "l", text: "class" })), groups = make("tr", {}, make("td"));
  const body = make("tbody");

  sides.forEach((side, s) => {
    const titles = ["gaps", "time", "of idle", ...(steps[s] ? ["gaps a step", "time a step"] : [])];
    head.append(...titles.map((words, i) => make("th", { scope: "col", class: i === 0 ? "first" : null, text: words })));
    groups.append(make("th", { class: "group first", scope: "colgroup", colspan: titles.length, text: side.short }));
  });
  const line = (label, always, values, sums) => {
    const row = make("tr", { class: sums ? "sum" : null }, make("th", { scope: "row", class: "l" }, label));
    let any = false;
    sides.forEach((side, s) => {
      const [n, ns] = values(side), idle = side.devices.reduce((all, device) => all + device.idle, 0);
      const cells = n ? [count(n), time(ns), percent(ns / idle), ...(steps[s] ? [significant(n / steps[s], 3), time(ns / steps[s])] : [])]
        : Array(steps[s] ? 5 : 3).fill("\u2013");
      any = any || n > 0;
      row.append(...cells.map((words, i) => make("td", { class: (i === 0 ? "first" : "") + (n ? "" : " none"), text: words })));
    });
    if (any || always) body.append(row);
  };
  const label = (name, words) => make("span", {}, swatch(name), words);
  const inside = (c) => (side) => [0, 1].map((k) => sum(side, "gaps", c, k) - sum(side, "step_gaps", c, k));
  const between = (c) => (side) => [0, 1].map((k) => sum(side, "step_gaps", c, k));
  const parted = sides.some((side) => classNames.some((_, c) => between(c)(side)[0] > 0));
  classNames.forEach((name, c) => line(label(name, name + (parted ? ", inside steps" : "")), name !== "unknown", inside(c)));
  classNames.forEach((name, c) => line(label(name, name + ", between steps"), false, between(c)));
  line("idle", true, (side) => [0, 1].map((k) => classNames.reduce((all, _, c) => all + sum(side, "gaps", c, k), 0)), true);
  byId("gap-table").append(make("thead", {}, sides.length > 1 ? groups : null, head), body);
  byId("gap-note").textContent = "host: the launch call began after the device fell idle. launch: it was under way. device: it had returned, or both sides of the gap belong to one launch of a graph. unknown: no such call is in the trace.";
}

function startLargest() {
  data.sides.forEach((side, s) => side.devices.forEach((device) => {
    if (!device.largest.length) return;
    byId("largest").append(make("div", {}, make("h3", { text: `Largest gaps, ${side.short}` }),
      make("ul", {}, ...device.largest.map((i) => make("li", {}, make("button", {
        type: "button",
        onclick: () => {
          const start = device.gap.start[i], ns = device.gap.ns[i];
          setWindow(start - ns * 0.6, start + ns * 1.6);
          refresh();
          canvas.focus({ preventScroll: true });
        },
      }, `${time(device.gap.ns[i])} ${classNames[device.gap.class[i]]}`))))));
  }));
}

// --- the plain ones of a profile ---

function startPasses(profile) {
  const names = ["eager", "graph"], label = (mode) => profile.ways.find((way) => way.name === mode);
  const rows = [];
  const line = (words, value) => rows.push({ cells: [words, ...profile.passes.map(value)] });

  line("untraced: a step, steady", (pass) => label(pass.mode) ? seconds(label(pass.mode).steady.median) : "n/a");
  line("traced: a step and the gap behind it", (pass) => pass.span === null ? "n/a" : time(pass.span + (pass.step_gap || 0)));
  line("span", (pass) => time(pass.span));
  line("busy", (pass) => time(pass.busy));
  line("idle", (pass) => time(pass.idle));
  line("gap behind a step", (pass) => time(pass.step_gap));
  line("kernels, copies, fills a step", (pass) => count(pass.kernels));
  if (profile.passes.some((pass) => pass.lane_overlap !== null)) line("several lanes at once", (pass) => time(pass.lane_overlap));
  startOverhead(profile.passes, line);
  line("steps traced", (pass) => pass.missing ? "n/a" : count(pass.n_steps));
  line("records found of expected", (pass) => pass.missing ? "n/a" : `${count(pass.found)} of ${count(pass.expected)}`);
  line("records lost", (pass) => pass.missing ? "n/a" : count(pass.dropped + pass.unknown) + (pass.corrupt ? `, ${count(pass.corrupt)} buffers corrupt` : ""));
  plainTable(byId("pass-table"), ["median", ...names], rows);
  byId("pass-note").textContent = ["Tracing costs time: read how long a step takes in the first row, and how it is made up in the others.",
    ...profile.passes.filter((pass) => pass.missing).map((pass) => `No trace of ${pass.mode}: ${pass.missing}`)].join(" ");
}

// A line for all overhead, then one a kind; a kind that a pass has none of took no time.
function startOverhead(passes, line) {
  const kinds = new Set(["", ...passes.flatMap((pass) => (pass.overhead || []).map((row) => row[0]))]);
  for (const kind of kinds)
    line(kind ? `  ${kind}` : "overhead of tracing and driver", (pass) => {
      if (!pass.overhead) return "n/a";
      const [, n, ns, nBefore, nsBefore] = pass.overhead.find((row) => row[0] === kind) || [kind, 0, 0, 0, 0];
      return `${time(ns)} in ${count(n)}; ${time(nsBefore)} in ${count(nBefore)} before`;
    });
}

function startLedger(profile) {
  const graph = profile.ways.find((way) => way.name === "graph");
  const most = Math.max(...profile.ledger.map((row) => row.s || 0));
  const rows = profile.ledger.map((row) => {
    return { cells: [row.name, meter(row.s && most ? row.s / most : 0), seconds(row.s)] };
  });
  rows.push({ cells: ["steady, a step", "", seconds(graph.steady.median)], sum: true });
  rows.push({ cells: ["pays back after", "", profile.pays_after === null ? (graph.steady.n ? "never" : "n/a") : `${count(profile.pays_after)} steps`] });
  plainTable(byId("ledger-table"), null, rows);
}

function startFacts(profile) {
  plainTable(byId("memory-table"), null, profile.memory.map((row) => ({ cells: [row.name, row.what, bytes(row.bytes)], left: [1] })));
  for (const [name, value] of profile.environment)
    byId("environment-list").append(make("dt", { text: name }), make("dd", { text: value === null ? "n/a" : value }));
  if (!profile.patterns.length) return byId("patterns").remove();
  for (const pattern of profile.patterns)
    byId("pattern-list").append(make("dt", { text: pattern.name }), make("dd", {}, pattern.found, make("span", { text: pattern.advice })));
}
