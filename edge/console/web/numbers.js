// The numbers of an answer as tables: every call has its own, and what none of them shows stands in the JSON.

import { h } from "./dom.js";
import { grid } from "./parts.js";
import { named, number, say } from "./words.js";

/** Tables for whatever of these `data` holds. */
export function numbersOf(data) {
  return [
    data.measurements && measurements(data.measurements),
    data.hairline_images && designs(data.hairline_images),
    data.results && designs(data.results.map((result) => result.design).filter(Boolean)),
    (data.results || data.proof !== undefined) && proofs(data.results ?? [data]),
    data.masks && masks(data.masks),
    data.features && features(data.features),
    data.points && points(data.points),
  ];
}

const columns = (names) => names.map((name) => say(`column.${name}`));
const between = (interval, digits = 1) => (interval ? `${number(interval.low, digits)} – ${number(interval.high, digits)}` : say("none"));
const titled = (title, table) => [h("h3", {}, title), table];

/** What was measured, in mm with its interval; an angle stands in the place of mm. */
function measurements(tree) {
  const rows = leaves(tree).map(([path, leaf]) => [
    named("measure", path),
    leaf.unavailable_reason ? h("code", {}, leaf.unavailable_reason) : leaf.angle_deg !== null ? `${number(leaf.angle_deg)}°` : number(leaf.mm),
    between(leaf.interval_mm),
    number(leaf.px, 0),
    number(leaf.ratio, 3),
    leaf.ratio_of ? named("measure", leaf.ratio_of) : "",
  ]);
  const headings = [...columns(["name", "mm", "interval", "px", "ratio"]), say("column.of", { name: "" }).trim()];
  return titled(say("answer.numbers"), grid(headings, rows, { label: say("answer.numbers"), numeric: [1, 2, 3, 4] }));
}

function leaves(tree, path = "") {
  return Object.entries(tree).flatMap(([name, inside]) => {
    const here = path ? `${path}.${name}` : name;
    if (inside === null || typeof inside !== "object") return [];
    return "unavailable_reason" in inside ? [[here, inside]] : leaves(inside, here);
  });
}

function designs(list) {
  if (!list.length) return null;
  const headings = [say("column.name"), `${say("design.height")} (mm)`, say("column.interval"), `${say("design.area")} (cm²)`, say("column.interval"), say("design.grafts")];
  const rows = list.map((design) => [design.style_text, number(design.height.mm), between(design.height.interval_mm), number(design.area_cm2), between(design.area_interval_cm2), number(design.grafts, 0)]);
  const rules = list.flatMap((design) =>
    design.rules.map((rule) => [design.style_text, rule.text ?? rule.name, kept(rule), `${number(rule.value, 2)} ${unit(rule)}`, `${limits(rule)} ${unit(rule)}`]),
  );
  const table = grid(headings, rows, { label: say("answer.numbers"), numeric: [1, 2, 3, 4, 5] });
  return [
    ...titled(say("answer.numbers"), table),
    ...titled(say("column.rule"), grid(columns(["name", "rule", "kept", "measured", "limits"]), rules, { label: say("column.rule"), numeric: [3, 4] })),
  ];
}

const unit = (rule) => (rule.unit === "ratio" ? "" : (rule.unit ?? ""));

/** Whether a rule is kept, and whether the interval of the measured value leaves a doubt of it. */
function kept({ kept: is, certain }) {
  const words = say(is ? "kept.yes" : "kept.no") + (certain === false ? say("kept.doubt") : "");
  return is ? words : h("strong", { class: "bad" }, words);
}

function limits({ low, high }) {
  if (low === null) return `≤ ${number(high, 2)}`;
  if (high === null) return `≥ ${number(low, 2)}`;
  return `${number(low, 2)} – ${number(high, 2)}`;
}

function proofs(results) {
  const rows = results.filter((result) => result.proof).map(({ style_text: style, proof }) => [
    style ?? say("picture.grown_image_url"), ...Object.values(proof).map((value) => number(value, 3)),
  ]);
  if (!rows.length) return null;
  const names = Object.keys(results.find((result) => result.proof).proof);
  const headings = [say("column.name"), ...names.map((name) => h("code", {}, name))];
  return titled(say("proof.title"), grid(headings, rows, { label: say("proof.title"), numeric: headings.map((_, index) => index).slice(1) }));
}

function masks(list) {
  const headings = [say("column.name"), `${say("column.area")} (mm²)`, say("column.interval"), `${say("column.area")} (px²)`];
  const rows = list.map((mask) => [named("value", mask.part), number(mask.area_mm2, 0), between(mask.area_interval_mm2, 0), number(mask.area_px2, 0)]);
  return titled(say("answer.numbers"), grid(headings, rows, { label: say("answer.numbers"), numeric: [1, 2, 3] }));
}

function features(groups) {
  const rows = Object.entries(groups).flatMap(([group, inside]) =>
    Object.entries(inside).map(([name, feature]) => [
      named("group", group),
      named("feature", name),
      feature.text ?? h("code", {}, feature.reason ?? say("none")),
      feature.source ? h("code", {}, feature.source) : say("none"),
      number(feature.confidence, 2),
    ]),
  );
  return titled(say("answer.numbers"), grid([say("column.group"), ...columns(["name", "value", "source", "confidence"])], rows, { label: say("answer.numbers"), numeric: [4] }));
}

function points(list) {
  const rows = Object.entries(list).map(([name, point]) => [h("code", {}, name), number(point?.x_px), number(point?.y_px)]);
  return titled(say("answer.numbers"), grid([say("column.name"), "x (px)", "y (px)"], rows, { label: say("answer.numbers"), numeric: [1, 2] }));
}
