"""Our way to SHA-256 gives what hashlib gives."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest

from uno_devserver.system.state_files import sha256


@pytest.mark.parametrize("data", [b"", b"a", bytes(range(256)) * 1000])
def test_the_digest_is_hashlibs(data: bytes) -> None:
    assert sha256(data) == hashlib.sha256(data).hexdigest()


def test_it_does_without_hashlib() -> None:
    code = "import sys; from uno_devserver.system.state_files import sha256; sha256(b'');"
    code += "sys.exit('hashlib' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_another_python_has_no_module_of_that_name_and_uses_hashlib(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_sha2", "_sha256"):
        monkeypatch.setitem(sys.modules, name, None)  # which makes its import fail

    assert sha256(b"a") == hashlib.sha256(b"a").hexdigest()
