// Elements, made and brought up to date. Text stays text: nothing that a server says is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";
const OF_SVG = new Set(["svg", "g", "path", "line", "circle", "polygon", "polyline"]);

/** An element. `on` in `attributes` holds listeners by event; null, undefined and false attributes are left out. */
export function h(name, attributes = {}, ...children) {
  const element = OF_SVG.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Make the children of `live` like `wanted` and keep what is the same: focus, selections and open details survive.
 * Listeners are those of the element that is kept, so that they must not depend on what was shown when they were made;
 * elements with a `data-key` are kept for that key alone.
 */
export function update(live, ...wanted) {
  const kept = new Map();
  for (const child of live.children) if (child.dataset.key !== undefined) kept.set(child.dataset.key, child);
  let at = live.firstChild;
  const fresh = wanted.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  for (const item of fresh) {
    const node = typeof item === "string" || typeof item === "number" ? document.createTextNode(String(item)) : item;
    const key = node.dataset?.key;
    const same = key === undefined ? at : kept.get(key);
    if (!same || same.nodeName !== node.nodeName || same.dataset?.key !== key) {
      live.insertBefore(node, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else live.insertBefore(same, at);
    adopt(same, node);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function adopt(live, wanted) {
  if (live.nodeType === Node.TEXT_NODE) {
    if (live.data !== wanted.data) live.data = wanted.data;
    return;
  }
  for (const name of live.getAttributeNames()) {
    if (!wanted.hasAttribute(name) && name !== "open") live.removeAttribute(name); // people open details, not scripts
  }
  for (const name of wanted.getAttributeNames()) {
    const value = wanted.getAttribute(name);
    if (live.getAttribute(name) !== value) live.setAttribute(name, value);
  }
  update(live, ...wanted.childNodes);
}

/** Say something to whoever does not see the page. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}
