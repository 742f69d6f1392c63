#!/usr/bin/env node
import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { z } from "zod";

import { greeting } from "./greeting.js";

serveStdio(() => {
  const server = new McpServer({ name: "greeter-ts", version: "1.0.0" });

  server.registerTool(
    "greet",
    {
      description: "Greets somebody by name.",
      inputSchema: z.object({ name: z.string() }),
      annotations: { readOnlyHint: true },
    },
    async ({ name }) => ({ content: [{ type: "text", text: greeting(name) }] }),
  );

  server.registerTool(
    "count_words",
    {
      description: "Counts the words of a text.",
      inputSchema: z.object({ text: z.string() }),
      annotations: { readOnlyHint: true },
    },
    async ({ text }) => ({
      content: [{ type: "text", text: String(text.split(/\s+/).filter(Boolean).length) }],
    }),
  );

  return server;
});
