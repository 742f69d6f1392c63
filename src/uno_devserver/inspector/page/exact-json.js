// JSON whose numbers keep all their digits, as long ids need. A browser without support for that rounds them.

const INEXACT = /\d{16}|[eE]\+?\d{3}/; // a text without such a number can be parsed exactly by JSON.parse
const WHOLE = /^-?\d+$/;

/** Like JSON.parse; a number that is not exact becomes an object that JSON.stringify writes unchanged. */
export function parseExactly(text) {
  return JSON.rawJSON && INEXACT.test(text) ? JSON.parse(text, kept) : JSON.parse(text);
}

function kept(_, value, context) {
  if (typeof value !== "number") return value;
  const lost = WHOLE.test(context.source) ? !Number.isSafeInteger(value) : !Number.isFinite(value);
  return lost ? JSON.rawJSON(context.source) : value;
}
