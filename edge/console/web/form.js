// The fields of a call's parameters, by their kind.

import { h } from "./dom.js";
import { named, say } from "./words.js";

/** Every parameter of `call`, and its files but the photo. */
export function parameterFields(call, photo) {
  const files = call.files.filter((name) => name !== "image").map((name) => ({ name, kind: "file" }));
  return [...call.parameters, ...files].map((parameter) => h("div", { class: "field" }, FIELDS[parameter.kind](parameter, photo)));
}

const FIELDS = {
  boolean: (parameter) => [
    h("label", { class: "tick" }, h("input", { type: "checkbox", name: parameter.name, value: "true", checked: parameter.default }), " ", label(parameter)),
    help(parameter),
  ],
  choice: (parameter) => [
    h("label", { for: id(parameter) }, label(parameter)),
    h(
      "select",
      { id: id(parameter), name: parameter.name, "aria-describedby": `${id(parameter)}-help` },
      h("option", { value: "" }, say("param.default")),
      parameter.values.map((value) => h("option", { value }, named("value", value))),
    ),
    help(parameter),
  ],
  choices: (parameter) =>
    h(
      "fieldset",
      { class: "choices" },
      h("legend", {}, label(parameter)),
      parameter.values.map((value) => h("label", { class: "tick" }, h("input", { type: "checkbox", name: parameter.name, value }), " ", named("value", value))),
      help(parameter),
    ),
  number: (parameter) => numeric(parameter, "any"),
  integer: (parameter) => numeric(parameter, "1"),
  region: (parameter, photo) => [
    h("label", { for: id(parameter) }, label(parameter)),
    h(
      "textarea",
      {
        id: id(parameter),
        name: parameter.name,
        rows: 3,
        spellcheck: "false",
        placeholder: "[[x, y], …]",
        "aria-describedby": `${id(parameter)}-help`,
        on: { input: (event) => photo.readRegion(event.target.value) },
      },
      photo.regionText, // what a new field begins with; what is typed into it stays
    ),
    help(parameter),
  ],
  file: (parameter) => [
    h("label", { for: id(parameter) }, label(parameter)),
    h("input", { type: "file", id: id(parameter), name: parameter.name, accept: "image/*", "aria-describedby": `${id(parameter)}-help` }),
    help(parameter),
  ],
};

function numeric(parameter, step) {
  const { name, min, max } = parameter;
  const far = (limit) => limit !== null && Math.abs(limit) <= Number.MAX_SAFE_INTEGER; // others a browser would round
  return [
    h("label", { for: id(parameter) }, label(parameter)),
    h("input", { type: "number", id: id(parameter), name, step, min: far(min) ? min : null, max: far(max) ? max : null, placeholder: say("param.default"), "aria-describedby": `${id(parameter)}-help` }),
    help(parameter),
  ];
}

const id = (parameter) => `param-${parameter.name}`;
const label = (parameter) => say(`param.${parameter.name}`);
const help = (parameter) => h("p", { class: "help", id: `${id(parameter)}-help` }, say(`param.${parameter.name}.help`, { min: parameter.min, max: parameter.max }));
