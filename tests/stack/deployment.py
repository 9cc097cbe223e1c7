"""Deploys template.yaml to the emulator: zips, CloudFormation, outputs."""

import json
import pathlib
import platform
import re
import shutil
import subprocess
import time
import zipfile

from emulator import Emulator

# Folder of the layer with the fonts of reports.
FONTS = "shared/report/assets"
CODE = re.compile(r"^(\s+CodeUri:) functions/([a-z-]+)\s*$", re.MULTILINE)
FUNCTIONS = ["api", "exports", "planner", "worker", "turns", "finisher", "dead-letters", "scheduler"]
ARTIFACTS = "artifacts"
DEPLOY_SECONDS_MAX = 180


def zip_function(binary: pathlib.Path, folder: pathlib.Path, version: str) -> pathlib.Path:
    """Creates a function's zip for Lambda, without debug information, which is most of the binary."""
    folder.mkdir(parents=True, exist_ok=True)
    bare = folder / binary.name
    strip = shutil.which("strip")
    if strip:
        subprocess.run([strip, "-o", str(bare), str(binary)], check=True)
    else:
        shutil.copyfile(binary, bare)
    path = folder / f"{binary.name}-{version}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        info = zipfile.ZipInfo("bootstrap")
        info.external_attr = 0o755 << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(info, bare.read_bytes(), compresslevel=1)
        # Makes the zips of two versions differ, as after a change of the program.
        archive.writestr("version", version)
    bare.unlink()
    return path


class Deployment:
    def __init__(self, emulator: Emulator, template: pathlib.Path, folder: pathlib.Path, parameters: dict):
        self.name = "bench-stack"
        self.emulator = emulator
        self.template = template.read_text()
        self.root = template.resolve().parent
        self.folder = folder
        self.parameters = {
            "Architecture": "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64",
            "WorkerConcurrency": "2",
            "LogRetentionDays": "1",
            # The emulator has no metric math, which most alarms need.
            "Alarms": "false",
            "SkipModelSync": "true",
            # Nothing listens there, so that accidental requests to the network fail.
            "ChutesApiBaseUrl": "http://127.0.0.1:9/v1",
            "ChutesModelsApiUrl": "http://127.0.0.1:9",
            # The emulator doesn't support budgets in templates.
            "BudgetUsdPerMonth": "0",
            "WafRateLimit": "2000",
            **parameters,
        }
        self.outputs: dict[str, str] = {}
        self.bytes: dict[str, int] = {}
        emulator.client("s3").create_bucket(Bucket=ARTIFACTS)

    def upload(self, binaries: dict[str, pathlib.Path], version: str) -> None:
        """Zips and uploads the functions; the next deployment uses them."""
        storage = self.emulator.client("s3")
        for function in FUNCTIONS:
            path = zip_function(binaries[f"bench-{function}"], self.folder, version)
            self.bytes[function] = path.stat().st_size
            storage.upload_file(str(path), ARTIFACTS, f"{version}/{function}.zip")
            path.unlink()
        archive = shutil.make_archive(str(self.folder / "fonts"), "zip", self.root / FONTS)
        storage.upload_file(archive, ARTIFACTS, f"{version}/fonts.zip")
        self.version = version

    def body(self) -> str:
        text, count = CODE.subn(rf"\1 s3://{ARTIFACTS}/{self.version}/\2.zip", self.template)
        assert count >= len(FUNCTIONS), f"{count} functions have their code in functions/"
        layer = f" ContentUri: {FONTS}\n"
        assert text.count(layer) == 1, f"{text.count(layer)} layers have their content in {FONTS}"
        return text.replace(layer, f" ContentUri: s3://{ARTIFACTS}/{self.version}/fonts.zip\n")

    def deploy(self, **changed: str) -> float:
        """Creates or updates the stack, and returns the seconds that it took."""
        self.parameters.update(changed)
        formation, start = self.emulator.client("cloudformation"), time.monotonic()
        act = formation.update_stack if self.outputs else formation.create_stack
        # The template is too large to be sent in the request.
        key = f"{self.version}/template.yaml"
        self.emulator.client("s3").put_object(Bucket=ARTIFACTS, Key=key, Body=self.body().encode())
        act(
            StackName=self.name,
            TemplateURL=f"{self.emulator.url}/{ARTIFACTS}/{key}",
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Parameters=[
                {"ParameterKey": key, "ParameterValue": value} for key, value in self.parameters.items()
            ],
        )
        while time.monotonic() - start < DEPLOY_SECONDS_MAX:
            stack = formation.describe_stacks(StackName=self.name)["Stacks"][0]
            status = stack["StackStatus"]
            if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                outputs = stack.get("Outputs", [])
                self.outputs = {output["OutputKey"]: output["OutputValue"] for output in outputs}
                self._mend_mappings()
                return time.monotonic() - start
            if not status.endswith("_IN_PROGRESS") or "ROLLBACK" in status:
                raise RuntimeError(
                    f"the deployment ended as {status}: {stack.get('StackStatusReason', '')} {self.reasons(formation)}"
                )
            time.sleep(0.2)
        raise RuntimeError(f"the deployment took more than {DEPLOY_SECONDS_MAX} s")

    def _mend_mappings(self) -> None:
        """Converts numbers in event source mappings: the emulator keeps those from parameters as strings, on which its
        pollers fail."""
        functions = self.emulator.client("lambda")
        for mapping in functions.list_event_source_mappings()["EventSourceMappings"]:
            concurrency = mapping.get("ScalingConfig", {}).get("MaximumConcurrency")
            if concurrency is not None:
                functions.update_event_source_mapping(
                    UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": int(concurrency)}
                )

    def reasons(self, formation) -> str:
        events = formation.describe_stack_events(StackName=self.name)["StackEvents"]
        failed = [event for event in events if "FAILED" in event.get("ResourceStatus", "")]
        return "; ".join(
            f"{event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}" for event in failed
        )

    @property
    def api_url(self) -> str:
        """Address of the API, with its id in the path. The emulator's host names are invalid if its own host is an IP
        address."""
        return f"{self.emulator.url}/_aws/execute-api/{self.outputs['ApiId']}/$default"

    def function_url(self, output: str) -> str:
        host = self.outputs[output].split("://", 1)[-1].split(".", 1)[0]
        return f"{self.emulator.url}/_aws/lambda-url/{host}"

    def put_secret(self, output: str, content: dict) -> None:
        """Fills in a secret as its operator does."""
        secrets = self.emulator.client("secretsmanager")
        secrets.put_secret_value(SecretId=self.outputs[output], SecretString=json.dumps(content))

    def secret(self, output: str) -> dict:
        secrets = self.emulator.client("secretsmanager")
        return json.loads(secrets.get_secret_value(SecretId=self.outputs[output])["SecretString"])
