#!/usr/bin/env python3
"""Uploads the page's files to the bucket of a deployed stack, and makes CloudFront fetch them again.

Files that the page no longer has are removed last, so that a page that is being loaded finds all its files.
"""

import mimetypes
import pathlib
import sys
import time

import boto3

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "frontend-static"
# Content types that some systems' tables lack or name differently.
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml",
         ".woff2": "font/woff2", ".webmanifest": "application/manifest+json", ".map": "application/json"}


def content_type(path):
    known = TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"{known}; charset=utf-8" if known.startswith("text/") else known


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: upload_page.py STACK REGION")
    if not PAGE.is_dir():
        print("There is no page yet (frontend-static/): nothing to upload")
        return
    stack, region = sys.argv[1:]
    session = boto3.Session(region_name=region)
    described = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}
    bucket, s3 = outputs["PageBucket"], session.client("s3")
    files = {path.relative_to(PAGE).as_posix(): path for path in sorted(PAGE.rglob("*")) if path.is_file()}
    files = {key: path for key, path in files.items() if not any(part.startswith(".") for part in key.split("/"))}
    # index.html is uploaded last, because it refers to the other files.
    for key in sorted(files, key=lambda key: (key == "index.html", key)):
        s3.put_object(Bucket=bucket, Key=key, Body=files[key].read_bytes(), ContentType=content_type(files[key]))
    gone = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        gone += [{"Key": found["Key"]} for found in page.get("Contents", []) if found["Key"] not in files]
    for start in range(0, len(gone), 1000):
        s3.delete_objects(Bucket=bucket, Delete={"Objects": gone[start : start + 1000], "Quiet": True})
    session.client("cloudfront").create_invalidation(
        DistributionId=outputs["Distribution"],
        InvalidationBatch={"Paths": {"Quantity": 1, "Items": ["/*"]}, "CallerReference": str(time.time_ns())},
    )
    print(f"Uploaded {len(files)} files, removed {len(gone)}; the page is at {outputs['Url']}")


if __name__ == "__main__":
    main()
