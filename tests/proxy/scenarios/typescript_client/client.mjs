// The official TypeScript client with a server that it starts itself: lines of JSON in, lines of JSON out.
// The first line is how the server is started, each further one the parameters of a call; a line answers each.
import { createInterface } from "node:readline";

import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const client = new Client({ name: "typescript-client", version: "1" });
const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");

let connected = false;
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  if (connected) {
    say(await client.callTool(asked, { timeout: 60_000 }));
  } else {
    await client.connect(new StdioClientTransport(asked));
    connected = true;
    say((await client.listTools()).tools.map((tool) => tool.name));
  }
}
await client.close();
