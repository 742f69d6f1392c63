// The kind, and so the colour, of each state name of the proxy: ok, busy, warn, bad, quiet. Unknown names are quiet.

const KINDS = {
  __proto__: null,
  // states of the connection to the server behind the proxy
  Initializing: "busy",
  Discovering: "busy",
  Launching: "busy",
  Connecting: "busy",
  Connected: "ok",
  Reconnecting: "busy",
  Degraded: "warn",
  Shutdown: "quiet",
  // health, and severities of issues
  Healthy: "ok",
  Unhealthy: "bad",
  Fatal: "bad",
  Warning: "warn",
  // calls
  queued: "quiet",
  running: "busy",
  restarting: "warn",
  done: "ok",
  failed: "bad",
  cancelled: "quiet",
  // levels of the log
  Information: "quiet",
  Error: "bad",
  Critical: "bad",
  // hot reload
  idle: "ok",
  checking: "busy",
  building: "busy",
};

export function kindOf(word) {
  return KINDS[word] ?? "quiet";
}
