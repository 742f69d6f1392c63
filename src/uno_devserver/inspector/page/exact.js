// JSON whose numbers stay as they were written: the last figures of a long id are not rounded away. Where a browser
// cannot do that yet, they are.

const INEXACT = /\d{16}|[eE]\+?\d{3}/; // in a text without such, every number is held as it is
const WHOLE = /^-?\d+$/;

/** As JSON.parse; a number that cannot be held is an object that JSON.stringify writes as it came. */
export function parseExactly(text) {
  return JSON.rawJSON && INEXACT.test(text) ? JSON.parse(text, kept) : JSON.parse(text);
}

function kept(_, value, context) {
  if (typeof value !== "number") return value;
  const lost = WHOLE.test(context.source) ? !Number.isSafeInteger(value) : !Number.isFinite(value);
  return lost ? JSON.rawJSON(context.source) : value;
}
