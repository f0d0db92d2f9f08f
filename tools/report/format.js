// Numbers as people read them, and elements.

const data = JSON.parse(document.getElementById("data").textContent);
const classNames = data.classes;

function significant(value, digits) {
  if (value === 0) return "0";
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(places, 12));
}

// [number, unit]; ["n/a", ""] for what was not measured.
function timeParts(ns) {
  if (ns === null || ns === undefined || !isFinite(ns)) return ["n/a", ""];
  const size = Math.abs(ns);
  if (size < 999.5) return [Number.isInteger(ns) ? String(ns) : significant(ns, 3), "ns"];
  if (size < 999.5e3) return [significant(ns / 1e3, 3), "µs"];
  if (size < 999.5e6) return [significant(ns / 1e6, 3), "ms"];
  return [significant(ns / 1e9, 3), "s"];
}

function joined(parts) {
  return parts[1] ? parts[0] + "\u202f" + parts[1] : parts[0];
}

function time(ns) {
  return joined(timeParts(ns));
}

function seconds(s) {
  return time(s === null ? null : s * 1e9);
}

function count(n) {
  if (n === null || n === undefined) return "n/a";
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function percent(share) {
  if (share === null || share === undefined || !isFinite(share)) return "n/a";
  return (share * 100).toFixed(1) + "%";
}

function scaled(value, unit) {
  if (value === null || value === undefined) return "n/a";
  const steps = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  for (const [size, letter] of steps)
    if (Math.abs(value) >= size * 0.9995) return significant(value / size, 3) + "\u202f" + letter + unit;
  return significant(value, 3) + (unit ? "\u202f" + unit : "");
}

function bytes(value) {
  if (value === null || value === undefined) return "n/a";
  const steps = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
  for (const [size, unit] of steps)
    if (value >= size) return significant(value / size, 3) + "\u202f" + unit;
  return count(value) + "\u202fB";
}

function dims(list) {
  return list ? list.join("\u00d7") : "n/a";
}

// An element with properties and children; texts stay texts.
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

function shorten(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "\u2026" : text;
}

// A kernel's name without its arguments, and of its template's arguments the outer ones,
// without namespaces: "at::native::reduce_kernel<512, 1, ReduceOp>".
function shortName(name) {
  const plain = name.replace(/^void /, "").replace(/(\(anonymous namespace\)|<unnamed>)::/g, "");
  let depth = 0, out = "";

  for (let i = 0; i < plain.length; i++) {
    const letter = plain[i];
    if (letter === "(" && depth === 0 && !plain.startsWith("()", i)) break;
    if (letter === "<" || letter === "(") depth++;
    if (depth === 0 || (depth === 1 && letter !== "(")) out += letter;
    if (letter === ">" || letter === ")") {
      if (depth === 1 && letter === ">" && !out.endsWith(">")) out += letter;
      depth = Math.max(0, depth - 1);
    }
  }
  const at = out.indexOf("<");
  return (at < 0 ? out : out.slice(0, at) + out.slice(at).replace(/\b\w+::/g, "").replace(/\(\w+\)/g, "")) || name;
}

// What fits into a bar: the last part, without template.
function barName(name) {
  return shortName(name).replace(/<.*$/, "").replace(/^.*::/, "");
}

// What tells the titles of two sides apart: "eager" of "mnist_eager.sqlite".
function distinct(titles) {
  const [a, b] = titles;
  const edge = (word, i) => i <= 0 || i >= word.length || !/\w/.test(word[i - 1]) || word[i - 1] === "_" || !/\w/.test(word[i]) || word[i] === "_";
  let start = 0, end = 0;

  if (!b || a === b) return titles;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (start > 0 && !(edge(a, start) && edge(b, start))) start--;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  while (end > 0 && !(edge(a, a.length - end) && edge(b, b.length - end))) end--;
  const short = titles.map((title) => title.slice(start, title.length - end).replace(/^[_.\-\s]+|[_.\-\s]+$/g, ""));
  return short.every((words) => words) ? short : titles;
}

distinct(data.sides.map((side) => side.title)).forEach((words, i) => (data.sides[i].short = shorten(words, 40)));
