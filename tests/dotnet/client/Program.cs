// What other .NET programs do with a Host and its files, with .NET's own classes. One JSON document per line of output.

using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Text.Json;
using System.Threading.Tasks;
using System.Xml.Linq;
using Microsoft.Extensions.Configuration;

public static class Program
{
    private static readonly object OneLineAtATime = new object();

    public static async Task<int> Main(string[] arguments)
    {
        var rest = arguments.Skip(1).ToArray();
        switch (arguments[0])
        {
            case "servers": Say(Registry.Servers()); break;
            case "properties": Say(Properties(rest[0])); break;
            case "quote": Quote(); break;
            case "flags": Flags(); break;
            case "rebind": await Rebind(rest[0], rest[1]); break;
            case "mcp": await Mcp.Talk(rest[0]); break;
            case "app": await App.Talk(rest[0]); break;
            case "ide": await Ide.Talk(rest[0]); break;
            default: throw new ArgumentException($"there is no '{arguments[0]}' here");
        }
        return 0;
    }

    public static void Say(object document)
    {
        var line = JsonSerializer.Serialize(document);
        lock (OneLineAtATime)
        {
            Console.Out.WriteLine(line);
            Console.Out.Flush();
        }
    }

    // Each element below a property group, as a reader of .csproj.user sees it.
    private static object Properties(string path)
    {
        var root = XDocument.Load(path).Root;
        return root.Elements(root.Name.Namespace + "PropertyGroup").Elements()
            .Select(property => new[] { property.Name.LocalName, property.Value });
    }

    // Each text of the input in the characters of both serializers.
    private static void Quote()
    {
        foreach (var text in JsonSerializer.Deserialize<string[]>(Console.In.ReadToEnd()))
        {
            Say(new[] { JsonSerializer.Serialize(text), Newtonsoft.Json.JsonConvert.SerializeObject(text) });
        }
    }

    // Each list of arguments in the input as the .NET Host's configuration has it, with the environment before it.
    private static void Flags()
    {
        var shortForms = new Dictionary<string, string> { ["-c"] = "command" };
        foreach (var arguments in JsonSerializer.Deserialize<string[][]>(Console.In.ReadToEnd()))
        {
            Say(new ConfigurationBuilder()
                .AddEnvironmentVariables("UNO_DEVSERVER_")
                .AddCommandLine(arguments, shortForms)
                .Build()
                .AsEnumerable()
                .Where(flag => flag.Value != null) // a section
                .ToDictionary(flag => flag.Key.ToLowerInvariant(), flag => flag.Value));
        }
    }

    private static async Task Rebind(string port, string channel)
    {
        using var client = new HttpClient();
        var url = $"http://localhost:{port}/devserver/idechannel/{Uri.EscapeDataString(channel)}";
        using var response = await client.PostAsync(url, null);
        Say(new { status = (int)response.StatusCode, body = await response.Content.ReadAsStringAsync() });
    }
}
