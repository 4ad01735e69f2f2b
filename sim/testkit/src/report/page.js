"use strict";
// Moves the parts of the figure when a reader zooms, and links the story to them. Each part carries its times.
const byId = (id) => document.getElementById(id);
const figure = byId("figure"), frame = byId("frame"), tip = byId("tip"), axis = byId("axis");
const SVG = "http://www.w3.org/2000/svg";
const MS = 1e6;
let width = 1160, a = RUN.from, b = RUN.until, isPending = false;
const x = (t) => RUN.gutter + (t - a) / (b - a) * (width - RUN.gutter - RUN.edge);
const near = (t) => Math.max(-width, Math.min(2 * width, x(t)));
const time = (t) => (t / MS).toFixed(3) + " ms";

// The movable parts, read once. Titles are replaced by hints: browsers show titles late, and over the parts below.
const parts = [...byId("plot-items").children].map((node) => {
  const title = node.querySelector("title");
  const text = title ? title.textContent : "";
  if (title) title.remove();
  const steps = node.dataset.steps;
  return {
    node, text, kind: node.tagName, from: +node.dataset.a, until: +(node.dataset.b ?? node.dataset.a), isShown: true,
    steps: steps ? steps.split(" ").map((step) => step.split(",").map(Number)) : null,
    isLabel: node.classList.contains("on"), isFree: node.classList.contains("free"),
    isMessage: node.classList.contains("message"), size: node.textContent.length,
    y1: +node.getAttribute("y1"), y2: +node.getAttribute("y2"),
  };
});
const messages = parts.filter((part) => part.isMessage);
const lines = [...document.querySelectorAll("#story li")].map((node) => ({ node, at: +node.dataset.t }));

function show(part, isShown) {
  if (part.isShown !== isShown) {
    part.isShown = isShown;
    part.node.style.display = isShown ? "" : "none";
  }
}

function place(part) {
  if (part.steps) {
    let before = null, points = "";
    for (const [at, y] of part.steps) {
      const across = near(at).toFixed(1);
      if (before !== null) points += across + "," + before + " ";
      points += across + "," + y + " ";
      before = y;
    }
    part.node.setAttribute("points", points);
    return;
  }
  const name = byId("name").value.trim();
  const isNamed = !part.isMessage || !name || part.text.includes(name);
  const isSeen = isNamed && part.until >= a && part.from <= b && (!part.isMessage || byId("messages").checked);
  if (!isSeen) return show(part, false);
  const left = near(part.from), right = near(part.until);
  if (part.isLabel) {
    const start = Math.max(left, RUN.gutter), room = Math.min(right, width) - start;
    part.node.style.display = "";
    part.isShown = true;
    if (!part.isFree && room < 7 * part.size) return show(part, false);
    part.node.setAttribute("x", (start + 4).toFixed(1));
    return;
  }
  show(part, true);
  if (part.kind === "rect") {
    part.node.setAttribute("x", left.toFixed(1));
    part.node.setAttribute("width", Math.max(1.5, right - left).toFixed(1));
  } else if (part.kind === "line") {
    part.node.setAttribute("x1", left.toFixed(1));
    part.node.setAttribute("x2", right.toFixed(1));
  } else {
    part.node.setAttribute("x", left.toFixed(1));
  }
}

function ticks() {
  const span = b - a, most = Math.max(2, Math.min(10, (width - RUN.gutter) / 90));
  let step = 1;
  for (let power = 1; ; power *= 10) {
    const factor = [1, 2, 5].find((factor) => span / (power * factor) <= most);
    if (factor) { step = power * factor; break; }
  }
  axis.replaceChildren();
  for (let at = Math.ceil(a / step) * step; at <= b; at += step) {
    const line = document.createElementNS(SVG, "line"), text = document.createElementNS(SVG, "text");
    const across = x(at).toFixed(1);
    line.setAttribute("class", "grid");
    line.setAttribute("x1", across);
    line.setAttribute("x2", across);
    line.setAttribute("y1", RUN.axis);
    line.setAttribute("y2", RUN.height);
    text.setAttribute("class", "tick");
    text.setAttribute("x", across);
    text.setAttribute("y", 19);
    text.textContent = +(at / MS).toFixed(6) + " ms";
    axis.append(line, text);
  }
}

function draw() {
  isPending = false;
  width = Math.max(480, frame.clientWidth);
  const box = figure.viewBox.baseVal;
  figure.setAttribute("width", width);
  figure.setAttribute("viewBox", `0 0 ${width} ${box.height}`);
  byId("plot-area").setAttribute("width", Math.max(0, width - RUN.gutter));
  parts.forEach(place);
  ticks();
  const shown = byId("window");
  shown.setAttribute("x", a / RUN.end * 240);
  shown.setAttribute("width", Math.max(.8, (b - a) / RUN.end * 240));
  byId("caption").textContent = `Shown from ${time(a)} to ${time(b)}.`;
  const isFollowing = byId("follow").checked, name = byId("name").value.trim();
  let count = 0;
  for (const line of lines) {
    const isSeen = (!isFollowing || (line.at >= a && line.at <= b)) && (!name || line.node.textContent.includes(name));
    line.node.hidden = !isSeen;
    count += isSeen ? 1 : 0;
  }
  byId("count").textContent = count === lines.length ? `${count} lines` : `${count} of ${lines.length} lines`;
}

