// An IDE on the channel: .NET's client of named pipes, frames with a Content-Length, envelopes whose class .NET finds by
// its name, and bodies by Newtonsoft.Json, which is what IDE extensions use. Each line of the input, [class, body], is
// sent as a call; everything that comes is reported. The end of the input ends it.

using System;
using System.IO;
using System.IO.Pipes;
using System.Text;
using System.Text.Json;
using System.Threading.Tasks;
using Newtonsoft.Json;
using Newtonsoft.Json.Linq;
using Uno.UI.RemoteControl.Messaging.IdeChannel;

public static class Ide
{
    private const int ConnectMilliseconds = 20_000;

    public static async Task Talk(string channel)
    {
        using var pipe = new NamedPipeClientStream(".", channel, PipeDirection.InOut, PipeOptions.Asynchronous);
        await pipe.ConnectAsync(ConnectMilliseconds);
        var receiving = Task.Run(() => Receive(pipe));
        string line;
        for (var id = 1; (line = await Console.In.ReadLineAsync()) != null; id++)
        {
            var call = System.Text.Json.JsonSerializer.Deserialize<string[]>(line);
            await Send(pipe, Call(id, call[0], call[1]));
        }
    }

    private static string Call(int id, string name, string body)
    {
        var type = typeof(KeepAliveIdeMessage).Assembly.GetType($"{typeof(KeepAliveIdeMessage).Namespace}.{name}", true);
        var message = JsonConvert.DeserializeObject(body, type);
        var envelope = new
        {
            MessageType = type.AssemblyQualifiedName,
            MessageBody = JsonConvert.SerializeObject(message),
        };
        var parameters = new object[] { envelope };
        return JsonConvert.SerializeObject(
            new { jsonrpc = "2.0", method = "SendToDevServerAsync", @params = parameters, id });
    }

    private static Task Send(Stream pipe, string content)
    {
        var body = Encoding.UTF8.GetBytes(content);
        var head = Encoding.ASCII.GetBytes($"Content-Length: {body.Length}\r\n\r\n");
        var frame = new byte[head.Length + body.Length];
        head.CopyTo(frame, 0);
        body.CopyTo(frame, head.Length);
        return pipe.WriteAsync(frame, 0, frame.Length);
    }

    private static void Receive(Stream pipe)
    {
        var reader = new BinaryReader(pipe);
        try
        {
            while (true)
            {
                Report(Encoding.UTF8.GetString(reader.ReadBytes(ContentLength(reader))));
            }
        }
        catch (EndOfStreamException)
        {
            Program.Say(new { ended = true });
        }
    }

    private static int ContentLength(BinaryReader reader)
    {
        var length = -1;
        string line;
        while ((line = Line(reader)) != "")
        {
            var colon = line.IndexOf(':');
            if (line.Substring(0, colon) == "Content-Length")
            {
                length = int.Parse(line.Substring(colon + 1).Trim());
            }
        }
        return length;
    }

    private static string Line(BinaryReader reader)
    {
        var line = new StringBuilder();
        while (!line.ToString().EndsWith("\r\n", StringComparison.Ordinal))
        {
            line.Append((char)reader.ReadByte());
        }
        return line.ToString(0, line.Length - 2);
    }

    private static void Report(string content)
    {
        var message = JObject.Parse(content);
        if (message["method"] == null)
        {
            Program.Say(new { id = (int)message["id"], error = message["error"]?.ToString() });
            return;
        }
        var envelope = message["params"][0];
        var name = (string)envelope["MessageType"];
        var body = (string)envelope["MessageBody"];
        var type = Type.GetType(name, throwOnError: true);
        var read = JsonConvert.DeserializeObject(body, type);
        Program.Say(new
        {
            method = (string)message["method"],
            type = type.Name,
            body,
            // Whether .NET would have written the very same characters.
            same = JsonConvert.SerializeObject(read) == body,
        });
    }
}
