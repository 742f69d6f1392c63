// An MCP server that says what its parts say, and from where it runs: `say` at once, `sayLate` when its gate is a file.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Reflection;
using System.Text.Json;
using System.Threading;

public static class Program
{
    public static void Main()
    {
        string line;
        while ((line = Console.In.ReadLine()) != null)
        {
            using var message = JsonDocument.Parse(line);
            if (!message.RootElement.TryGetProperty("id", out var id)) continue;
            var result = Answer(message.RootElement);
            var answer = new Dictionary<string, object> { ["jsonrpc"] = "2.0", ["id"] = id.Clone() };
            if (result == null) answer["error"] = new { code = -32601, message = "no such method" };
            else answer["result"] = result;
            Console.Out.WriteLine(JsonSerializer.Serialize(answer));
            Console.Out.Flush();
        }
    }

    private static object Answer(JsonElement message)
    {
        switch (message.GetProperty("method").GetString())
        {
            case "initialize":
                return new
                {
                    protocolVersion = "2025-06-18",
                    capabilities = new { tools = new { } },
                    serverInfo = new { name = "csharp", version = "1" },
                };
            case "tools/list":
                var schema = new { type = "object" };
                return new
                {
                    tools = new[] { new { name = "say", inputSchema = schema }, new { name = "sayLate", inputSchema = schema } },
                };
            case "tools/call":
                if (message.GetProperty("params").GetProperty("arguments").TryGetProperty("gate", out var gate))
                {
                    File.WriteAllText(gate.GetString() + ".begun", "");
                    while (!File.Exists(gate.GetString())) Thread.Sleep(10);
                }
                return new { content = new[] { new { type = "text", text = JsonSerializer.Serialize(Said()) } } };
            default:
                return null;
        }
    }

    private static object Said()
    {
        var product = Assembly.GetExecutingAssembly().GetCustomAttribute<AssemblyProductAttribute>();
        return new
        {
            server = Server.Text,
            lib = Lib.Text,
            core = Core.Text,
            linked = Linked.Text,
            props = product.Product,
            folder = AppContext.BaseDirectory.TrimEnd('/'),
            process = Process.GetCurrentProcess().Id,
        };
    }
}
