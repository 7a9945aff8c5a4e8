// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Script and style of the page. All texts go into the document as text, none as markup.
#include "softib/picture/page.h"

namespace ib::softib {

const char* const kPageStyle = R"(
html, body { margin: 0; height: 100%; font: 13px "DejaVu Sans", Verdana, Arial, sans-serif; color: #1b1f24;
  background: #ffffff; }
body { display: grid; grid-template: auto 1fr / 1fr auto; }
header { grid-column: 1 / 3; padding: 6px 10px; display: flex; gap: 6px; align-items: center;
  border-bottom: 1px solid #8b949e; }
header input { width: 17em; font: inherit; padding: 3px 6px; }
header button { font: inherit; min-width: 2.2em; }
#news { margin-left: auto; font-weight: bold; }
main { overflow: hidden; min-height: 0; }
main svg { width: 100%; height: 100%; cursor: grab; touch-action: none; display: block; }
.box, .line { cursor: pointer; }
aside { width: 30em; max-width: 45vw; overflow: auto; padding: 0 12px; border-left: 1px solid #8b949e; }
aside h2 { font-size: 15px; overflow-wrap: anywhere; }
aside table { border-collapse: collapse; font-size: 12px; }
aside th, aside td { text-align: left; vertical-align: top; padding: 2px 8px 2px 0; overflow-wrap: anywhere; }
aside tr + tr { border-top: 1px solid #8b949e55; }
aside button { font: inherit; border: 0; padding: 0; background: none; color: #0550ae; text-decoration: underline;
  cursor: pointer; text-align: left; }
[data-selected] rect { stroke: #1b1f24 !important; stroke-width: 3 !important; }
[data-selected] .hit { stroke: #1b1f2444; }
.searching .box:not([data-match]), .searching .line { opacity: 0.25; }
@media (prefers-color-scheme: dark) {
  html, body { color: #e6e9ed; background: #14171b; }
  aside button { color: #79b8ff; }
  [data-selected] rect { stroke: #ffffff !important; }
  [data-selected] .hit { stroke: #ffffff55; }
}
)";

const char* const kPageScript = R"js("use strict";
(() => {
const get = id => document.getElementById(id);
const structure = JSON.parse(get("structure").textContent);
const state = JSON.parse(get("state").textContent);
const svg = get("picture");
const boxOf = [];
structure.boxes.forEach((members, box) => members.forEach(member => { boxOf[member] = box; }));
const lineOf = new Map();  // "element/port" of either end
structure.lines.forEach((cables, line) => cables.forEach(([element, number]) => {
  lineOf.set(element + "/" + number, line);
  const port = state.elements[element].p.find(one => one[0] === number);
  lineOf.set(port[4] + "/" + port[5], line);
}));
const [NUMBER, STATE, LID, RATE, PEER, PEER_PORT, BYTES, PACKETS, ERRORS] = [0, 1, 2, 3, 4, 5, 6, 7, 8];

// --- pan and zoom: the part of the picture that is seen ---

const all = svg.getAttribute("viewBox").split(" ").map(Number);
let view = [...all];
svg.removeAttribute("width");
svg.removeAttribute("height");
const look = () => svg.setAttribute("viewBox", view.join(" "));
const whole = () => { view = [...all]; look(); };
function pointAt(event) {
  return new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
}
function zoom(factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) {
  const width = Math.min(Math.max(view[2] * factor, 40), all[2] * 4);
  factor = width / view[2];
  view = [x - (x - view[0]) * factor, y - (y - view[1]) * factor, width, view[3] * factor];
  look();
}
svg.addEventListener("wheel", event => {
  event.preventDefault();
  const {x, y} = pointAt(event);
  zoom(Math.exp(event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)), x, y);
}, {passive: false});
let drag = null;
svg.addEventListener("pointerdown", event => {
  if (event.button !== 0) return;
  drag = {x: event.clientX, y: event.clientY, start: [...view], moved: false};
});
addEventListener("pointermove", event => {
  if (!drag) return;
  const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
  drag.moved = drag.moved || Math.hypot(dx, dy) > 4;
  if (!drag.moved) return;
  const scale = 1 / svg.getScreenCTM().a;
  view = [drag.start[0] - dx * scale, drag.start[1] - dy * scale, view[2], view[3]];
  look();
});
addEventListener("pointerup", () => { setTimeout(() => { drag = null; }); });
get("in").addEventListener("click", () => zoom(0.7));
get("out").addEventListener("click", () => zoom(1 / 0.7));
get("whole").addEventListener("click", whole);
addEventListener("keydown", event => {
  if (event.target.tagName === "INPUT") return;
  const step = view[2] / 10;
  const move = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step]}[event.key];
  if (move) { view[0] += move[0]; view[1] += move[1]; look(); }
  if (event.key === "+") zoom(0.7);
  if (event.key === "-") zoom(1 / 0.7);
  if (event.key === "0") whole();
  if (event.key === "Escape") select(null);
});
function lookAt(box) {
  const rect = get("b" + box).getBoundingClientRect();
  const inverse = svg.getScreenCTM().inverse();
  const middle = new DOMPoint(rect.x + rect.width / 2, rect.y + rect.height / 2).matrixTransform(inverse);
  const width = Math.min(all[2], Math.max(900, view[2] / 2));
  view = [middle.x - width / 2, middle.y - width * view[3] / view[2] / 2, width, width * view[3] / view[2]];
  look();
}

// --- facts of what was clicked ---

const facts = get("facts");
let selected = null;  // {kind: "box" | "line" | "element", number}
function make(tag, text, parent) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (parent) parent.append(made);
  return made;
}
function row(table, cells) {
  const made = make("tr", undefined, table);
  for (const cell of cells) {
    const place = make("td", undefined, made);
    if (cell instanceof Node) place.append(cell); else place.textContent = cell;
  }
}
function link(text, kind, number) {
  const made = make("button", text);
  made.addEventListener("click", () => select({kind, number}));
  return made;
}
const MOST_ROWS = 500;
function rows(table, list, toCells) {
  list.slice(0, MOST_ROWS).forEach(one => row(table, toCells(one)));
  if (list.length > MOST_ROWS) row(table, ["and " + (list.length - MOST_ROWS) + " more"]);
}
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (count >= 1024 && unit + 1 < units.length) { count /= 1024; ++unit; }
  return (unit ? count.toFixed(1) : count) + " " + units[unit];
}
const nameOf = element => state.elements[element].n || state.elements[element].g;
function worst(element) {
  const order = ["active", "armed", "init", "down"];
  const cabled = state.elements[element].p.filter(port => port[PEER] >= 0);
  return order[Math.max(0, ...cabled.map(port => order.indexOf(port[STATE])))];
}
function elementFacts(number) {
  const element = state.elements[number];
  make("h2", nameOf(number), facts);
  const table = make("table", undefined, facts);
  row(table, ["kind", element.there ? element.k : element.k + (element.k === "switch" ? ", no power" : ", not present")]);
  if (element.g) row(table, ["GUID", element.g]);
  if (element.node) row(table, ["node", element.node]);
  if (element.l) row(table, ["LID", element.l]);
  row(table, ["programs", element.pr.length ? element.pr.join(", ") : "none"]);
  if (state.boxes[boxOf[number]] && structure.boxes[boxOf[number]].length > 1) {
    row(table, ["in the box", link(state.boxes[boxOf[number]].n, "box", boxOf[number])]);
  }
  const ports = make("table", undefined, facts);
  const head = make("tr", undefined, ports);
  ["port", "state", "LID", "link", "other end", "data", "packets", "errors"].forEach(text => make("th", text, head));
  rows(ports, element.p, port => [
    port[NUMBER], port[STATE], port[LID] || "", port[RATE],
    port[PEER] < 0 ? "no cable" : link(nameOf(port[PEER]) + " port " + port[PEER_PORT], "element", port[PEER]),
    bytes(port[BYTES]), port[PACKETS], port[ERRORS] || "0"]);
}
function boxFacts(number) {
  const members = structure.boxes[number];
  if (members.length === 1) return elementFacts(members[0]);
  make("h2", state.boxes[number].n, facts);
  const table = make("table", undefined, facts);
  rows(table, members, member => [link(nameOf(member), "element", member), worst(member),
    state.elements[member].pr.join(", ")]);
}
function lineFacts(number) {
  make("h2", state.lines[number].t, facts);
  const table = make("table", undefined, facts);
  rows(table, structure.lines[number], ([element, end]) => {
    const port = state.elements[element].p.find(one => one[NUMBER] === end);
    const other = state.elements[port[PEER]].p.find(one => one[NUMBER] === port[PEER_PORT]);
    return [link(nameOf(element) + " port " + end, "element", element), port[STATE],
      link(nameOf(port[PEER]) + " port " + port[PEER_PORT], "element", port[PEER]), other[STATE],
      port[RATE], bytes(Math.max(port[BYTES], other[BYTES])),
      [port[ERRORS], other[ERRORS]].filter(Boolean).join("; ")];
  });
}
function showFacts() {
  facts.replaceChildren();
  facts.hidden = !selected;
  if (selected) ({element: elementFacts, box: boxFacts, line: lineFacts})[selected.kind](selected.number);
}
function select(what) {
  svg.querySelectorAll("[data-selected]").forEach(one => one.removeAttribute("data-selected"));
  selected = what;
  const id = !what ? null : what.kind === "line" ? "l" + what.number
    : "b" + (what.kind === "box" ? what.number : boxOf[what.number]);
  if (id) get(id).setAttribute("data-selected", "");
  showFacts();
}
svg.addEventListener("click", event => {
  if (drag && drag.moved) return;
  const hit = event.target.closest(".box, .line");
  if (!hit || !hit.id) return select(null);
  select({kind: hit.id[0] === "b" ? "box" : "line", number: Number(hit.id.slice(1))});
});

// --- search ---

let matches = [];
let place = 0;
function search() {
  const wanted = get("search").value.trim().toLowerCase();
  svg.querySelectorAll("[data-match]").forEach(one => one.removeAttribute("data-match"));
  const fits = element => [element.n, element.g, element.node, ...element.pr].some(
    text => text.toLowerCase().includes(wanted)) || "lid " + element.l === wanted ||
    element.p.some(port => "lid " + port[LID] === wanted || String(port[LID]) === wanted);
  matches = wanted ? [...state.elements.keys()].filter(number => fits(state.elements[number])) : [];
  place = 0;
  matches.forEach(number => get("b" + boxOf[number]).setAttribute("data-match", ""));
  svg.classList.toggle("searching", wanted !== "");
  get("found").textContent = wanted ? matches.length + " found" : "";
}
get("search").addEventListener("input", search);
get("search").addEventListener("keydown", event => {
  if (event.key !== "Enter" || !matches.length) return;
  const number = matches[place++ % matches.length];
  lookAt(boxOf[number]);
  select({kind: "element", number});
});

// --- following a running fabric ---

function showBox(number, box) {
  state.boxes[number] = box;
  const shown = get("b" + number);
  shown.setAttribute("class", box.c);
  const texts = shown.querySelectorAll("text");
  [box.n, ...box.t].forEach((text, i) => { if (texts[i]) texts[i].textContent = text; });
}
function showLine(number, line) {
  state.lines[number] = line;
  const shown = get("l" + number);
  shown.setAttribute("class", line.c);
  shown.querySelector(".wire").setAttribute("stroke-width", line.w);
  const marks = get("m" + number);
  marks.setAttribute("class", line.c);
  marks.querySelector(".note").textContent = line.n;
  shown.querySelector("title").textContent = line.t;
  if (!line.c.startsWith("line active")) shown.parentNode.append(shown);
}
function follow(news) {
  for (const [number, box] of Object.entries(news.boxes)) showBox(number, box);
  for (const [number, line] of Object.entries(news.lines)) showLine(number, line);
  for (const [number, element] of Object.entries(news.elements)) state.elements[number] = element;
  get("summary").textContent = news.summary;
  get("hottest").textContent = news.hottest;
  if (Object.keys(news.elements).length) showFacts();
}
const layout = Number(document.body.dataset.layout);
let version = Number(document.body.dataset.version);
let failures = 0;
async function poll() {
  let pause = 400;
  try {
    const token = new URLSearchParams(location.search).get("token");
    const answer = await fetch("state.json?token=" + token + "&since=" + version, {cache: "no-store"});
    if (!answer.ok) throw new Error(answer.status);
    const news = await answer.json();
    if (news.layout !== layout) return location.reload();
    follow(news);
    version = news.version;
    failures = 0;
    get("news").textContent = "live";
  } catch (error) {
    ++failures;
    pause = 1000;
    get("news").textContent = failures < 3 ? "no answer" : "ended: this is how the fabric was";
  }
  document.body.dataset.version = version;
  setTimeout(poll, pause);
}
if (layout !== 0) poll();
})();
)js";

}  // namespace ib::softib
