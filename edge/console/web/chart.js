// Small charts as SVG. Time runs to the right and ends now; the y axis begins at 0.

import { h } from "./dom.js";
import { say } from "./words.js";

const WIDTH = 300;
const HEIGHT = 64;

/**
 * One figure. `lines`: each `{ tone, points: [{ age_s, value }] }`, where a value of null is a gap; the first one is the
 * one that is told. `span`: how long `span_s` is, in words; `text`: a value in words.
 */
export function chart(title, lines, { span_s, span, text }) {
  const values = lines.flatMap((line) => line.points.map((point) => point.value)).filter((value) => value !== null);
  const high = Math.max(...values, 0);
  const now = lines.map((line) => line.points.at(-1)?.value ?? null).map((value) => (value === null ? say("none") : text(value)));
  const told = { name: title, now: together(now), high: values.length ? text(high) : say("none"), span };
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, h("span", {}, title), h("strong", {}, told.now)),
    h(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": say("chart.says", told) },
      h("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT - 1, y2: HEIGHT - 1 }),
      lines.map((line) => drawn(line, span_s, high)),
    ),
    h("p", { class: "scale" }, h("span", {}, say("chart.span", { span })), h("span", {}, values.length ? say("chart.high", { high: told.high }) : say("chart.empty"))),
  );
}

/** `150 / 480 ms` rather than the unit twice; what is no number, as the dash for none, has no unit. */
function together(texts) {
  const [unit, ...others] = texts.map((text) => /^[\d.,]+(.*)$/.exec(text)?.[1]);
  return others.length && unit && others.every((other) => other === unit)
    ? texts.map((text) => text.slice(0, -unit.length)).join(" / ") + unit
    : texts.join(" / ");
}

function drawn(line, span_s, high) {
  const x = (point) => WIDTH * (1 - point.age_s / span_s);
  const y = (point) => HEIGHT - 1 - (HEIGHT - 6) * (high ? point.value / high : 0);
  const runs = [[]];
  for (const point of line.points) {
    if (point.age_s > span_s) continue;
    if (point.value === null) runs.push([]);
    else runs.at(-1).push(`${x(point).toFixed(1)},${y(point).toFixed(1)}`);
  }
  // A lone point is a line of no length, which its round cap makes a dot.
  const path = runs.filter((run) => run.length).map((run) => `M${run[0]}L${run.length > 1 ? run.slice(1).join("L") : run[0]}`);
  return h("path", { class: line.tone, d: path.join("") });
}
