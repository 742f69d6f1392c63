"""The same as `floor_relay.py` for a server over HTTP: `floor_http_relay.py http://<address>:<port>/<path>`.
Connections are kept, with one request at a time on each; one read has to bring a whole answer."""

import os
import select
import socket
import sys

import msgspec

READ_BYTES, CONNECTIONS, ABSENT = 1 << 16, 64, msgspec.Raw()
HEAD = "POST /{} HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json"


class Message(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


def main(host: str, path: str) -> None:
    decode, encode = msgspec.json.Decoder(Message).decode, msgspec.json.Encoder().encode
    head = HEAD.format(path, host).encode() + b"\r\nContent-Length: %d\r\n\r\n%s"
    in_flight: dict[object, int | str] = {}  # the client's ids by our numbers
    sockets: dict[int, socket.socket] = {}
    number, rest, waiting, idle, poll = 0, b"", [], [], select.poll()
    poll.register(0, select.POLLIN)
    while True:
        answers = []
        for ready, _ in poll.poll():
            if ready == 0:
                *lines, rest = (rest + (os.read(0, READ_BYTES) or sys.exit())).split(b"\n")
                for message in map(decode, lines):
                    if message.method and message.id is not None:
                        number += 1
                        in_flight[number], message.id = message.id, number
                    waiting.append(encode(message))
                continue
            idle.append(sockets[ready])
            if body := sockets[ready].recv(READ_BYTES).partition(b"\r\n\r\n")[2]:  # a notification's answer has none
                message = decode(body)
                message.id = in_flight.pop(message.id)
                answers.append(encode(message) + b"\n")
        if answers:
            os.write(1, b"".join(answers))
        while waiting and (idle or len(sockets) < CONNECTIONS):
            if not idle:
                idle.append(socket.create_connection((host.partition(":")[0], int(host.partition(":")[2]))))
                idle[-1].setblocking(False)
                poll.register(idle[-1], select.POLLIN)
                sockets[idle[-1].fileno()] = idle[-1]
            body = waiting.pop(0)
            idle.pop().send(head % (len(body), body))


if __name__ == "__main__":
    main(*sys.argv[1].removeprefix("http://").split("/", 1))
