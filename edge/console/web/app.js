// The frame of the page: who has entered, which page is shown, in what language and light.

import { h, update } from "./dom.js";
import { copyOnClick } from "./parts.js";
import { PoolPage } from "./pool.js";
import * as server from "./server.js";
import { nextTheme, showTheme, themeNow } from "./theme.js";
import { TryPage } from "./try.js";
import { languageNow, loadWords, say, switchLanguage } from "./words.js";

const PAGES = { pool: PoolPage, try: TryPage };

let entered = false;
let problem = "";
let page = null;
let shown = "";

const skip = h("a", { class: "skip", href: "#main", on: { click: toContent } });
const head = h("header");
const main = h("main", { id: "main", tabindex: "-1" });

function render() {
  document.documentElement.lang = languageNow();
  document.title = say("title");
  update(skip, say("skip"));
  update(head, header());
  const name = entered ? wanted() : "enter";
  if (shown !== name) {
    page?.close();
    main.replaceChildren();
    page = entered ? new PAGES[name](main, over) : null;
    shown = name;
  }
  if (page) page.render();
  else update(main, entrance());
}

function wanted() {
  return location.hash === "#try" ? "try" : "pool";
}

function toContent(event) {
  event.preventDefault(); // the address names the page, not a place in it
  main.focus();
}

function header() {
  const link = (name) =>
    h("a", { href: `#${name}`, "aria-current": wanted() === name ? "page" : null }, say(`nav.${name}`));
  const theme = say(`theme.${themeNow()}`);
  return [
    h("p", { class: "brand" }, h("img", { src: new URL("icon.svg", import.meta.url).href, alt: "", width: 24, height: 24 }), "HairMesh"),
    entered && h("nav", { "aria-label": say("nav.label") }, link("pool"), link("try")),
    h(
      "p",
      { class: "switches" },
      h("button", { type: "button", class: "quiet", id: "theme", "aria-label": say("theme.label", { theme }), title: say("theme.label", { theme }), on: { click: changeTheme } }, theme),
      h("button", { type: "button", class: "quiet", id: "language", "aria-label": say("language.label"), on: { click: changeLanguage } }, say("language.switch")),
      entered && h("button", { type: "button", class: "quiet", id: "leave", on: { click: leave } }, say("leave")),
    ),
  ];
}

function changeTheme() {
  nextTheme();
  render();
}

function changeLanguage() {
  switchLanguage();
  render();
}

function entrance() {
  return h(
    "form",
    { class: "card entrance", on: { submit: enter } },
    h("h1", {}, say("enter.title")),
    h("label", { for: "token" }, say("enter.token")),
    h("input", { id: "token", type: "password", autocomplete: "current-password", required: true, autofocus: true, spellcheck: "false", "aria-describedby": "enter-help enter-problem" }),
    h("p", { id: "enter-help", class: "help" }, say("enter.help")),
    h("p", { id: "enter-problem", class: "problem", role: "alert" }, problem && say(problem.key, problem.values)),
    h("button", { type: "submit", class: "main" }, say("enter.button")),
  );
}

async function enter(event) {
  event.preventDefault();
  const field = document.getElementById("token");
  try {
    await server.enter(field.value.trim());
    field.value = "";
    entered = (await server.session()).open;
    problem = entered ? "" : { key: "enter.no_cookie" };
  } catch (error) {
    problem = why(error);
  }
  render();
  if (entered) main.focus();
  else field.select();
}

function why(error) {
  if (!(error instanceof server.Refused)) return { key: "enter.unreachable" };
  if (error.status === 429) return { key: "enter.slow", values: { seconds: error.retryAfter_s } };
  return { key: "enter.wrong" };
}

/** The session has ended without anybody leaving. */
function over() {
  if (!entered) return;
  entered = false;
  problem = { key: "enter.over" };
  render();
}

async function leave() {
  entered = false;
  problem = "";
  render();
  await server.leave();
}

async function begin() {
  showTheme();
  copyOnClick(document.body);
  await loadWords();
  document.getElementById("page").replaceChildren(skip, head, main);
  try {
    entered = (await server.session()).open;
  } catch {
    problem = { key: "enter.unreachable" };
  }
  window.addEventListener("hashchange", () => {
    render();
    if (entered) main.focus();
  });
  render();
}

begin();
