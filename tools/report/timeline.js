// Where things stand on the time scale: the window, the rows, and what lies under a
// point. Nothing is drawn here.

const PHASES = { forward: "forward", backward: "backward", optimizer: "optimizer", step: "step" };
const MOST_ROWS = 8, MOST_THREADS = 3;
const LEAST_WINDOW = 20; // ns
const layout = { top: 22, side: 22, thread: 10, replay: 9, row: 34, between: 22, overview: 26, gutter: 92 };

function decode(column) {
  let at = 0;
  column.start = column.start.map((step) => (at += step));
  return column;
}

function prepareSide(side) {
  for (const device of side.devices) {
    decode(device.gap);
    decode(device.replay);
    device.rows.forEach(decode);
    device.drawn = device.rows.slice(0, MOST_ROWS);
    // Without ranges of its own a trace has its steps between the gaps that part them.
    device.marks = side.steps.length ? side.steps : device.gap.start
      .map((start, i) => start + device.gap.ns[i]).filter((_, i) => device.gap.between_steps[i]);
  }
  side.threads.forEach(decode);
  side.drawn = side.threads.filter((thread) => thread.launched.some((n) => n > 0)).slice(0, MOST_THREADS);
  side.rows_hidden = side.devices.reduce((sum, device) => sum + device.rows.length - device.drawn.length, 0);
}

const view = { from: 0, to: 1, first: 0, last: 1, home: [0, 1], width: 0, height: 0, rows: [], selected: -1 };

function prepareView() {
  const starts = [], ends = [];
  let first = Infinity, last = -Infinity;

  data.sides.forEach(prepareSide);
  for (const side of data.sides) {
    for (const device of side.devices) {
      starts.push(device.start);
      ends.push(data.cut_ns === null ? device.start + device.span : Math.min(device.start + device.span, data.cut_ns));
    }
    for (const thread of side.threads)
      for (let i = 0; i < thread.start.length; i++) {
        first = Math.min(first, thread.start[i]);
        last = Math.max(last, thread.start[i] + thread.ns[i]);
      }
  }
  const start = starts.length ? Math.min(...starts) : isFinite(first) ? first : 0;
  const end = ends.length ? Math.max(...ends) : isFinite(last) ? last : 1;
  const margin = Math.max((end - start) * 0.01, 1);
  view.home = [Math.max(0, start - margin), end + margin];
  view.first = Math.min(first, view.home[0]);
  view.last = Math.max(last, view.home[1]);
  [view.from, view.to] = view.home;
  // The first look falls on two steps: all of them show how long they take together, and
  // little of what they are made of.
  const marks = data.sides.length && data.sides[0].devices.length ? data.sides[0].devices[0].marks : [];
  if (marks.length > 3) setWindow(view.home[0], Math.min(marks[data.sides[0].steps.length ? 2 : 1] + margin, view.home[1]));
}

// Rows from top to bottom for this width; the height follows.
function placeRows(width) {
  const rows = [];
  let y = layout.top;

  view.width = width;
  view.left = width < 560 ? 62 : layout.gutter;
  view.right = width - 10;
  data.sides.forEach((side, s) => {
    const top = y;
    rows.push({ kind: "title", side: s, y, height: layout.side });
    y += layout.side;
    side.drawn.forEach((thread, i) => {
      rows.push({ kind: "thread", side: s, thread, first: i === 0, y, height: layout.thread });
      y += layout.thread + 4;
    });
    side.devices.forEach((device, d) => {
      if (device.replay.start.length) {
        rows.push({ kind: "replay", side: s, device, y, height: layout.replay });
        y += layout.replay + 2;
      }
      const from = y;
      y += 2;
      for (const row of device.drawn) {
        rows.push({ kind: "stream", side: s, device, row, y, height: layout.row });
        y += layout.row + 2;
      }
      rows.push({ kind: "band", side: s, device, index: d, y: from, height: y - from });
      y += 6;
    });
    rows.push({ kind: "side", side: s, y: top, height: y - top });
    y += layout.between - 6;
  });
  rows.push({ kind: "overview", y, height: layout.overview });
  view.rows = rows;
  view.height = y + layout.overview + 8;
}

function xOf(t) {
  return view.left + (t - view.from) / (view.to - view.from) * (view.right - view.left);
}

function timeAt(x) {
  return view.from + (x - view.left) / (view.right - view.left) * (view.to - view.from);
}

