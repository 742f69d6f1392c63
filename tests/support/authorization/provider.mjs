// An authorization server: oidc-provider, with registration, resource indicators, rotating refresh tokens, revocation
// and introspection. Its pages take any name and password. Prints its port, and ends with its input.
//
//   node provider.mjs <folder of node_modules> '{"accessTokenSeconds": 3600, "clients": []}'
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const [home, text] = process.argv.slice(2);
console.log = console.info = console.warn = console.error; // it warns of its development keys on standard output
const { Provider } = await import(pathToFileURL(`${home}/oidc-provider/lib/index.js`));
const settings = JSON.parse(text);

const server = createServer();
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [
    { client_id: "resource-server", client_secret: "resource-server-secret", redirect_uris: [], grant_types: [], response_types: [] },
    ...settings.clients,
  ],
  scopes: ["openid", "offline_access", "mcp:tools", "mcp:more"],
  ttl: { AccessToken: settings.accessTokenSeconds },
  features: {
    registration: { enabled: true },
    revocation: { enabled: true, allowedPolicy: () => true },
    introspection: { enabled: true, allowedPolicy: () => true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_context, resource) => ({
        scope: "mcp:tools mcp:more",
        audience: resource,
        accessTokenFormat: "opaque",
        accessTokenTTL: settings.accessTokenSeconds,
      }),
    },
  },
  rotateRefreshToken: true,
});
const answer = provider.callback();
let refused = 0; // how many token requests are answered with 503 from now on
let tokenRequests = 0;
server.on("request", (request, response) => {
  if (request.url === "/test/counts") return response.end(JSON.stringify({ tokenRequests }));
  if (request.url.startsWith("/test/refuse/")) return response.end(String((refused = Number(request.url.split("/").pop()))));
  if (request.url === "/token") {
    tokenRequests += 1;
    if (refused > 0) {
      refused -= 1;
      response.statusCode = 503;
      return response.end();
    }
  }
  return answer(request, response);
});
process.stdout.write(`${server.address().port}\n`);
process.stdin.resume().on("end", () => process.exit(0));
