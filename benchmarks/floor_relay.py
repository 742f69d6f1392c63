"""The least that a relay can do in Python: `floor_relay.py <command …>` puts a server on pipes behind standard input.

Each envelope is decoded once, its id goes through the table of the calls in flight, its payload stays bytes, and the
lines of one read leave with one write. A write may wait: the calls in flight have to fit into a pipe.
"""

import os
import select
import subprocess
import sys

import msgspec

READ_BYTES, ABSENT = 1 << 16, msgspec.Raw()


class Message(msgspec.Struct, tag_field="jsonrpc", tag="2.0", omit_defaults=True):
    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT


def main(command: list[str]) -> None:
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None
    assert server.stdout is not None
    decode, encode = msgspec.json.Decoder(Message).decode, msgspec.json.Encoder().encode
    in_flight: dict[object, int | str] = {}  # the client's ids by our numbers
    number = 0
    targets = {0: server.stdin.fileno(), server.stdout.fileno(): 1}
    rests = dict.fromkeys(targets, b"")  # of a line whose end is still to come
    poll = select.poll()
    for source in targets:
        poll.register(source, select.POLLIN)
    while True:
        for source, _ in poll.poll():
            got = os.read(source, READ_BYTES)
            if not got:
                return
            *lines, rests[source] = (rests[source] + got).split(b"\n")
            passed_on = []
            for line in lines:
                message = decode(line)
                if source == 0 and message.method and message.id is not None:
                    number += 1
                    in_flight[number], message.id = message.id, number
                elif source != 0 and not message.method:
                    message.id = in_flight.pop(message.id)
                passed_on.append(encode(message) + b"\n")
            os.write(targets[source], b"".join(passed_on))


if __name__ == "__main__":
    main(sys.argv[1:])
