// Light or dark: as the system, unless somebody chose otherwise in this browser.

const KEPT_AS = "hairmesh.theme";
const THEMES = ["auto", "light", "dark"];

export function themeNow() {
  const kept = localStorage.getItem(KEPT_AS);
  return THEMES.includes(kept) ? kept : "auto";
}

/** Choose the next one. */
export function nextTheme() {
  localStorage.setItem(KEPT_AS, THEMES[(THEMES.indexOf(themeNow()) + 1) % THEMES.length]);
  showTheme();
}

/** Colours follow the root's `data-theme`. */
export function showTheme() {
  document.documentElement.dataset.theme = themeNow();
}
