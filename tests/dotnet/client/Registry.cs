// The registry as .NET launchers read it: names by case, dead processes left out, the sidecar's channel where the
// entry has none, and only entries of this user on this machine.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Text;
using System.Text.Json;

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

public sealed class Sidecar
{
    public int ProcessId { get; set; }
    public string IdeChannelId { get; set; }
}

public static class Registry
{
    public static List<object> Servers()
    {
        var data = Environment.GetFolderPath(Environment.SpecialFolder.LocalApplicationData);
        var servers = new List<object>();
        foreach (var path in Directory.GetFiles(Path.Combine(data, "Uno Platform", "DevServers"), "devserver-*.json"))
        {
            if (path.EndsWith(".aux.json", StringComparison.Ordinal))
            {
                continue;
            }
            var bytes = File.ReadAllBytes(path);
            var entry = JsonSerializer.Deserialize<Entry>(bytes);
            if (entry.MachineName != Environment.MachineName || entry.UserName != Environment.UserName)
            {
                continue;
            }
            Process.GetProcessById(entry.ProcessId); // throws for a process that is not there
            var indented = new JsonSerializerOptions { WriteIndented = true };
            servers.Add(new
            {
                entry.ProcessId,
                entry.ParentProcessId,
                entry.SolutionPath,
                entry.Port,
                Channel = Blank(entry.IdeChannelId) ? ChannelInSidecar(path) : entry.IdeChannelId,
                IsUtc = entry.StartTime.Kind == DateTimeKind.Utc,
                Age = (DateTime.UtcNow - entry.StartTime).TotalSeconds,
                // Whether .NET would have written the very same bytes.
                Same = Encoding.UTF8.GetString(bytes) == JsonSerializer.Serialize(entry, indented),
            });
        }
        return servers;
    }

    private static string ChannelInSidecar(string entryPath)
    {
        var path = Path.ChangeExtension(entryPath, ".aux.json");
        return File.Exists(path) ? JsonSerializer.Deserialize<Sidecar>(File.ReadAllBytes(path)).IdeChannelId : null;
    }

    private static bool Blank(string text) => string.IsNullOrWhiteSpace(text);
}
