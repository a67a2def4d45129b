// The page's words in two languages, all of them from one table, and numbers as people read them.

const KEPT_AS = "hairmesh.language";

let table = {};
let language = chosen();

/** What was chosen here before; else what the browser asks for, else Chinese, as the interface does. */
function chosen() {
  const wanted = [localStorage.getItem(KEPT_AS), ...navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase())];
  return wanted.find((each) => each === "zh" || each === "en") ?? "zh";
}

/** Read the table; nothing can be said before. */
export async function loadWords() {
  const response = await fetch(new URL("words.json", import.meta.url));
  table = await response.json();
}

export function languageNow() {
  return language;
}

/** Speak the other language from now on. */
export function switchLanguage() {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem(KEPT_AS, language);
}

/** The words under `key`, with `{name}` replaced by `values`. */
export function say(key, values = {}) {
  return table[key][language].replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}

/** The words for a stable name of an interface; the name itself where an edge or a worker is newer than this table. */
export function named(family, name) {
  return Object.hasOwn(table, `${family}.${name}`) ? say(`${family}.${name}`) : name;
}

/** A list of words. */
export function listed(items) {
  return items.join(language === "zh" ? "、" : ", ");
}

/** A time as people say it. */
export function duration(seconds) {
  if (seconds < 1) return say("duration.ms", { n: Math.round(seconds * 1000) });
  if (seconds < 10) return say("duration.s", { n: seconds.toFixed(1) });
  for (const [limit, unit_s, unit] of [[120, 1, "s"], [7200, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "d"]]) {
    if (seconds < limit) return say(`duration.${unit}`, { n: Math.round(seconds / unit_s) });
  }
  return "";
}

/** The same for ages that tick: no tenths that flicker. */
export function age(seconds) {
  return seconds < 10 ? say("duration.s", { n: Math.max(0, Math.floor(seconds)) }) : duration(seconds);
}

/** A number with so many digits behind the point at most; a dash for none. */
export function number(value, digits = 1) {
  if (typeof value !== "number") return say("none");
  return value.toLocaleString(language, { maximumFractionDigits: digits });
}

/** A measured number, always with so many digits behind the point. */
export function measured(value, digits = 1) {
  if (typeof value !== "number") return say("none");
  return value.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Bytes as people say them. */
export function bytes(count) {
  return count < 1e6 ? `${number(count / 1e3, 0)} kB` : `${number(count / 1e6, 1)} MB`;
}