// True when the window changed.
function setWindow(from, to) {
  const most = view.last - view.first;
  let length = Math.min(Math.max(to - from, Math.min(LEAST_WINDOW, most)), most);
  const middle = (from + to) / 2;

  if (length !== to - from) from = middle - length / 2;
  from = Math.min(Math.max(from, view.first), view.last - length);
  const changed = Math.abs(from - view.from) + Math.abs(from + length - view.to) > length * 1e-9;
  view.from = from;
  view.to = from + length;
  return changed;
}

// By a factor below 1 the window gets smaller; what is at `x` stays there.
function zoom(factor, x) {
  const at = timeAt(x === undefined ? (view.left + view.right) / 2 : x);
  return setWindow(at - (at - view.from) * factor, at + (view.to - at) * factor);
}

function pan(share) {
  const by = (view.to - view.from) * share;
  return setWindow(view.from + by, view.to + by);
}

// The first index whose start lies beyond `t`.
function firstAfter(start, t) {
  let low = 0, high = start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle] > t) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Index of the slice at pixel x, give or take 2; -1.
function sliceAt(column, x) {
  const t = timeAt(x), slack = (view.to - view.from) / (view.right - view.left) * 2;
  const behind = firstAfter(column.start, t + slack);
  let best = -1, nearest = Infinity;

  for (let i = behind - 1; i >= 0 && i >= behind - 8; i--) {
    const off = Math.max(column.start[i] - t, t - column.start[i] - column.ns[i], 0);
    if (off <= slack && off < nearest) {
      best = i;
      nearest = off;
    }
  }
  return best;
}

// What is under a point: { kind, row, index }, or null. Work goes before gaps.
function hit(x, y) {
  if (x < view.left || x > view.right) return null;
  for (const row of view.rows) {
    if (y < row.y || y > row.y + row.height) continue;
    const column = row.kind === "stream" ? row.row : row.kind === "thread" ? row.thread : row.kind === "replay" ? row.device.replay : null;
    const index = column ? sliceAt(column, x) : -1;
    if (index >= 0) return { kind: row.kind, row, index };
  }
  for (const row of view.rows)
    if (row.kind === "band" && y >= row.y && y <= row.y + row.height) {
      const index = sliceAt(row.device.gap, x);
      if (index >= 0) return { kind: "gap", row, index };
    }
  return null;
}

// --- what a tip says ---

function opName(op) {
  return op < 0 ? "" : data.ops[op].name || "not claimed by an op";
}

function gapTip(row, i) {
  const gap = row.device.gap, side = data.sides[row.side];
  const why = {
    host: "The host had not begun the launch when the device fell idle.",
    launch: "The launch call was under way when the device fell idle.",
    device: "The work had been launched before; the device itself took this time.",
    unknown: "The trace has no launch call for what comes next.",
  }[classNames[gap.class[i]]];
  const launch = gap.launch[i];

  return [
    make("b", { text: `${classNames[gap.class[i]]} gap${gap.between_steps[i] ? " between steps" : ""}, ${time(gap.ns[i])}` }),
    make("div", { text: why + (launch !== null && launch > 0 ? ` Its launch began ${time(launch)} into the gap.` : "") }),
    make("span", { class: "name", text: "after " + shortName(side.names[gap.after[i]]) }),
    make("span", { class: "name", text: "before " + shortName(side.names[gap.before[i]]) }),
  ];
}

function tipOf(found) {
  const { row, index: i } = found;
  const side = data.sides[row.side];

  if (found.kind === "gap") return gapTip(row, i);
  if (found.kind === "replay")
    return [make("b", { text: `One launch of a graph, ${time(row.device.replay.ns[i])}` }),
      make("div", { text: `${side.title}, at ${time(row.device.replay.start[i])}` })];
  if (found.kind === "thread")
    return [make("b", { text: `${side.names[row.thread.name[i]]}, ${time(row.thread.ns[i])}` }),
      make("div", { text: `on the host, thread ${row.thread.thread}, at ${time(row.thread.start[i])}` +
        (row.thread.launched[i] > 1 ? `; it started ${count(row.thread.launched[i])} activities` : "") })];
  const name = side.names[row.row.name[i]], op = row.row.op[i];
  const kernels = op >= 0 && data.ops[op].sides[row.side] ? data.ops[op].sides[row.side].kernels : [];
  const kernel = kernels.find((one) => one.name === name);
  return [
    make("b", { text: `${data.profile && op >= 0 ? opName(op) : shortName(name)}, ${time(row.row.ns[i])}` }),
    make("div", { text: `${side.title}, ${row.row.label}, at ${time(row.row.start[i])}` +
      (kernel && kernel.grid ? `; grid ${dims(kernel.grid)}, block ${dims(kernel.block)}` : "") }),
    make("span", { class: "name", text: name }),
  ];
}
