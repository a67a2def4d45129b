// The last requests that failed through no fault of their client's.

import { h } from "./dom.js";
import { copyButton, grid } from "./parts.js";
import { age, duration, languageNow, say } from "./words.js";

/** `reasons`: what each reason means, by its name; `passed_s`: how long ago this was told. */
export function errorsCard(errors, reasons = {}, passed_s) {
  return h(
    "section",
    { class: "card", "data-key": "errors", "aria-labelledby": "errors-title" },
    h("h2", { id: "errors-title" }, say("errors.title")),
    errors.length ? table(errors, reasons, passed_s) : h("p", { class: "faint" }, say("errors.none")),
    errors.length > 0 && h("p", { class: "help" }, say("errors.help")),
  );
}

function table(errors, reasons, passed_s) {
  const headings = ["when", "reason", "route", "worker", "took", "id"].map((name) => say(`errors.${name}`));
  const rows = errors.map((error) => [
    say("worker.ago", { duration: age(error.age_s + passed_s) }),
    [h("code", {}, error.reason), h("span", { class: "block faint" }, reasons[error.reason]?.[languageNow()])],
    h("code", {}, error.route ?? say("none")),
    [h("span", { class: "nowrap" }, error.worker || say("none")), error.attempts > 1 && h("span", { class: "block faint" }, say("errors.tries", { count: error.attempts }))],
    duration(error.duration_ms / 1000),
    h("span", { class: "nowrap", "data-key": error.request_id }, h("code", { class: "short", title: error.request_id }, error.request_id), " ", copyButton(error.request_id, say("errors.id"))),
  ]);
  return grid(headings, rows, { label: say("errors.title") });
}
