// The same call for a terminal. No token and no key stands in it: a key is named as a variable.

const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
/** A file's name inside curl's own quotes, so that commas and semicolons in it are its own. */
const named = (file) => `@"${file.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** `fields`: name and text, or name and file, as they are sent. */
export function curl(base, call, photoName, fields, { withKey }) {
  const lines = [`curl -sS ${quoted(base + call.route)}`];
  lines.push(`-H ${quoted(`Accept-Language: ${document.documentElement.lang}`)}`);
  if (call.slow) lines.push(`-N -H ${quoted("Accept: text/event-stream")}`);
  if (withKey) lines.push('-H "Authorization: Bearer $HAIRMESH_API_KEY"');
  lines.push(`-F ${quoted(`image=${named(photoName)}`)}`);
  for (const [name, value] of fields) {
    lines.push(value instanceof File ? `-F ${quoted(`${name}=${named(value.name)}`)}` : `--form-string ${quoted(`${name}=${value}`)}`);
  }
  return lines.join(" \\\n  ");
}
