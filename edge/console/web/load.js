// How much there is to do, and how it goes: the queue, rates and latencies, every route.

import { chart } from "./chart.js";
import { h } from "./dom.js";
import { grid } from "./parts.js";
import { duration, number, say } from "./words.js";

const SPAN_S = 900;
const WINDOWS = ["last_5_min", "last_hour", "since_start"];
const SYSTEM = "1007";
const GOOD = "0";

/** `history`: what was seen of the queue, each `{ age_s, inside }`. */
export function loadCard(pool, stats, history) {
  const { queue } = pool;
  const span = duration(SPAN_S);
  const ms = (value) => duration(value / 1000);
  const slots = stats?.slots ?? [];
  const line = (tone, value) => ({ tone, points: slots.map((slot) => ({ age_s: slot.age_s, value: value(slot) })) });
  const facts = [
    ["load.inside", say("load.inside_of", { inside: queue.inside, max: queue.max_in_flight })],
    ["load.fast", queue.waiting_fast],
    ["load.slow", queue.waiting_slow],
    ["load.outside", queue.waiting_outside],
    ["load.brake", say(pool.braked ? "load.on" : "load.off")],
  ];
  return h(
    "section",
    { class: "card", "data-key": "load", "aria-labelledby": "load-title" },
    h("h2", { id: "load-title" }, say("load.title")),
    h("dl", { class: "facts" }, facts.map(([key, value]) => h("div", {}, h("dt", {}, say(key)), h("dd", {}, value)))),
    h(
      "div",
      { class: "charts" },
      chart(say("chart.rate"), [line("plain", (slot) => slot.per_s)], { span_s: SPAN_S, span, text: (value) => number(value, 2) }),
      chart(say("chart.failed"), [line(slots.some((slot) => slot.failed) ? "bad" : "plain", (slot) => slot.failed)], { span_s: SPAN_S, span, text: (value) => number(value, 0) }),
      chart(say("chart.latency"), [line("plain", (slot) => slot.p50_ms), line("second", (slot) => slot.p95_ms)], { span_s: SPAN_S, span, text: ms }),
      chart(say("chart.inside"), [{ tone: "plain", points: history.map((seen) => ({ age_s: seen.age_s, value: seen.inside })) }], { span_s: SPAN_S, span, text: (value) => number(value, 0) }),
    ),
  );
}

/** `window`: which span of time is shown; `choose(window)` changes it. */
export function routesCard(stats, window, choose) {
  const routes = stats?.routes ?? [];
  return h(
    "section",
    { class: "card", "data-key": "routes", "aria-labelledby": "routes-title" },
    h("h2", { id: "routes-title" }, say("routes.title")),
    h(
      "p",
      {},
      h("label", { for: "window" }, say("routes.window")),
      " ",
      h(
        "select",
        { id: "window", on: { change: (event) => choose(event.target.value) } },
        WINDOWS.map((name) => h("option", { value: name, selected: name === window }, say(`routes.window.${name}`))),
      ),
    ),
    routes.length ? table(routes) : h("p", { class: "faint" }, say("routes.none")),
  );
}

function table(routes) {
  const columns = ["route", "calls", "ok", "refused", "failed", "p50", "p95", "in_flight"];
  const rows = routes.map((route) => {
    const { calls, codes, latency_ms: latency } = route;
    const [good, failed] = [codes[GOOD] ?? 0, codes[SYSTEM] ?? 0];
    const took = (ms) => (ms === null ? say("none") : duration(ms / 1000));
    const cells = [calls, good, calls - good - failed, failed].map((count) => number(count, 0));
    if (failed) cells[3] = h("strong", { class: "bad" }, cells[3]);
    return [h("code", {}, route.route), ...cells, took(latency.p50), took(latency.p95), number(route.in_flight, 0)];
  });
  const numeric = columns.map((_, index) => index).slice(1);
  return grid(columns.map((name) => say(`routes.${name}`)), rows, { label: say("routes.title"), numeric });
}
