// A Host in C#, as small as one can be that keeps what the .NET Host of the Uno packages promises to a launcher: its
// flags by .NET's own configuration, its registry entry by System.Text.Json, Kestrel on its port, 406 at /mcp, and
// POST /devserver/idechannel/{id}. What it was called with goes to the file that HOST_LOG names, one line per launch.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Text.Json;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.Extensions.Configuration;

public sealed class Entry
{
    public int ProcessId { get; set; }
    public int ParentProcessId { get; set; }
    public string SolutionPath { get; set; }
    public DateTime StartTime { get; set; }
    public int Port { get; set; }
    public string MachineName { get; set; }
    public string UserName { get; set; }
    public string IdeChannelId { get; set; }
}

public static class Program
{
    private static readonly JsonSerializerOptions Indented = new JsonSerializerOptions { WriteIndented = true };

    public static int Main(string[] arguments)
    {
        var flags = new ConfigurationBuilder()
            .AddEnvironmentVariables("UNO_DEVSERVER_")
            .AddCommandLine(arguments)
            .Build();
        Log(arguments, flags);
        var entry = new Entry
        {
            ProcessId = Process.GetCurrentProcess().Id,
            ParentProcessId = flags.GetValue("ppid", 0),
            SolutionPath = flags["solution"],
            StartTime = DateTime.UtcNow,
            Port = flags.GetValue<int>("httpPort"),
            MachineName = Environment.MachineName,
            UserName = Environment.UserName,
            IdeChannelId = flags["ideChannel"],
        };
        var path = PathOf(entry.ProcessId);
        Write(path, entry);
        try
        {
            new WebHostBuilder()
                .UseKestrel()
                .UseUrls($"http://*:{entry.Port}/")
                .Configure(app => app.Run(context => Answer(context, entry, path)))
                .Build()
                .Run();
        }
        finally
        {
            File.Delete(path);
        }
        return 0;
    }

    private static Task Answer(HttpContext context, Entry entry, string path)
    {
        const string rebind = "/devserver/idechannel/";
        var asked = context.Request.Path.Value;
        if (context.Request.Method == "POST" && asked.StartsWith(rebind, StringComparison.Ordinal))
        {
            entry.IdeChannelId = asked.Substring(rebind.Length);
            Write(path, entry);
            context.Response.ContentType = "application/json";
            return context.Response.WriteAsync(JsonSerializer.Serialize(new { ideChannelId = entry.IdeChannelId }));
        }
        context.Response.StatusCode = asked == "/mcp" ? 406 : 404;
        return Task.CompletedTask;
    }

    private static string PathOf(int process)
    {
        var data = Environment.GetFolderPath(
            Environment.SpecialFolder.LocalApplicationData, Environment.SpecialFolderOption.Create);
        var folder = Path.Combine(data, "Uno Platform", "DevServers");
        Directory.CreateDirectory(folder);
        return Path.Combine(folder, $"devserver-{process}.json");
    }

    private static void Write(string path, Entry entry)
    {
        var temporary = $"{path}.{Guid.NewGuid():N}.tmp";
        File.WriteAllText(temporary, JsonSerializer.Serialize(entry, Indented));
        File.Move(temporary, path, overwrite: true);
    }

    private static void Log(string[] arguments, IConfiguration flags)
    {
        var line = JsonSerializer.Serialize(new Dictionary<string, object>
        {
            ["pid"] = Process.GetCurrentProcess().Id,
            ["arguments"] = arguments,
            ["flags"] = flags.AsEnumerable().ToDictionary(flag => flag.Key.ToLowerInvariant(), flag => flag.Value),
            ["folder"] = Environment.CurrentDirectory,
        });
        File.AppendAllText(Environment.GetEnvironmentVariable("HOST_LOG"), line + "\n");
    }
}
