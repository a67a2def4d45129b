// The numbers of an answer as tables: every call has its own, and what none of them shows stands in the JSON.

import { h } from "./dom.js";
import { grid } from "./parts.js";
import { measured, named, number, say } from "./words.js";

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
const between = (interval, digits = 1) => (interval ? `${measured(interval.low, digits)} – ${measured(interval.high, digits)}` : say("none"));
const titled = (title, table) => [h("h3", {}, title), table];

/** What was measured, in mm with its interval; an angle stands in the place of mm. */
function measurements(tree) {
  const rows = leaves(tree).map(([path, leaf]) => [
    named("measure", path),
    leaf.unavailable_reason ? h("code", {}, leaf.unavailable_reason) : leaf.angle_deg !== null ? `${measured(leaf.angle_deg)}°` : measured(leaf.mm),
    between(leaf.interval_mm),
    measured(leaf.px, 0),
    measured(leaf.ratio, 3),
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
  const rows = list.map((design) => [design.style_text, measured(design.height.mm), between(design.height.interval_mm), measured(design.area_cm2), between(design.area_interval_cm2), number(design.grafts, 0)]);
  const rules = list.flatMap((design) =>
    design.rules.map((rule) => [design.style_text, rule.text ?? rule.name, kept(rule), number(rule.value, 2) + unit(rule), limits(rule) + unit(rule)]),
  );
  const table = grid(headings, rows, { label: say("answer.numbers"), numeric: [1, 2, 3, 4, 5] });
  const broken = list.flatMap((design) => design.rules).filter((rule) => !rule.kept).length;
  return [
    ...titled(say("answer.numbers"), table),
    h(
      "details",
      {},
      h("summary", {}, say("design.rules", { count: rules.length, broken })),
      grid(columns(["name", "rule", "kept", "measured", "limits"]), rules, { label: say("column.rule"), numeric: [3, 4] }),
    ),
  ];
}

const UNITS = { deg: "°", mm: " mm" };
const unit = (rule) => UNITS[rule.unit] ?? "";

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
  const proved = results.filter((result) => result.proof);
  if (!proved.length) return null;
  const headings = [say("column.name"), ...proved.map((result) => result.style_text ?? say("picture.grown_image_url"))];
  const rows = Object.keys(proved[0].proof).map((name) => [named("proof", name), ...proved.map((result) => number(result.proof[name], 3))]);
  const numeric = proved.map((_, index) => index + 1);
  return titled(say("proof.title"), grid(headings, rows, { label: say("proof.title"), numeric }));
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
      measured(feature.confidence, 2),
    ]),
  );
  return titled(say("answer.numbers"), grid([say("column.group"), ...columns(["name", "value", "source", "confidence"])], rows, { label: say("answer.numbers"), numeric: [4] }));
}

function points(list) {
  const rows = Object.entries(list).map(([name, point]) => [h("code", {}, name), measured(point?.x_px), measured(point?.y_px)]);
  return titled(say("answer.numbers"), grid([say("column.name"), "x (px)", "y (px)"], rows, { label: say("answer.numbers"), numeric: [1, 2] }));
}
