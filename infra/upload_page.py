#!/usr/bin/env python3
"""Uploads the page's files to the bucket of a deployed stack, and makes CloudFront fetch them again.

Files that the page no longer has are removed last, so that a page that is being loaded finds all its files.
"""

import pathlib
import re
import sys
import time

import boto3

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "frontend-static"
# Start of the keys, as in the addresses of the files.
PREFIX = "page/"
INDEX = PREFIX + "index.html"
# The content types of `bench serve`, by the ending of a file's name.
TYPES_SOURCE = ROOT / "shared" / "page" / "src" / "file.rs"
TYPE = re.compile(r'^    \("(\w+)", "([^"]+)", (?:true|false)\),$', re.MULTILINE)


def content_types():
    return {f".{ending}": known for ending, known in TYPE.findall(TYPES_SOURCE.read_text())}


def page_files():
    """Returns the files by their keys. Hidden files aren't served."""
    files = {path.relative_to(PAGE): path for path in sorted(PAGE.rglob("*")) if path.is_file()}
    visible = {name: path for name, path in files.items() if not any(part.startswith(".") for part in name.parts)}
    return {PREFIX + name.as_posix(): path for name, path in visible.items()}


def upload(s3, bucket):
    """Uploads the files and removes all others. Returns how many."""
    files = page_files()
    types = content_types()
    if unknown := [key for key, path in files.items() if path.suffix not in types]:
        sys.exit(f"these files have no content type in {TYPES_SOURCE.relative_to(ROOT)}: {', '.join(unknown)}")
    # index.html is uploaded last, because it refers to the other files.
    for key in sorted(files, key=lambda key: (key == INDEX, key)):
        s3.put_object(Bucket=bucket, Key=key, Body=files[key].read_bytes(), ContentType=types[files[key].suffix])
    gone = []
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        gone += [{"Key": found["Key"]} for found in page.get("Contents", []) if found["Key"] not in files]
    for start in range(0, len(gone), 1000):
        s3.delete_objects(Bucket=bucket, Delete={"Objects": gone[start : start + 1000], "Quiet": True})
    return len(files), len(gone)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: upload_page.py STACK REGION")
    stack, region = sys.argv[1:]
    session = boto3.Session(region_name=region)
    described = session.client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}
    uploaded, removed = upload(session.client("s3"), outputs["PageBucket"])
    session.client("cloudfront").create_invalidation(
        DistributionId=outputs["Distribution"],
        InvalidationBatch={"Paths": {"Quantity": 1, "Items": ["/*"]}, "CallerReference": str(time.time_ns())},
    )
    print(f"Uploaded {uploaded} files, removed {removed}; the page is at {outputs['Url']}")


if __name__ == "__main__":
    main()
