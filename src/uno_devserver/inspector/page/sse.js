// Parses server-sent events from pieces of text of any size.

export class EventReader {
  #rest = ""; // an unfinished line
  #afterReturn = false; // the next newline would belong to the same line end
  #name = "";
  #data = [];

  /** The events that this text completes: [{ name, data }]. */
  feed(text) {
    const events = [];
    if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1);
    this.#afterReturn = text.endsWith("\r");
    // Only the new text is searched, because a long event comes in many pieces.
    const lines = text.split(/\r\n|\n|\r/);
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    for (const line of lines) {
      if (line === "") this.#finish(events);
      else this.#read(line);
    }
    return events;
  }

  #read(line) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#name = value;
  }

  #finish(events) {
    if (this.#data.length) events.push({ name: this.#name || "message", data: this.#data.join("\n") });
    this.#name = "";
    this.#data = [];
  }
}
