// An answer for people: what it says, its pictures, its numbers, and the whole of it as JSON.

import { h } from "./dom.js";
import { numbersOf } from "./numbers.js";
import { copyButton, sign } from "./parts.js";
import { named, number, say } from "./words.js";

const PICTURES = ["image_url", "annotated_image_url", "marked_image_url", "grown_image_url"];

/** All parts of `{ envelope }`. */
export function answerParts({ envelope }) {
  const { code, data } = envelope;
  return [
    code === 0 ? h("p", { class: "state good" }, sign("good"), h("strong", {}, say("answer.good"))) : refusal(envelope),
    h("p", { class: "faint" }, say("answer.request_id"), " ", h("code", {}, envelope.request_id), " ", copyButton(envelope.request_id, say("answer.request_id"))),
    code === 0 && [warnings(data), pictures(data), numbersOf(data)],
    h(
      "details",
      {},
      h("summary", {}, say("answer.json")),
      h("p", {}, copyButton(JSON.stringify(envelope, null, 2), "JSON")),
      h("pre", { class: "scroll", tabindex: "0" }, JSON.stringify(envelope, null, 2)),
    ),
  ];
}

function refusal({ code, message, data }) {
  const details = Object.entries(data.details ?? {});
  return h(
    "div",
    { class: "refusal" },
    h("p", { class: "state bad" }, sign("bad"), h("strong", {}, message), h("code", {}, `${code} ${data.reason}`)),
    data.advice && h("p", {}, h("strong", {}, say("answer.advice")), " ", data.advice),
    details.length > 0 && h("dl", { class: "facts" }, details.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, String(value))))),
  );
}

function warnings(data) {
  if (!data.warnings?.length) return null;
  return h("ul", { class: "notices" }, data.warnings.map((warning) => h("li", { class: "warning" }, sign("warning"), h("span", {}, named("warning", warning.reason), measured(warning)))));
}

function measured({ value, limit, unit }) {
  if (typeof value !== "number") return "";
  return ` (${number(value, 2)}${typeof limit === "number" ? ` / ${number(limit, 2)}` : ""} ${unit ?? ""})`;
}

/** The answer's own pictures, then those of each of its results. */
function pictures(data) {
  const results = [...(data.results ?? []), ...(data.hairline_images ?? []), ...(data.masks ?? [])];
  const groups = [data, ...results].map(figuresOf).filter((figures) => figures.length);
  if (!groups.length) return null;
  if (groups.every((figures) => figures.length === 1)) return h("div", { class: "pictures" }, groups);
  return groups.map((figures) => h("div", { class: "pictures pair" }, figures)); // before and after, side by side
}

function figuresOf(result) {
  const what = result.style_text ?? (result.part && named("value", result.part)) ?? "";
  const shown = PICTURES.filter((name) => result[name]).map((name) => {
    const words = [what, result.part ? "" : say(`picture.${name}`)].filter(Boolean).join(" · ");
    return h(
      "figure",
      {},
      h("a", { href: result[name], target: "_blank", rel: "noreferrer", title: say("answer.open") }, h("img", { src: result[name], alt: words, loading: "lazy" })),
      h("figcaption", {}, words),
    );
  });
  const missing = result.grown_reason && h("figure", { class: "missing" }, h("p", {}, say("grown.none", { why: result.grown_message }), " ", h("code", {}, result.grown_reason)), h("figcaption", {}, what));
  return [...shown, ...(missing ? [missing] : [])];
}
