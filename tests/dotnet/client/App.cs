// An app on /rc: each line of the input, [scope, name, content], becomes a frame by BinaryWriter, and each frame that
// comes is read by BinaryReader and its content into a class, by System.Text.Json. The end of the input ends it.

using System;
using System.Collections.Generic;
using System.IO;
using System.Net.WebSockets;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

public static class App
{
    private static readonly Dictionary<string, Type> Classes = new Dictionary<string, Type>
    {
        ["KeepAliveMessage"] = typeof(KeepAliveMessage),
        ["ProcessorsDiscoveryResponse"] = typeof(ProcessorsDiscoveryResponse),
        ["UpdateFileResponse_2"] = typeof(UpdateFileResponse),
    };

    public static async Task Talk(string port)
    {
        using var socket = new ClientWebSocket();
        socket.Options.KeepAliveInterval = TimeSpan.FromMilliseconds(20); // a pong that nobody asked for, each time
        await socket.ConnectAsync(new Uri($"ws://localhost:{port}/rc"), CancellationToken.None);
        var receiving = Receive(socket);
        string line;
        while ((line = await Console.In.ReadLineAsync()) != null)
        {
            var frame = JsonSerializer.Deserialize<string[]>(line);
            await socket.SendAsync(Bytes(frame), WebSocketMessageType.Binary, true, CancellationToken.None);
        }
        await socket.CloseOutputAsync(WebSocketCloseStatus.NormalClosure, "", CancellationToken.None);
        await receiving;
        Program.Say(new { closed = (int?)socket.CloseStatus });
    }

    private static byte[] Bytes(string[] frame)
    {
        var stream = new MemoryStream();
        var writer = new BinaryWriter(stream);
        writer.Write((short)1);
        foreach (var text in frame)
        {
            writer.Write(text);
        }
        return stream.ToArray();
    }

    private static async Task Receive(WebSocket socket)
    {
        var buffer = new byte[4096];
        var message = new MemoryStream();
        while (true)
        {
            var part = await socket.ReceiveAsync(new ArraySegment<byte>(buffer), CancellationToken.None);
            if (part.MessageType == WebSocketMessageType.Close)
            {
                return;
            }
            message.Write(buffer, 0, part.Count);
            if (part.EndOfMessage)
            {
                Report(message.ToArray(), part.MessageType);
                message.SetLength(0);
            }
        }
    }

    private static void Report(byte[] bytes, WebSocketMessageType type)
    {
        var stream = new MemoryStream(bytes);
        var reader = new BinaryReader(stream);
        var version = reader.ReadInt16();
        string scope = reader.ReadString(), name = reader.ReadString(), content = reader.ReadString();
        var message = JsonSerializer.Deserialize(content, Classes[name]);
        Program.Say(new
        {
            binary = type == WebSocketMessageType.Binary,
            version,
            scope,
            name,
            unread = stream.Length - stream.Position,
            message,
            // Whether .NET would have written the very same characters.
            same = JsonSerializer.Serialize(message, Classes[name]) == content,
        });
    }
}

public sealed class KeepAliveMessage
{
    public string Scope { get; set; }
    public string AssemblyVersion { get; set; }
    public ulong SequenceId { get; set; }
}

public sealed class ProcessorsDiscoveryResponse
{
    public List<string> Assemblies { get; set; }
    public List<DiscoveredProcessor> Processors { get; set; }
    public string Scope { get; set; }
}

public sealed class DiscoveredProcessor
{
    public string AssemblyPath { get; set; }
    public string Type { get; set; }
    public string Version { get; set; }
    public bool IsLoaded { get; set; }
    public string LoadError { get; set; }
}

public sealed class UpdateFileResponse
{
    public string RequestId { get; set; }
    public string GlobalError { get; set; }
    public List<FileResult> Results { get; set; }
    public long? HotReloadCorrelationId { get; set; }
}

public sealed class FileResult
{
    public string FilePath { get; set; }
    public int Result { get; set; }
    public string Error { get; set; }
}
