// One call of the public interface, just as any other program makes it.

import { ROOT } from "./server.js";

/**
 * Send it; the answer as `{ status, envelope }`. `onProgress` hears the events of a call that tells its progress.
 * Throws what `fetch` throws, and where the answer breaks off.
 */
export async function run(call, photo, fields, { key, signal, onProgress }) {
  const body = new FormData();
  body.append("image", photo, photo.name);
  for (const [name, value] of fields) body.append(name, value);
  const response = await fetch(new URL(call.route.slice(1), ROOT), {
    method: "POST",
    body,
    signal,
    credentials: "omit",
    cache: "no-store",
    headers: {
      "Accept-Language": document.documentElement.lang,
      ...(call.slow && { Accept: "text/event-stream" }),
      ...(key && { Authorization: `Bearer ${key}` }),
    },
  });
  if (!response.headers.get("content-type")?.startsWith("text/event-stream")) {
    return { status: response.status, envelope: await response.json() };
  }
  for await (const told of events(response.body)) {
    if (told.event === "result") return { status: response.status, envelope: told.data };
    onProgress(told);
  }
  throw new TypeError("the stream ended before its result");
}

/** Server-sent events as they arrive: `{ event, data }`, comments left out. */
async function* events(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]);
      const { event, data } = Object.fromEntries(lines);
      if (event) yield { event, data: JSON.parse(data) };
    }
  }
}
