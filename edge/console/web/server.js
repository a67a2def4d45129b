// What the page asks the edge for. The session is a cookie that scripts cannot see.

const HERE = new URL(".", import.meta.url);
/** Where the edge's own paths begin, whatever prefix a proxy puts before them. */
export const ROOT = new URL("..", import.meta.url);
const PATIENCE_MS = 8000;

/** The edge said no. */
export class Refused extends Error {
  constructor(status, message, retryAfter_s) {
    super(message);
    this.status = status;
    this.retryAfter_s = retryAfter_s;
  }
}

async function ask(method, path, body) {
  const response = await fetch(new URL(path, HERE), {
    method,
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.timeout(PATIENCE_MS),
    headers: { "X-HairMesh-Console": "1", ...(body && { "Content-Type": "application/json" }) },
    body: body && JSON.stringify(body),
  });
  const told = await response.json();
  if (!response.ok) throw new Refused(response.status, told.message, response.headers.get("retry-after"));
  return told;
}

/** Whether a session is open. */
export const session = () => ask("GET", "session");
/** Open one by an admin token. */
export const enter = (token) => ask("POST", "session", { token });
/** End it. */
export const leave = () => ask("DELETE", "session");
/** The edge and its workers at this moment. */
export const state = () => ask("GET", "state");
/** How the requests went. */
export const stats = (window) => ask("GET", `stats?window=${window}`);
/** The calls, and what limits their photo. */
export const calls = () => ask("GET", "calls");
/** Switch the alert drill. */
export const drill = (enabled) => ask("POST", "drill", { enabled });
