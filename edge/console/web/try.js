// Every call, to try with a photo of one's own. The calls and their parameters come from the edge's own tables.

import { answerParts } from "./answer.js";
import { run } from "./call.js";
import { curl } from "./curl.js";
import { announce, h, update } from "./dom.js";
import { parameterFields } from "./form.js";
import { Photo } from "./photo.js";
import { copyButton } from "./parts.js";
import * as server from "./server.js";
import { duration, named, say } from "./words.js";

/** What stays when one looks at the other page meanwhile. */
const kept = { tables: null, route: "", photo: new Photo(), answer: null, key: "" };

export class TryPage {
  /** Show it in `main`; `over` is called when the session has ended. */
  constructor(main, over) {
    this.main = main;
    this.over = over;
    this.running = null; // what ends the call that runs
    this.progress = null;
    this.problem = "";
    this.wantsKey = kept.key !== "";
    this.line = ""; // the call for a terminal, as it is shown
    this.closed = false;
    kept.photo.changed = () => this.render();
    this.learn();
  }

  close() {
    this.closed = true;
    this.running?.abort();
    kept.photo.changed = () => {};
  }

  async learn() {
    try {
      kept.tables = await server.calls();
      kept.route ||= kept.tables.calls[0].route;
    } catch (error) {
      if (error instanceof server.Refused && error.status === 401) return this.over();
      this.problem = say("enter.unreachable");
    }
    this.render();
  }

  get call() {
    return kept.tables.calls.find((call) => call.route === kept.route);
  }

  render() {
    if (this.closed) return;
    if (!kept.tables) {
      update(this.main, h("p", { class: "plain" }, this.problem || say("verdict.waiting")));
      return;
    }
    this.show();
    // Only now are the fields those of the call that is chosen: the line is made of them as they are sent.
    const line = this.curlLine();
    if (line === this.line) return;
    this.line = line;
    this.show();
  }

  show() {
    update(
      this.main,
      h("h1", { class: "page" }, say("try.title")),
      h("p", { class: "help" }, say("try.privacy")),
      h("div", { class: "try" }, this.form(), h("div", { class: "answers" }, this.progressCard(), this.answerCard(), this.curlCard())),
    );
  }

  form() {
    const call = this.call;
    return h(
      "form",
      { class: "card", id: "try", on: { submit: (event) => this.send(event), input: () => this.render() } },
      h("label", { for: "call" }, say("try.call")),
      h(
        "select",
        { id: "call", on: { change: (event) => this.choose(event.target.value) } },
        kept.tables.calls.map(({ route }) => h("option", { value: route, selected: route === kept.route }, say(`call.${route}`))),
      ),
      h("p", { class: "help" }, say(`call.${call.route}.help`), " ", h("code", {}, `POST ${call.route}`)),
      kept.photo.view({ draws: call.parameters.some((each) => each.kind === "region"), max_bytes: kept.tables.max_body_bytes }),
      h("fieldset", { "data-key": call.route }, h("legend", {}, say("param.title")), parameterFields(call, kept.photo)),
      this.wantsKey && [
        h("label", { for: "key", "data-key": "key-label" }, say("try.key")),
        h("input", { id: "key", type: "password", autocomplete: "off", "data-key": "key", "aria-describedby": "key-help" }),
        h("p", { id: "key-help", class: "help", "data-key": "key-help" }, say("try.key_help")),
      ],
      h("p", { class: "problem", role: "alert", "data-key": "problem" }, this.problem),
      h(
        "p",
        { class: "buttons", "data-key": "buttons" },
        this.running
          ? h("button", { type: "button", id: "cancel", "data-key": "cancel", on: { click: () => this.running?.abort() } }, say("try.cancel"))
          : h("button", { type: "submit", class: "main", id: "send", "data-key": "send" }, say("try.run")),
      ),
    );
  }

  choose(route) {
    kept.route = route;
    this.problem = "";
    this.render();
  }

  /** The fields as they are sent, without the photo: name and text, or name and file. */
  fields() {
    const given = [...new FormData(document.getElementById("try"))].filter(([, value]) => (value instanceof File ? value.size : value !== ""));
    const names = new Map();
    for (const [name, value] of given) names.set(name, names.has(name) ? `${names.get(name)},${value}` : value);
    for (const { name, kind, default: byItself } of this.call.parameters) {
      if (kind !== "boolean") continue;
      const ticked = names.delete(name); // an empty box is not in the form
      if (ticked !== byItself) names.set(name, String(ticked));
    }
    return [...names];
  }

  async send(event) {
    event.preventDefault();
    if (this.running) return;
    this.problem = kept.photo.file ? "" : say("try.need_photo");
    if (this.problem) return this.render();
    kept.key = document.getElementById("key")?.value.trim() ?? "";
    this.running = new AbortController();
    this.progress = { words: say("try.sending") };
    this.render();
    const began_ms = performance.now();
    try {
      const answer = await run(this.call, kept.photo.file, this.fields(), {
        key: kept.key,
        signal: this.running.signal,
        onProgress: (told) => this.tell(told),
      });
      kept.answer = { ...answer, route: this.call.route, took_s: (performance.now() - began_ms) / 1000 };
      this.wantsKey ||= answer.status === 401;
      if (answer.status === 413) this.learn(); // what may be sent has changed since the page asked
      announce(say(answer.envelope.code === 0 ? "answer.good" : "answer.refused"));
    } catch (error) {
      this.problem = say(error.name === "AbortError" ? "try.cancelled" : "try.broken");
    }
    this.running = this.progress = null;
    this.render();
  }

  /** `told`: an event of the stream, `{ event, data }`. */
  tell({ event, data }) {
    const words = [];
    if (event === "queued") words.push(say("try.queued", { position: data.position }));
    else words.push(named("stage", data.stage));
    if (data.total > 0) words.push(say("try.step", data));
    if (data.results_total > 1) words.push(say("try.results", data));
    if (data.attempt > 1) words.push(say("try.attempt", { attempt: data.attempt }));
    const share = event === "progress" && data.total > 0 ? data.step / data.total : null;
    this.progress = { words: words.join(" · "), share };
    this.render();
  }

  progressCard() {
    if (!this.progress) return null;
    const { words, share } = this.progress;
    return h(
      "section",
      { class: "card", "data-key": "progress" },
      h("p", { role: "status", id: "progress-words" }, words),
      h("progress", { max: 1, value: share ?? null, "aria-labelledby": "progress-words" }),
    );
  }

  answerCard() {
    const answer = kept.answer;
    return h(
      "section",
      { class: "card", "data-key": "answer", id: "answer", "aria-labelledby": "answer-title" },
      h("h2", { id: "answer-title" }, say("answer.title")),
      answer
        ? [
            h("p", { class: "faint" }, say(`call.${answer.route}`), ` · ${duration(answer.took_s)} · HTTP ${answer.status}`),
            // of another answer nothing is kept, so that no picture shows the one before
            h("div", { "data-key": answer.envelope.request_id }, answerParts(answer)),
          ]
        : h("p", { class: "faint" }, say("answer.waiting")),
    );
  }

  curlLine() {
    const file = kept.photo.file?.name ?? "photo.jpg";
    return curl(kept.tables.base_url, this.call, file, this.fields(), { withKey: this.wantsKey });
  }

  curlCard() {
    return h(
      "section",
      { class: "card", "data-key": "curl", "aria-labelledby": "curl-title" },
      h("h2", { id: "curl-title" }, say("answer.curl")),
      h("pre", { class: "scroll", tabindex: "0", id: "curl" }, this.line),
      h("p", {}, copyButton(this.line, "curl")),
    );
  }
}
