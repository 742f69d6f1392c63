"""The head of an answer, byte for byte."""

from __future__ import annotations

import locale
from email.utils import formatdate

import pytest

from uno_devserver.protocol.http.headers import check_headers, date_header, header_lines, response_head


@pytest.mark.parametrize("now", [0, 951_782_400, 1_709_208_000, 1_799_999_999, 4_102_444_799])
def test_the_date_is_as_http_wants_it(now: int) -> None:
    assert date_header(now).decode() == f"Date: {formatdate(now, usegmt=True)}\r\n"


def test_the_date_does_not_speak_the_users_language() -> None:
    before = locale.setlocale(locale.LC_TIME)
    try:
        for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "ja_JP.UTF-8"):
            try:
                locale.setlocale(locale.LC_TIME, name)
            except locale.Error:
                continue  # not installed here
            assert date_header(86400 * 70) == b"Date: Thu, 12 Mar 1970 00:00:00 GMT\r\n"
    finally:
        locale.setlocale(locale.LC_TIME, before)


def test_a_head_is_status_framing_date_and_headers() -> None:
    made = response_head(
        404, (("X-One", "1"), ("X-Two", "ü")), b"Content-Length: 0\r\n", b"X-Extra: 3\r\n", keep_alive=False
    )

    start, length, date, *rest = made.split(b"\r\n")
    assert (start, length, date[:6]) == (b"HTTP/1.1 404 Not Found", b"Content-Length: 0", b"Date: ")
    assert rest == [b"Connection: close", b"X-One: 1", b"X-Two: \xfc", b"X-Extra: 3", b"", b""]


@pytest.mark.parametrize("name", ["", "a b", "a:", "ä", "a\r\nb"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="does not allow"):
        check_headers(((name, "value"),))


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\rb", "\0", "\x7f", "€"])
def test_a_value_that_would_break_out_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="the value of the header 'Name' has characters") as refused:
        check_headers((("Name", f"secret{value}"),))

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["Content-Length", "transfer-encoding", "Connection", "Date", "UPGRADE"])
def test_the_framing_is_the_servers_alone(name: str) -> None:
    with pytest.raises(ValueError, match="set by the server"):
        check_headers(((name, "1"),))


def test_usual_headers_pass() -> None:
    headers = (("Content-Type", "text/plain; charset=utf-8"), ("X_y.z", "a\tb"), ("Empty", ""))

    check_headers(headers)

    assert header_lines(headers) == b"Content-Type: text/plain; charset=utf-8\r\nX_y.z: a\tb\r\nEmpty: \r\n"
