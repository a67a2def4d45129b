// How things stand, to be read in two seconds.

import { h } from "./dom.js";
import { sign } from "./parts.js";
import { age, listed, named, say } from "./words.js";

/** What `/monitor` tells, in words: its `key` and the tone. One table, the first row that holds. */
const VERDICTS = [
  { key: "down", tone: "bad", holds: (online) => online.workers_healthy === 0 },
  { key: "ok", tone: "good", holds: (online) => online.workers_healthy === online.workers_total },
  { key: "backup", tone: "warning", holds: (online) => online.workers_primary_healthy === 0 },
  { key: "degraded", tone: "warning", holds: () => true },
];

/** `silent_s`: for how long the edge has not answered; 0 when it does. */
export function verdictCard(monitor, pool, silent_s) {
  const { online } = pool;
  const { key, tone } = VERDICTS.find((row) => row.holds(online));
  const out = pool.workers.filter((worker) => worker.state !== "SERVING").map(briefly);
  const facts = [
    say("verdict.counts", { online: online.workers_healthy, total: online.workers_total }),
    say("verdict.primaries", { online: online.workers_primary_healthy, total: online.workers_primary_total }),
    say("verdict.growth", { count: online.growth_capable }),
    say("verdict.monitor", { status: monitor.http_status }),
  ];
  return h(
    "section",
    { class: `card verdict ${silent_s ? "unknown" : tone}`, id: "verdict", "data-key": "verdict" },
    sign(silent_s ? "unknown" : tone),
    h(
      "div",
      {},
      h("div", { role: "status" }, h("h1", {}, say(`verdict.${key}`))),
      silent_s > 0 && h("p", { class: "stale", role: "alert" }, say("verdict.stale", { duration: age(silent_s) })),
      h("ul", { class: "inline" }, facts.map((fact) => h("li", {}, fact))),
      out.length > 0 && h("p", {}, say("verdict.out", { workers: listed(out) })),
    ),
  );
}

function briefly(worker) {
  const why = worker.cause ? named("cause", worker.cause) : named("state", worker.state);
  return `${worker.address} (${why})`;
}
