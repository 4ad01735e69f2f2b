"use strict";
const filter = document.getElementById("filter"), count = document.getElementById("count");
const sections = [...document.querySelectorAll("section")].map((node) => ({ node, text: node.textContent.toLowerCase() }));
function show() {
  const words = filter.value.toLowerCase().split(" ").filter(Boolean);
  let shown = 0;
  for (const { node, text } of sections) {
    node.hidden = !words.every((word) => text.includes(word));
    shown += node.hidden ? 0 : 1;
  }
  const all = sections.length === 1 ? "1 scenario" : `${sections.length} scenarios`;
  count.textContent = shown === sections.length ? all : `${shown} of ${all}`;
}
filter.addEventListener("input", show);
show();
