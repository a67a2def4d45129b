// Every worker: where it is in the pool, why, and what to do.

import { h } from "./dom.js";
import { sign } from "./parts.js";
import { age, duration, named, say } from "./words.js";

const TONES = { SERVING: "good", UNKNOWN: "unknown", DRAINING: "warning", NOT_SERVING: "bad", EJECTED: "bad" };

/** Those in trouble come first. `passed_s`: how long ago this was told. */
export function workersCard(workers, passed_s) {
  const order = [...workers].sort((one, other) => (one.state === "SERVING") - (other.state === "SERVING"));
  return h(
    "section",
    { class: "card", "data-key": "workers", "aria-labelledby": "workers-title" },
    h("h2", { id: "workers-title" }, say("workers.title")),
    order.length
      ? h("ul", { class: "workers" }, order.map((worker) => workerItem(worker, passed_s)))
      : h("p", {}, say("workers.none")),
  );
}

function workerItem(worker, passed_s) {
  const tone = TONES[worker.state] ?? "unknown";
  return h(
    "li",
    { class: `worker ${tone}`, "data-key": worker.address, "data-state": worker.state },
    h(
      "div",
      { class: "who" },
      h("p", { class: `state ${tone}` }, sign(tone), h("strong", {}, named("state", worker.state)), h("code", {}, worker.state)),
      h("p", { class: "address" }, worker.address),
      h("p", { class: "tags" }, tags(worker).map((tag) => h("span", {}, tag))),
    ),
    h("div", { class: "doing" }, doing(worker, passed_s).map((line) => h("p", {}, line))),
    h("div", { class: "why" }, reasons(worker, passed_s), more(worker, passed_s)),
  );
}

function tags(worker) {
  const can = worker.capabilities.map((name) => named("capability", name));
  return [
    say(worker.primary ? "worker.primary" : "worker.backup"),
    worker.leaving && say("worker.leaving"),
    ...can,
  ].filter(Boolean);
}

/** What it does now, and how long it stays out. */
function doing(worker, passed_s) {
  const lines = [];
  const call = worker.in_flight;
  const stage = worker.stage && named("stage", worker.stage);
  const left_s = worker.cooldown_left_s - passed_s;
  if (worker.cooldown_left_s) lines.push(h("strong", {}, left_s > 0 ? say("worker.cooldown", { duration: age(left_s) }) : say("worker.trial")));
  if (call) lines.push(h("strong", {}, [stage, say("worker.call", { duration: age(call.age_s + passed_s) })].filter(Boolean).join(" · ")));
  if (call?.left_behind) lines.push(say("worker.left_behind"));
  if (!call && worker.taken_by_others) lines.push([say("worker.others"), stage].filter(Boolean).join(" · "));
  if (!lines.length && worker.state === "SERVING") lines.push(h("span", { class: "faint" }, say("worker.idle")));
  return lines;
}

function reasons(worker, passed_s) {
  const out = worker.state !== "SERVING";
  const probe = worker.last_probe;
  return [
    out && worker.cause && h("p", { class: "cause" }, h("strong", {}, named("cause", worker.cause)), h("code", {}, worker.cause)),
    out && worker.cause && h("p", {}, named("do", worker.cause)),
    out && worker.evidence && h("p", { class: "evidence" }, h("code", {}, worker.evidence)),
    !out && Object.entries(worker.lacks).map(([name, why]) => h("p", { class: "lacks" }, sign("warning"), say("worker.lacks", { name: named("capability", name), why }))),
    out && probe && h("p", { class: "faint" }, say("worker.probe", { duration: age(probe.age_s + passed_s), evidence: probe.evidence })),
  ];
}

function more(worker, passed_s) {
  const next_s = worker.next_probe_in_s;
  const facts = [
    ["worker.boot", worker.boot_id],
    ["worker.name", worker.name],
    ["worker.ejections", worker.ejections || null],
    ["worker.call_id", worker.in_flight?.call_id],
  ].filter(([, value]) => value);
  const probe = worker.last_probe;
  return h(
    "details",
    {},
    h("summary", {}, say("worker.details")),
    h("dl", { class: "facts" }, facts.map(([key, value]) => h("div", {}, h("dt", {}, say(key)), h("dd", {}, h("code", {}, value))))),
    probe && h("p", {}, say("worker.probe", { duration: age(probe.age_s + passed_s), evidence: probe.evidence }), " · ",
      next_s === null ? say("worker.probing") : say("worker.next_probe", { duration: duration(Math.max(0, next_s - passed_s)) })),
    h("p", {}, say("worker.history")),
    h("ol", { class: "history" }, worker.history.map((entry) => h("li", {}, h("span", { class: "faint" }, say("worker.ago", { duration: age(entry.age_s + passed_s) })), " ", h("code", {}, entry.what)))),
  );
}
