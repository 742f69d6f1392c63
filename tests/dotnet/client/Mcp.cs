// An MCP client on .NET's HttpClient. It sends bodies as the C# SDK does: without a length, in chunks. Each line of the
// input is a message; what is answered is reported. One connection and one session serve all of them.

using System;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Text;
using System.Threading.Tasks;

public static class Mcp
{
    private const string SessionHeader = "Mcp-Session-Id";

    public static async Task Talk(string port)
    {
        using var client = new HttpClient();
        var url = $"http://localhost:{port}/mcp";
        string line, session = null;
        while ((line = await Console.In.ReadLineAsync()) != null)
        {
            using var request = new HttpRequestMessage(HttpMethod.Post, url) { Content = new Chunked(line) };
            request.Headers.Accept.ParseAdd("application/json");
            request.Headers.Accept.ParseAdd("text/event-stream");
            request.Headers.ExpectContinue = true;
            if (session != null)
            {
                request.Headers.Add(SessionHeader, session);
            }
            using var response = await client.SendAsync(request);
            if (response.Headers.TryGetValues(SessionHeader, out var sessions))
            {
                session = sessions.Single();
            }
            Program.Say(new
            {
                status = (int)response.StatusCode,
                type = response.Content.Headers.ContentType?.MediaType,
                body = await response.Content.ReadAsStringAsync(),
            });
        }
    }

    private sealed class Chunked : HttpContent
    {
        private readonly string _text;

        public Chunked(string text)
        {
            _text = text;
            Headers.ContentType = new MediaTypeHeaderValue("application/json") { CharSet = "utf-8" };
        }

        protected override async Task SerializeToStreamAsync(Stream stream, TransportContext context)
        {
            foreach (var character in Encoding.UTF8.GetBytes(_text))
            {
                await stream.WriteAsync(new[] { character });
            }
            await stream.FlushAsync();
        }

        protected override bool TryComputeLength(out long length)
        {
            length = 0;
            return false;
        }
    }
}
