// Everything by which a page can ask another server; each gives what it learned, or null.
async ({address, token, call, headers, seconds}) => {
  const asked = `token=${encodeURIComponent(token)}`;
  const bounded = (attack) => Promise.race([
    new Promise(attack).catch(() => null),
    new Promise((resolve) => setTimeout(resolve, seconds * 1000, null)),
  ]);
  const read = (path, options) => async (resolve) => {
    try {
      const response = await fetch(`${address}${path}`, options);
      const chunk = await response.body?.getReader().read(); // a stream of events has no end
      resolve(chunk?.value ? new TextDecoder().decode(chunk.value) : response.type === "opaque" ? null : response.status);
    } catch { resolve(null); }
  };
  const outcome = (resolve, good) => ({onload: () => resolve(good), onerror: () => resolve(null)});
  const element = (tag, attributes, root = document.body) => {
    const made = Object.assign(document.createElement(tag), attributes);
    root.append(made);
    return made;
  };
  const body = JSON.stringify(call);
  const bearer = {Authorization: `Bearer ${token}`};
  const results = {};
  for (const path of ["/", "/health", "/events", "/mcp", "/code", "/key", "/other-page"]) {
    results[`fetch ${path}`] = await bounded(read(`${path}?${asked}`));
    results[`fetch ${path} with a header`] = await bounded(read(path, {headers: bearer}));
    results[`fetch ${path} without cors`] = await bounded(read(`${path}?${asked}`, {mode: "no-cors"}));
  }
  results["post"] = await bounded(read(`/mcp?${asked}`, {method: "POST", body, headers: {...headers, ...bearer}}));
  for (const path of ["/code", "/key", "/other-page"])
    results[`post ${path}`] = await bounded(read(`${path}?${asked}`, {method: "POST", body: token, headers: bearer}));
  results["post without cors"] = await bounded(read(`/mcp?${asked}`, {method: "POST", body, mode: "no-cors"}));
  navigator.sendBeacon(`${address}/mcp?${asked}`, body);
  results["event source"] = await bounded((resolve) => {
    const source = new EventSource(`${address}/events?${asked}`);
    source.onopen = source.onmessage = () => resolve("open");
    source.addEventListener("snapshot", (event) => resolve(event.data));
    source.onerror = () => { source.close(); resolve(null); };
  });
  for (const path of ["/", "/health", "/mcp", "/assets/app.js"])
    results[`script ${path}`] = await bounded((resolve) =>
      element("script", {src: `${address}${path}?${asked}`, ...outcome(resolve, "ran")}));
  results["style"] = await bounded((resolve) =>
    element("link", {rel: "stylesheet", href: `${address}/assets/style.css`, ...outcome(resolve, "applied")}));
  results["image"] = await bounded((resolve) =>
    element("img", {src: `${address}/assets/favicon.svg`, ...outcome(resolve, "shown")}));
  for (const path of ["/events", "/mcp"])
    results[`socket ${path}`] = await bounded((resolve) => {
      const socket = new WebSocket(`${address.replace("http", "ws")}${path}?${asked}`);
      socket.onopen = () => resolve("open");
      socket.onerror = () => resolve(null);
    });
  results["frame"] = await bounded((resolve) => element("iframe", {
    src: `${address}/?${asked}`,
    onload: (event) => {
      try { resolve(event.target.contentDocument?.body.textContent || null); } catch { resolve(null); }
    },
  }));
  results["form"] = await bounded((resolve) => {
    const frame = element("iframe", {name: "answer"});
    const form = element("form", {method: "post", enctype: "text/plain", target: "answer",
                                  action: `${address}/mcp?${asked}`});
    // `name=value` is sent: the JSON is cut in two, so that it is still JSON.
    const cut = body.lastIndexOf("}");
    element("input", {name: `${body.slice(0, cut)}, "x": "`, value: '"}'}, form);
    frame.onload = () => resolve(null);
    form.submit();
  });
  return results;
}
