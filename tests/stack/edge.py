"""Stands in for CloudFront in front of the deployed stack, for features that the emulator lacks.

The emulator's distributions don't sign requests to function URLs, and need Node for CloudFront Functions. This reverse
proxy reads the deployed distribution through CloudFront's API and follows it: it chooses a behavior by path and method,
runs the published viewer-request function, and signs requests to origins with an origin access control, replacing the
viewer's `Authorization`.
"""

import fnmatch
import http.server
import json
import threading
import urllib.error
import urllib.request

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import quickjs

from deployment import Deployment
from emulator import REGION

# An event stream lasts two minutes, and the emulator forwards it only when it is complete.
ORIGIN_SECONDS_MAX = 300
# CloudFront's module of helpers, for which the interpreter has a stand-in.
MODULE = "import cf from 'cloudfront';\n"
# Headers that belong to one connection, or that are set again for the next one.
NOT_FORWARDED = {"host", "connection", "content-length", "transfer-encoding"}
NOT_RETURNED = {"connection", "content-length", "transfer-encoding", "date", "server"}


class Viewers(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # All scenarios of the suite send requests concurrently.
    request_queue_size = 128


class Edge:
    """Serves the distribution on a loopback port until it is stopped."""

    def __init__(self, deployment: Deployment):
        self.deployment = deployment
        self.cloudfront = deployment.emulator.client("cloudfront")
        found = self.cloudfront.get_distribution(Id=deployment.outputs["Distribution"])["Distribution"]
        self.config = found["DistributionConfig"]
        self.origins = {origin["Id"]: origin for origin in self.config["Origins"]["Items"]}
        self.behaviors = [*self.config["CacheBehaviors"]["Items"], {**self.config["DefaultCacheBehavior"], "PathPattern": "*"}]
        self.functions = {}
        self.signing = {}
        for behavior in self.behaviors:
            for association in behavior.get("FunctionAssociations", {}).get("Items", []):
                assert association["EventType"] == "viewer-request", association
                self.functions[behavior["PathPattern"]] = self.published(association["FunctionARN"])
        for name, origin in self.origins.items():
            if access := origin.get("OriginAccessControlId"):
                read = self.cloudfront.get_origin_access_control(Id=access)["OriginAccessControl"]
                self.signing[name] = read["OriginAccessControlConfig"]
        edge = self

        class Viewer(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, headers, content = edge.answer(self.command, self.path, self.headers, body)
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_OPTIONS = do_POST = do_PUT = do_PATCH = do_DELETE = serve

            def log_message(self, *_) -> None:
                pass

        self.server = Viewers(("127.0.0.1", 0), Viewer)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def published(self, arn: str) -> str:
        name = arn.rsplit("/", 1)[-1]
        return self.cloudfront.get_function(Name=name, Stage="LIVE")["FunctionCode"].read().decode()

    def answer(self, method: str, target: str, headers, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        path = target.partition("?")[0]
        behavior = next(found for found in self.behaviors if fnmatch.fnmatchcase(path, found["PathPattern"]))
        if method not in behavior["AllowedMethods"]["Items"]:
            return refusal(403, f"this distribution does not allow {method} for {path}")
        sent = {name.lower(): value for name, value in headers.items()}
        uri, selected = path, behavior["TargetOriginId"]
        if code := self.functions.get(behavior["PathPattern"]):
            uri, sent, selected = run_viewer_request(code, method, path, sent, selected)
            target = uri + target[len(path):]
        sent = {name: value for name, value in sent.items() if name not in NOT_FORWARDED}
        origin = self.origins[selected]
        host = origin["DomainName"]
        if ".lambda-url." in host:
            url = f"{self.deployment.emulator.url}/_aws/lambda-url/{host.split('.', 1)[0]}{target}"
        elif ".execute-api." in host:
            url = f"{self.deployment.api_url}{target}"
        else:
            return self.page_file(uri)
        if (signing := self.signing.get(origin["Id"], {})).get("SigningBehavior") == "always":
            sent = signed(signing["OriginAccessControlOriginType"], method, url, sent)
        request = urllib.request.Request(url, data=body or None, headers=sent, method=method)
        try:
            with WITHOUT_REDIRECTS.open(request, timeout=ORIGIN_SECONDS_MAX) as response:
                return returned(response)
        except urllib.error.HTTPError as error:
            return returned(error)
        except OSError as error:
            return refusal(504, f"{host} does not answer: {error}")


    def page_file(self, uri: str) -> tuple[int, list[tuple[str, str]], bytes]:
        """Reads a file of the page. As S3 does for readers that may not list the bucket, refuses a missing one with 403."""
        storage = self.deployment.emulator.client("s3")
        try:
            found = storage.get_object(Bucket=self.deployment.outputs["PageBucket"], Key=uri.removeprefix("/"))
        except storage.exceptions.NoSuchKey:
            return refusal(403, "AccessDenied")
        return 200, [("content-type", found["ContentType"])], found["Body"].read()


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


WITHOUT_REDIRECTS = urllib.request.build_opener(NoRedirects)


def refusal(status: int, text: str) -> tuple[int, list[tuple[str, str]], bytes]:
    return status, [("x-cache", "Error from cloudfront"), ("content-type", "text/plain")], text.encode()


def returned(response) -> tuple[int, list[tuple[str, str]], bytes]:
    headers = [(name, value) for name, value in response.headers.items() if name.lower() not in NOT_RETURNED]
    return response.status, headers, response.read()


def run_viewer_request(
    code: str, method: str, path: str, headers: dict[str, str], origin: str
) -> tuple[str, dict[str, str], str]:
    """Runs the viewer-request function. Returns path and headers of the request that it returns, and the chosen origin."""
    event = {
        "version": "1.0",
        "context": {"eventType": "viewer-request"},
        "viewer": {"ip": "127.0.0.1"},
        "request": {
            "method": method, "uri": path, "querystring": {}, "cookies": {},
            "headers": {name: {"value": value} for name, value in headers.items()},
        },
    }
    context = quickjs.Context()
    context.eval(f"let selected = {json.dumps(origin)}; const cf = {{ selectRequestOriginById(id) {{ selected = id; }} }};")
    context.eval(code.replace(MODULE, ""))
    request = json.loads(context.eval(f"JSON.stringify(handler({json.dumps(event)}))"))
    assert request["method"] == method, request
    return request["uri"], {name: field["value"] for name, field in request["headers"].items()}, context.eval("selected")


def signed(service: str, method: str, url: str, headers: dict[str, str]) -> dict[str, str]:
    """Returns the headers with a signature, which replaces an existing `Authorization`."""
    headers = {name: value for name, value in headers.items() if name != "authorization"}
    request = botocore.awsrequest.AWSRequest(method=method, url=url, headers=headers)
    credentials = botocore.credentials.Credentials("test", "test")
    botocore.auth.SigV4Auth(credentials, service, REGION).add_auth(request)
    return dict(request.headers.items())
