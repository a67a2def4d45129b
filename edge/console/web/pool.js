// The pool, live: what `/monitor` tells, every worker with its reasons, load, the last errors, the drill.

import { announce, h, update } from "./dom.js";
import { drillCard } from "./drill.js";
import { errorsCard } from "./errors.js";
import { loadCard, routesCard } from "./load.js";
import { sign } from "./parts.js";
import * as server from "./server.js";
import { verdictCard } from "./verdict.js";
import { age, named, number, say } from "./words.js";
import { workersCard } from "./workers.js";

const STATE_EVERY_MS = 2000;
const STATS_EVERY_MS = 10000;
const TICK_MS = 1000;

const SEEN_AT_MOST = 450;
const seen = []; // of the queue, since the console was opened

export class PoolPage {
  /** Show it in `main`; `over` is called when the session has ended. */
  constructor(main, over) {
    this.main = main;
    this.over = over;
    this.told = null; // the last answer, and when it came
    this.stats = null;
    this.window = "last_5_min";
    this.since_ms = performance.now(); // of the last answer, or of the page
    this.silent = false;
    this.states = new Map();
    this.problem = ""; // why the drill was not switched
    this.closed = false;
    this.every(STATE_EVERY_MS, () => this.look());
    this.every(STATS_EVERY_MS, () => this.count());
    this.every(TICK_MS, async () => this.told && this.render());
    this.onShown = () => document.hidden || this.look();
    document.addEventListener("visibilitychange", this.onShown);
  }

  close() {
    this.closed = true;
    document.removeEventListener("visibilitychange", this.onShown);
  }

  /** Do `work` now and then again and again, while the page is in view; never twice at once. */
  async every(pause_ms, work) {
    while (!this.closed) {
      if (!document.hidden) await work();
      await new Promise((wake) => setTimeout(wake, pause_ms));
    }
  }

  async look() {
    await this.ask(server.state, (told) => {
      this.told = told;
      this.since_ms = performance.now();
      this.silent = false;
      seen.push({ at_ms: this.since_ms, inside: told.pool.queue.inside });
      if (seen.length > SEEN_AT_MOST) seen.shift();
      this.announceChanges(told);
    });
  }

  async count() {
    await this.ask(() => server.stats(this.window), (told) => (this.stats = told));
  }

  async ask(question, take) {
    try {
      const told = await question();
      if (this.closed) return;
      take(told);
    } catch (error) {
      if (this.closed) return;
      if (error instanceof server.Refused && error.status === 401) return this.over();
      this.silent = true;
    }
    this.render();
  }

  announceChanges(told) {
    const changes = told.pool.workers
      .filter((worker) => this.states.has(worker.address) && this.states.get(worker.address) !== worker.state)
      .map((worker) => say("announce.worker", { worker: worker.address, state: named("state", worker.state) }));
    if (changes.length) announce(changes.join(" "));
    this.states = new Map(told.pool.workers.map((worker) => [worker.address, worker.state]));
  }

  render() {
    if (!this.told) {
      update(this.main, h("p", { class: "plain" }, this.silent ? say("enter.unreachable") : say("verdict.waiting")));
      return;
    }
    const { monitor, pool, recent_errors: errors } = this.told;
    const passed_s = (performance.now() - this.since_ms) / 1000;
    update(
      this.main,
      h(
        "div",
        { class: this.silent ? "pool old" : "pool" },
        verdictCard(monitor, pool, this.silent ? passed_s : 0),
        notices(pool),
        workersCard(pool.workers, passed_s),
        loadCard(pool, this.stats, history()),
        errorsCard(errors, this.stats?.reasons, passed_s),
        routesCard(this.stats, this.window, (window) => {
          this.window = window;
          this.count();
        }),
        drillCard(pool.drill, this.problem, (enabled) => this.drilled(enabled)),
        edgeCard(pool, passed_s),
      ),
    );
  }

  async drilled(enabled) {
    try {
      await server.drill(enabled);
      this.problem = "";
    } catch (error) {
      this.problem = error.message;
    }
    await this.look();
  }
}

function history() {
  const now_ms = performance.now();
  return seen.map(({ at_ms, inside }) => ({ age_s: (now_ms - at_ms) / 1000, inside }));
}

function notices(pool) {
  const { configuration, workers } = pool;
  const behind = workers.filter((worker) => worker.former_password).map((worker) => worker.address);
  const told = [
    pool.drill && ["bad", say("notice.drill")],
    pool.braked && ["bad", say("notice.brake", { cause: named("cause", pool.shared_cause ?? "") })],
    configuration.problems.length && ["bad", say("notice.problems", { problems: configuration.problems.join("; ") })],
    pool.local_vision.stuck && ["bad", say("notice.local_stuck")],
    behind.length && ["warning", say("notice.former", { workers: behind.join(", ") })],
    pool.online.workers_healthy && !pool.online.growth_capable && ["warning", say("notice.no_growth")],
    configuration.awaiting_restart.length && ["warning", say("notice.restart", { keys: configuration.awaiting_restart.join(", ") })],
  ].filter(Boolean);
  if (!told.length) return null;
  return h("ul", { class: "notices", "data-key": "notices" }, told.map(([tone, text]) => h("li", { class: tone }, sign(tone), h("span", {}, text))));
}

function edgeCard(pool, passed_s) {
  const { edge, configuration, local_vision: local } = pool;
  const facts = [
    ["edge.id", edge.id],
    ["edge.version", edge.version],
    ["edge.uptime", age(edge.uptime_s + passed_s)],
    ["edge.configuration", number(configuration.version, 0)],
    ["edge.hash", configuration.content_hash || say("none")],
    ["edge.applied", new Date(configuration.applied_at).toLocaleString(document.documentElement.lang)],
    ["edge.local", local.loaded ? say("edge.loaded", { inside: local.inside }) : say("edge.not_loaded")],
  ];
  return h(
    "section",
    { class: "card", "data-key": "edge", "aria-labelledby": "edge-title" },
    h("h2", { id: "edge-title" }, say("edge.title")),
    h("dl", { class: "facts" }, facts.map(([key, value]) => h("div", {}, h("dt", {}, say(key)), h("dd", {}, value)))),
  );
}
