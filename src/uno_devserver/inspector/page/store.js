// The state of the proxy as this page knows it, and its subscribers. Only events.js writes to it.

const CALLS_KEPT = 300; // a snapshot has 200; more rows are not useful
const LINES_KEPT = 2000; // of the log
const TELL_MS = 40; // events come by the hundred; 25 updates a second look live

/**
 * subscribe(listener): listener(state, change, details) where change is "snapshot", "health", "call", "log", "servers",
 * "lists" or "connection", and details are the data of the events since the last time, oldest first.
 */
export class Store {
  state = {
    connection: "connecting", // "connected", "reconnecting", "refused"
    ready: false, // whether there was a snapshot
    version: "",
    processId: null,
    home: "", // the folder of the user
    directory: "",
    solution: null,
    startedAt: null, // seconds since 1970
    ownTools: [], // names of tools that the proxy itself may answer
    clockSkewMs: 0, // this clock minus the proxy's
    health: null,
    calls: new Map(), // by id, oldest first
    log: [], // oldest first; lines of the server arrive when they are read, up to a second later, or when a page opens
    servers: [],
    proxies: [],
    listsRevision: 0, // grows whenever tools, resources and prompts have to be read again
  };

  #listeners = new Set();
  #pending = new Map();
  #telling = 0;

  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  setConnection(connection) {
    if (connection === this.state.connection) return;
    this.state.connection = connection;
    this.#tell("connection", connection);
  }

  /** Handles one event of the stream. Unknown names come from a newer proxy, and are ignored. */
  receive(event, data) {
    const take = this.#takers[event];
    if (!take) return;
    take(data);
    this.#tell(event, data);
  }

  #takers = {
    snapshot: (data) => {
      const { state } = this;
      Object.assign(state, {
        ready: true,
        version: data.version,
        processId: data.processId,
        home: data.home ?? "",
        directory: data.directory,
        solution: data.solution,
        startedAt: data.startedAt,
        ownTools: data.ownTools ?? [],
        clockSkewMs: Date.now() - data.now * 1000,
        health: data.health,
        calls: new Map((data.calls ?? []).map((call) => [call.id, call])),
        log: (data.log ?? []).slice(-LINES_KEPT).sort(byTime),
        servers: data.servers ?? [],
        proxies: data.proxies ?? [],
        listsRevision: state.listsRevision + 1,
      });
      this.#pending.clear(); // the snapshot includes the pending changes
    },
    health: (data) => {
      this.state.health = data;
    },
    call: (data) => {
      const { calls } = this.state;
      calls.set(data.id, data);
      if (calls.size > CALLS_KEPT) calls.delete(calls.keys().next().value);
    },
    log: (data) => {
      this.state.log.push(...data);
      this.state.log.sort(byTime); // it is nearly sorted, so this is fast
      if (this.state.log.length > LINES_KEPT) this.state.log.splice(0, this.state.log.length - LINES_KEPT);
    },
    servers: (data) => {
      this.state.servers = data.servers ?? [];
      this.state.proxies = data.proxies ?? [];
    },
    lists: () => {
      this.state.listsRevision += 1;
    },
  };

  #tell(change, data) {
    if (!this.#pending.has(change)) this.#pending.set(change, []);
    this.#pending.get(change).push(data);
    this.#telling ||= setTimeout(() => this.#flush(), TELL_MS);
  }

  #flush() {
    const pending = this.#pending;
    this.#pending = new Map();
    this.#telling = 0;
    for (const [change, details] of pending) {
      for (const listener of [...this.#listeners]) listener(this.state, change, details);
    }
  }
}

/** Lines of the same time keep their order. */
function byTime(one, other) {
  return one.at - other.at;
}
