// The alert drill's switch. To start one takes a second word.

import { h } from "./dom.js";
import { sign } from "./parts.js";
import { say } from "./words.js";

/** `problem`: why it was not switched last; `drilled(enabled)` switches it. */
export function drillCard(on, problem, drilled) {
  return h(
    "section",
    { class: "card", "data-key": "drill", "aria-labelledby": "drill-title" },
    h("h2", { id: "drill-title" }, say("drill.title")),
    h("p", { class: `state ${on ? "bad" : "good"}`, id: "drill-state" }, sign(on ? "warning" : "good"), h("strong", {}, say(on ? "drill.on" : "drill.off"))),
    h("p", { class: "help" }, say("drill.help")),
    on
      ? h("button", { type: "button", id: "drill-stop", "data-key": "stop", on: { click: () => drilled(false) } }, say("drill.stop"))
      : h("button", { type: "button", id: "drill-start", "data-key": "start", on: { click: () => document.getElementById("drill-dialog").showModal() } }, say("drill.start")),
    h("p", { id: "drill-problem", class: "problem", role: "alert" }, problem && say("drill.failed", { message: problem })),
    h(
      "dialog",
      { id: "drill-dialog", "aria-labelledby": "drill-ask" },
      h(
        "form",
        { method: "dialog", on: { submit: (event) => event.submitter?.value === "yes" && drilled(true) } },
        h("h2", { id: "drill-ask" }, say("drill.confirm_title")),
        h("p", {}, say("drill.confirm")),
        h(
          "p",
          { class: "buttons" },
          h("button", { type: "submit", value: "no", class: "quiet" }, say("drill.cancel")),
          h("button", { type: "submit", value: "yes", id: "drill-yes", class: "danger" }, say("drill.confirm_yes")),
        ),
      ),
    ),
  );
}
