#!/usr/bin/env python3
"""Builds the functions that template.yaml names, and packs each into a zip for Lambda.

Uses plain cargo without SAM: for CI, for the emulated stack, and for deployments by other means. The same binaries give
the same zips: timestamps and order are fixed.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The newest glibc of Amazon Linux 2023, on which provided.al2023 runs.
GLIBC_MINOR_MAX = 34
# Maximum size that Lambda accepts in a direct upload, in bytes; the aim is 6 MB.
ZIP_BYTES_MAX = 50 * 1024 * 1024


def binaries():
    """Returns the distinct binaries of the template's functions."""
    found = re.findall(r"^ +BuildProperties: \{ Binary: ([a-z-]+) \}$", (ROOT / "template.yaml").read_text(), re.M)
    if not found:
        sys.exit("template.yaml names no binaries")
    return sorted(set(found))


def check_glibc(name, program):
    """Exits with a message if a binary would not start on Lambda."""
    needed = {int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", program)}
    if needed and max(needed) > GLIBC_MINOR_MAX:
        sys.exit(
            f"{name} needs glibc 2.{max(needed)}, provided.al2023 has 2.{GLIBC_MINOR_MAX}: "
            "build on an older system or with cargo-lambda"
        )


def pack(program, archive):
    """Writes a zip with the program as the executable file `bootstrap`."""
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.create_system = 3  # Unix, whatever this machine is: the mode counts
    entry.external_attr = 0o100755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    unfinished = archive.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", compresslevel=9) as zip_file:
        zip_file.writestr(entry, program)
    unfinished.replace(archive)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", default="lambda", help="profile of Cargo.toml (default: lambda)")
    parser.add_argument("--target", help="target triple, such as aarch64-unknown-linux-gnu (default: this machine)")
    parser.add_argument("--out", type=pathlib.Path, help="folder of the zips (default: target/lambda)")
    parser.add_argument("--no-build", action="store_true", help="pack what was built before")
    options = parser.parse_args()

    target_dir = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    out = options.out or target_dir / "lambda"
    names = binaries()
    if not options.no_build:
        command = [os.environ.get("CARGO", "cargo"), "build", "--locked", "--profile", options.profile]
        command += [argument for name in names for argument in ("--package", name)]
        command += ["--target", options.target] if options.target else []
        if subprocess.run(command, cwd=ROOT, check=False).returncode != 0:
            sys.exit("cargo failed")
    folder = {"dev": "debug", "test": "debug", "bench": "release"}.get(options.profile, options.profile)
    built = target_dir / options.target / folder if options.target else target_dir / folder
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        program = (built / name).read_bytes()
        check_glibc(name, program)
        archive = out / f"{name}.zip"
        pack(program, archive)
        size = archive.stat().st_size
        print(f"{archive}  {size / 1e6:.1f} MB, unpacked {len(program) / 1e6:.1f} MB")
        if size > ZIP_BYTES_MAX:
            sys.exit(f"{archive} is larger than Lambda takes")


if __name__ == "__main__":
    main()
