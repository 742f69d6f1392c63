// The values that a form was last sent with, or the last choice, for as long as the tab is open.

import { parseExactly } from "./exact-json.js";

const PREFIX = "uno-devserver:";

export function createMemory(kind, key) {
  const name = `${PREFIX}${kind}:${key}`;
  return {
    read() {
      try {
        return parseExactly(sessionStorage.getItem(name)) ?? undefined;
      } catch {
        return undefined;
      }
    },
    write(values) {
      try {
        sessionStorage.setItem(name, JSON.stringify(values));
      } catch {
        // The storage is full or forbidden; the call goes on without it.
      }
    },
  };
}
