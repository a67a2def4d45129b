// Small parts that several pages show.

import { announce, h } from "./dom.js";
import { say } from "./words.js";

const SHAPES = {
  good: "M4 12.5 9.5 18 20 6.5",
  warning: "M12 4 22 20H2ZM12 10v4.5M12 17v.5",
  bad: "M6 6 18 18M18 6 6 18",
  unknown: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.5",
  waiting: "M12 6v6l4 2.5",
};

/** A sign for a tone; what it means always stands beside it in words. */
export function sign(tone) {
  return h(
    "svg",
    { class: `sign ${tone}`, viewBox: "0 0 24 24", "aria-hidden": "true" },
    h("path", { d: SHAPES[tone] }),
  );
}

/** A button that copies a text. Who listens is `copyOnClick`. */
export function copyButton(text, what = "") {
  return h("button", { type: "button", class: "quiet", "data-copy": text, "aria-label": `${say("copy")} ${what}`.trim() }, say("copy"));
}

/** Listen, once for the page, to all of them. */
export function copyOnClick(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    await copied(button.dataset.copy);
    announce(say("copied"));
    button.textContent = say("copied");
    setTimeout(() => (button.textContent = say("copy")), 1500);
  });
}

async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = h("textarea", { class: "unseen" }); // over plain HTTP there is no other way
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  return area.remove();
}

/** A table whose columns are headings, and whose rows are lists of cells. Wide ones scroll inside themselves. */
export function grid(headings, rows, { label, numeric = [] } = {}) {
  const side = (index) => ({ class: numeric.includes(index) ? "number" : null });
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": label },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, headings.map((heading, index) => h("th", { scope: "col", ...side(index) }, heading)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, index) => h("td", side(index), cell))))),
    ),
  );
}