function redraw() {
  if (!isPending) {
    isPending = true;
    requestAnimationFrame(draw);
  }
}

function look(from, until) {
  const least = 1000, span = Math.min(RUN.end, Math.max(least, until - from));
  from = Math.max(0, Math.min(RUN.end - span, from));
  [a, b] = [from, from + span];
  redraw();
}

function zoom(factor, at = (a + b) / 2) {
  look(at - (at - a) * factor, at + (b - at) * factor);
}

const timeAt = (event) => {
  const left = figure.getBoundingClientRect().left + RUN.gutter;
  return a + (event.clientX - left) / (width - RUN.gutter - RUN.edge) * (b - a);
};

// Hints: the text of the part under the pointer.
let lit = null;
function hint(part, event) {
  if (lit) lit.node.classList.remove("lit");
  lit = part;
  tip.hidden = !part;
  if (!part) return;
  if (part.isMessage) part.node.classList.add("lit");
  tip.textContent = part.text;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.min(event.clientX + 14, innerWidth - box.width - 8) + "px";
  tip.style.top = Math.min(event.clientY + 16, innerHeight - box.height - 8) + "px";
}

function distance(part, px, py) {
  const x1 = x(part.from), x2 = x(part.until), dx = x2 - x1, dy = part.y2 - part.y1;
  const share = Math.max(0, Math.min(1, ((px - x1) * dx + (py - part.y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(px - x1 - share * dx, py - part.y1 - share * dy);
}

function under(event) {
  const hit = parts.find((part) => part.node === event.target && part.text && !part.isMessage);
  const isGround = hit && /^(state|wrong both|wrong waiting)/.test(hit.node.getAttribute("class"));
  if (hit && !isGround) return hit;
  const box = figure.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
  let best = null, least = 6;
  for (const part of messages) {
    if (!part.isShown) continue;
    const d = distance(part, px, py);
    if (d < least) [best, least] = [part, d];
  }
  return best ?? hit ?? null;
}

// Moving: the pointer drags the figure.
let grip = null;
frame.addEventListener("pointerdown", (event) => {
  grip = { at: event.clientX, a, b };
  frame.setPointerCapture(event.pointerId);
  frame.classList.add("dragged");
  hint(null);
});
frame.addEventListener("pointermove", (event) => {
  if (!grip) return hint(under(event), event);
  const by = (event.clientX - grip.at) / (width - RUN.gutter - RUN.edge) * (grip.b - grip.a);
  look(grip.a - by, grip.b - by);
});
frame.addEventListener("pointerup", () => { grip = null; frame.classList.remove("dragged"); });
frame.addEventListener("pointerleave", () => hint(null));
frame.addEventListener("wheel", (event) => {
  event.preventDefault();
  const sideways = event.shiftKey ? event.deltaY : event.deltaX;
  if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey) {
    const by = sideways / width * (b - a);
    return look(a + by, b + by);
  }
  zoom(Math.exp(event.deltaY / 500), timeAt(event));
}, { passive: false });
frame.addEventListener("keydown", (event) => {
  const by = (b - a) / 5;
  const keys = {
    ArrowLeft: () => look(a - by, b - by), ArrowRight: () => look(a + by, b + by),
    "+": () => zoom(.6), "=": () => zoom(.6), "-": () => zoom(1 / .6), 0: () => look(0, RUN.end),
  };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});
const overview = byId("overview");
const seek = (event) => {
  const box = overview.getBoundingClientRect(), half = (b - a) / 2;
  const at = (event.clientX - box.left) / box.width * RUN.end;
  look(at - half, at + half);
};
overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); seek(event); });
overview.addEventListener("pointermove", (event) => { if (event.buttons) seek(event); });
byId("in").addEventListener("click", () => zoom(.5));
byId("out").addEventListener("click", () => zoom(2));
byId("all").addEventListener("click", () => look(0, RUN.end));
byId("bad")?.addEventListener("click", () => {
  const half = (RUN.until - RUN.from) / 2;
  look(RUN.violated - half, RUN.violated + half);
});
byId("messages").addEventListener("change", redraw);
byId("follow").addEventListener("change", redraw);
byId("name").addEventListener("input", redraw);
byId("slice")?.addEventListener("change", (event) => figure.classList.toggle("plain", !event.target.checked));
const toLine = (event) => {
  const node = event.target.closest("li");
  if (!node) return;
  document.querySelectorAll("#story .near, .events .near").forEach((other) => other.classList.remove("near"));
  node.classList.add("near");
  const at = +node.dataset.t, half = Math.min(b - a, RUN.end / 4) / 2;
  look(at - half, at + half);
};
byId("story").addEventListener("click", toLine);
document.querySelectorAll(".events").forEach((list) => list.addEventListener("click", toLine));
addEventListener("resize", redraw);
draw();
