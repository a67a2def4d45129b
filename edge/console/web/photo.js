// The photo: chosen, dropped or taken, looked at, and a region drawn on it.

import { h } from "./dom.js";
import { bytes, number, say } from "./words.js";

const SHRUNK_SIDE_PX = 2048;
const SHRUNK_QUALITY = 0.92;
/** What stands around the photo in a form: parameters and boundaries. */
const FORM_BYTES = 4096;
/** A step of the crosshair, as a share of the photo's long side. */
const STEP = 0.01;

export class Photo {
  constructor() {
    this.file = null;
    this.url = "";
    this.size = null; // { width, height } of the upright photo; null where the browser cannot show it
    this.region = []; // corners [x, y], in pixels of the upright photo
    this.cross = null; // where the keyboard's crosshair is
    this.changed = () => {};
  }

  async take(file) {
    if (!file) return;
    if (this.url) URL.revokeObjectURL(this.url);
    [this.file, this.url, this.size, this.region, this.cross] = [file, URL.createObjectURL(file), null, [], null];
    const image = new Image();
    image.src = this.url;
    try {
      await image.decode();
      this.size = { width: image.naturalWidth, height: image.naturalHeight };
    } catch {
      this.size = null; // such as HEIC outside Safari: it can be sent all the same
    }
    this.writeRegion();
    this.changed();
  }

  /** The same photo with fewer pixels, upright, without anything but them. */
  async shrink() {
    const bitmap = await createImageBitmap(this.file);
    const scale = Math.min(1, SHRUNK_SIDE_PX / Math.max(bitmap.width, bitmap.height));
    const canvas = h("canvas", { width: Math.round(bitmap.width * scale), height: Math.round(bitmap.height * scale) });
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((done) => canvas.toBlob(done, "image/jpeg", SHRUNK_QUALITY));
    await this.take(new File([blob], this.file.name.replace(/\.\w+$/, "") + ".jpg", { type: "image/jpeg" }));
  }

  /** Corners from the text of the region's field; while that is no list of corners, none are drawn. */
  readRegion(text) {
    try {
      const given = JSON.parse(text);
      this.region = given.filter((corner) => corner.length === 2 && corner.every(Number.isFinite));
    } catch {
      this.region = [];
    }
    this.changed();
  }

  get regionText() {
    return this.region.length ? JSON.stringify(this.region) : "";
  }

  writeRegion() {
    const field = document.getElementById("param-region");
    if (field) field.value = this.regionText;
  }

  draw(region) {
    this.region = region;
    this.writeRegion();
    this.changed();
  }

  /** `draws`: whether a region is drawn on it; `max_bytes`: what a request may hold. */
  view({ draws, max_bytes }) {
    const choose = (name, words, attributes) => [
      h("input", { type: "file", id: name, class: "unseen", accept: "image/*,.heic,.heif,.bmp,.tif,.tiff", tabindex: "0", ...attributes, on: { change: (event) => this.take(event.target.files[0]) } }),
      h("label", { for: name, class: "button" }, words),
    ];
    return h(
      "div",
      { class: "photo", id: "photo", "data-key": "photo", role: "group", "aria-label": say("photo.title"), on: { dragover: hover, dragleave: hover, drop: (event) => this.drop(event) } },
      this.file && this.preview(draws),
      this.file && this.facts(max_bytes),
      h(
        "p",
        { class: "buttons", "data-key": "choose" },
        !this.file && h("span", { class: "faint" }, say("photo.drop")),
        choose("photo-file", say(this.file ? "photo.other" : "photo.choose"), {}),
        choose("photo-camera", say("photo.camera"), { capture: "user" }),
      ),
    );
  }

  drop(event) {
    event.preventDefault();
    event.currentTarget.classList.remove("over");
    this.take(event.dataTransfer.files[0]);
  }

  facts(max_bytes) {
    const size = bytes(this.file.size);
    const told = this.size
      ? say("photo.size", { width: number(this.size.width, 0), height: number(this.size.height, 0), bytes: size })
      : say("photo.no_preview", { bytes: size });
    const large = this.file.size + FORM_BYTES > max_bytes;
    return h(
      "div",
      { "data-key": "facts" },
      h("p", { class: "faint" }, told),
      large && h("p", { class: "problem", role: "alert" }, say("photo.too_large", { bytes: size, max: bytes(max_bytes) })),
      large && this.size && h("p", {}, h("button", { type: "button", id: "shrink", on: { click: () => this.shrink() } }, say("photo.shrink", { side: SHRUNK_SIDE_PX }))),
    );
  }

  preview(draws) {
    if (!this.size) return null;
    const { width, height } = this.size;
    return h(
      "div",
      { "data-key": this.url },
      h(
        "div",
        { class: "preview" },
        h("img", { src: this.url, alt: say("photo.alt"), width, height }),
        draws && this.drawing(),
      ),
      draws && h("p", { class: "help" }, say("region.help")),
      draws && h(
        "p",
        { class: "buttons" },
        h("span", { role: "status", id: "corners" }, say("region.corners", { count: this.region.length })),
        h("button", { type: "button", class: "quiet", on: { click: () => this.draw(this.region.slice(0, -1)) } }, say("region.undo")),
        h("button", { type: "button", class: "quiet", on: { click: () => this.draw([]) } }, say("region.clear")),
      ),
    );
  }

  drawing() {
    const { width, height } = this.size;
    const dot = Math.max(width, height) / 90;
    const points = this.region.map((corner) => corner.join(",")).join(" ");
    const cross = this.cross;
    return h(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`, tabindex: "0", role: "application", id: "region", "aria-label": say("region.label"),
        on: { click: (event) => this.click(event), keydown: (event) => this.key(event) },
      },
      this.region.length > 1 && h("polygon", { points }),
      this.region.map(([cx, cy]) => h("circle", { cx, cy, r: dot })),
      cross && h("path", { class: "cross", d: `M${cross[0] - 3 * dot},${cross[1]}h${6 * dot}M${cross[0]},${cross[1] - 3 * dot}v${6 * dot}` }),
    );
  }

  click(event) {
    const frame = event.currentTarget.getBoundingClientRect();
    const x = ((event.clientX - frame.left) / frame.width) * this.size.width;
    const y = ((event.clientY - frame.top) / frame.height) * this.size.height;
    this.draw([...this.region, this.inside(x, y)]);
  }

  key(event) {
    const { width, height } = this.size;
    const step = STEP * Math.max(width, height) * (event.shiftKey ? 5 : 1);
    const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] };
    const [x, y] = this.cross ?? [width / 2, height / 3];
    if (moves[event.key]) this.cross = this.inside(x + moves[event.key][0], y + moves[event.key][1]);
    else if (event.key === "Enter" || event.key === " ") this.draw([...this.region, this.inside(x, y)]);
    else if (event.key === "Backspace") this.draw(this.region.slice(0, -1));
    else return;
    event.preventDefault();
    this.changed();
  }

  inside(x, y) {
    const within = (value, most) => Math.round(Math.min(Math.max(value, 0), most - 1));
    return [within(x, this.size.width), within(y, this.size.height)];
  }
}

function hover(event) {
  event.preventDefault();
  event.currentTarget.classList.toggle("over", event.type === "dragover");
}
