"""Runs MiniStack on a free loopback port, with workarounds for its peculiarities."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import boto3
import botocore.config

REGION = "us-east-1"
FONTS = pathlib.Path(__file__).resolve().parents[2] / "shared" / "report" / "assets" / "fonts"
START_SECONDS_MAX = 60


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Emulator:
    """A running MiniStack with its own folder."""

    def __init__(self, folder: pathlib.Path, log: pathlib.Path):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        folder.mkdir(parents=True, exist_ok=True)
        # Functions inherit its whole environment, which is their only source of AWS's address.
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "GATEWAY_PORT": str(self.port),
            "MINISTACK_HOST": "127.0.0.1",
            "BIND_HOST": "127.0.0.1",
            "IOT_MTLS_ENABLED": "0",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            # The emulator doesn't unpack layers to /opt.
            "BENCH_FONTS": str(FONTS),
        }
        command = [sys.executable, "-B", str(pathlib.Path(__file__).parent / "mended.py")]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=output, stderr=output, start_new_session=True
            )
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < until:
            if self.process.poll() is not None:
                raise RuntimeError(f"MiniStack ended at its start with {self.process.returncode}")
            try:
                with urllib.request.urlopen(f"{self.url}/_ministack/health", timeout=2) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError(f"MiniStack did not answer within {START_SECONDS_MAX} s")

    def client(self, service: str):
        config = botocore.config.Config(
            retries={"max_attempts": 3}, read_timeout=180, s3={"addressing_style": "path"}
        )
        return boto3.client(
            service, endpoint_url=self.url, region_name=REGION, aws_access_key_id="test",
            aws_secret_access_key="test", config=config,
        )

    def processes_of(self, function: str) -> list[int]:
        """Returns the processes of this emulator that are execution environments of a function."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            ours = f"AWS_ENDPOINT_URL={self.url}".encode() in environment
            if ours and f"AWS_LAMBDA_FUNCTION_NAME={function}".encode() in environment:
                found.append(int(entry.name))
        return found

    def stop(self) -> None:
        """Ends the emulator and all processes that it started, which are in one session."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                break
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                continue
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
