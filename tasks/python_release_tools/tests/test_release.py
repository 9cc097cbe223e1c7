import hashlib
import json
import secrets
import signal

import lab

SERVER = {tool: ["python3", "-S", "-s", "lab_tools/tool.py", tool] for tool in ("digest", "sign", "stamp", "registry")}
BUILD = ("python3", "-m", "release", "build", "release.json", "--out", "out")


def signature(key, text):
    """Returns the build server's signature."""
    inner = hashlib.sha256(key.encode() + text.encode()).digest()
    return hashlib.sha256(key.encode() + inner).hexdigest()


class ReleaseCase(lab.Case):
    def prepare(self, files=("a.bin", "b.bin"), tools=SERVER, **plan):
        """Writes the release's files and the plan of the build server's tools."""
        self.key = secrets.token_hex(8)
        self.contents = {name: f"content of {name} {secrets.token_hex(4)}".encode() for name in files}
        for name, content in self.contents.items():
            self.write(name, content)
        self.write("plan.json", json.dumps(plan))
        settings = {"name": "wídget", "version": "2.0", "include": ["**/*.bin"], "exclude": ["dist/**/*.bin"], "tools": tools}
        self.write("release.json", json.dumps(settings))

    def build(self):
        return self.program(*BUILD, env={"SERVER_KEY": self.key})

    def released(self):
        """Builds, and returns the manifest."""
        self.done = self.build()
        self.assertEqual(self.done.status, 0, self.done)
        return json.loads(self.read("out/manifest.json"))

    def calls(self, tool=None):
        if not self.exists("calls.jsonl"):
            return []
        calls = [json.loads(line) for line in self.read("calls.jsonl").splitlines()]
        return [call for call in calls if tool in (None, call["tool"])]

    def receipts(self):
        return [call["receipt"] for call in self.calls() if call["tool"] != "void" and "receipt" in call]

    def failed(self, message=None, tool=None):
        """Builds, and checks that the release fails, voids all receipts, and leaves no trace."""
        done = self.build()
        self.assertEqual((done.status, done.stdout), (1, ""), done)
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(errors), 1, done)
        if message is not None:
            self.assertEqual(errors, [message])
        if tool is not None:
            self.assertTrue(errors[0].startswith(f"error: {tool}: "), errors)
        self.assertEqual([call["receipt"] for call in self.calls("void")], self.receipts()[::-1])
        self.assertFalse(self.exists("out"))
        self.assertEqual(self.exists(".release-journal"), "is not void" in done.stderr)
        return done

    def dies(self, out="out"):
        """Builds with a tool that ends the program."""
        done = self.program(*BUILD[:-1], out, env={"SERVER_KEY": self.key})
        self.assertEqual((done.status, done.stdout), (-signal.SIGUSR1, ""), done)
        self.assertTrue(self.exists(".release-journal"))

    def recovers(self, out, err=""):
        """Finishes an earlier release."""
        done = self.program(*BUILD[:3], "recover", "release.json", env={"SERVER_KEY": self.key})
        self.assertEqual((done.status, done.stdout, done.stderr), (0, out + "\n", err), done)
        self.assertFalse(self.exists(".release-journal"))

    def voided(self):
        return [call["receipt"] for call in self.calls("void")]

    def tools_called(self):
        return [call["tool"] for call in self.calls() if call["tool"] != "void"]


class Trial(ReleaseCase):
    def test_tools_of_the_workspace(self):
        done = self.program(*BUILD, env={"RELEASE_REGISTRY": "registry.jsonl"})
        self.assertEqual(done.status, 0, done)
        manifest = json.loads(self.read("out/manifest.json"))
        calls = [json.loads(line) for line in self.read("registry.jsonl").splitlines()]
        self.assertEqual([call["tool"] for call in calls], ["digest", "sign", "stamp", "commit"])
        self.assertEqual(manifest["receipts"], [call["receipt"] for call in calls[:3]])
        self.assertEqual(manifest["commit"], calls[3]["commit"])
        for entry in manifest["files"]:
            content = self.read_bytes(entry["path"])
            self.assertEqual((entry["size"], entry["sha256"]), (len(content), hashlib.sha256(content).hexdigest()))


class Kept(ReleaseCase):
    def test_errors_of_the_configuration(self):
        self.prepare()
        self.write("release.json", json.dumps({"name": "x", "version": "1", "include": ["*.none"], "tools": SERVER}))
        self.assertEqual(self.build().stderr, "error: no file matches `include`\n")
        self.write("release.json", json.dumps({"name": "x", "version": "1", "include": ["*"], "tools": {**SERVER, "stamp": []}}))
        self.assertEqual(self.build().stderr, "error: `tools` has no command for `stamp`\n")
        self.assertEqual((self.calls(), self.exists("out")), ([], False))

    def test_includes_and_excludes(self):
        self.prepare(["z.bin", "sub/deep/a.bin", "dist/no.bin", "sub/b.bin"])
        self.assertEqual([entry["path"] for entry in self.released()["files"]], ["sub/b.bin", "sub/deep/a.bin", "z.bin"])


class Manifest(ReleaseCase):
    def test_sums_and_sizes_are_those_of_the_tool(self):
        self.prepare()
        expected = [
            {"path": name, "size": len(content) + 1000, "sha256": hashlib.sha256(self.key.encode() + content).hexdigest()}
            for name, content in self.contents.items()
        ]
        self.assertEqual(self.released()["files"], expected)

    def test_signature_is_of_the_body(self):
        self.prepare()
        manifest = self.released()
        body = {name: manifest[name] for name in ("name", "version", "files")}
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.assertEqual(self.calls("sign")[0]["text"], text)
        self.assertEqual(manifest["signature"], signature(self.key, text))
        self.assertEqual(self.calls("stamp")[0]["signature"], [manifest["signature"]])

    def test_receipts_and_commit(self):
        self.prepare([f"{n:02}.bin" for n in range(12)])
        manifest = self.released()
        self.assertEqual(len(manifest["receipts"]), 5)
        self.assertEqual(manifest["receipts"], self.receipts())
        (commit,) = self.calls("commit")
        self.assertEqual((commit["receipts"], commit["commit"]), (self.receipts(), manifest["commit"]))
        self.assertEqual(self.calls("void"), [])

    def test_format_of_file_and_output(self):
        self.prepare()
        manifest = self.released()
        self.assertEqual(list(manifest), ["name", "version", "files", "signature", "stamp", "receipts", "commit"])
        self.assertEqual(manifest["stamp"], {"time": "2025-03-31T09:00:00Z", "authority": "Clock 7"})
        self.assertEqual(self.read("out/manifest.json"), json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        self.assertEqual(self.done.stdout, f"released wídget 2.0: 2 files, commit {manifest['commit']}\n")


class Digest(ReleaseCase):
    def test_five_files_in_a_call(self):
        self.prepare([f"{n:02}.bin" for n in range(12)])
        self.released()
        names = [f"{n:02}.bin" for n in range(12)]
        self.assertEqual([call["files"] for call in self.calls("digest")], [names[:5], names[5:10], names[10:]])

    def test_unusual_names(self):
        names = ["-a.bin", "a b.bin", "a%20b.bin", "ü/€.bin", "--algo.bin", "q'\"&+.bin"]
        self.prepare(names)
        manifest = self.released()
        expected = {name: hashlib.sha256(self.key.encode() + content).hexdigest() for name, content in self.contents.items()}
        self.assertEqual({entry["path"]: entry["sha256"] for entry in manifest["files"]}, expected)

    def test_busy_is_called_again(self):
        self.prepare([f"{n}.bin" for n in range(7)], digest=["busy", "busy", "ok", "busy", "ok"])
        manifest = self.released()
        names = [f"{n}.bin" for n in range(7)]
        self.assertEqual([call["files"] for call in self.calls("digest")], [names[:5]] * 3 + [names[5:]] * 2)
        self.assertEqual(manifest["receipts"], self.receipts())

    def test_busy_three_times_fails(self):
        self.prepare([f"{n}.bin" for n in range(7)], digest=["ok", "busy", "busy", "busy", "ok"])
        self.failed(tool="digest")
        self.assertEqual(self.tools_called(), ["digest"] * 4)

    def test_problem_with_a_file(self):
        self.prepare(["a.bin", "b c.bin", "d.bin"], digest=["problem:d.bin,b c.bin"])
        self.failed("error: digest: b c.bin: vanished")
        self.assertEqual((self.tools_called(), len(self.calls("void"))), (["digest"], 1))

    def test_answers_that_do_not_fit(self):
        for word in ("missing", "extra", "nosum", "garbage", "late:1"):
            with self.subTest(word):
                self.write("calls.jsonl", "")
                self.prepare(digest=[word])
                self.failed(tool="digest")
                self.assertEqual(len(self.calls("void")), 1)

    def test_failure_without_receipt(self):
        self.prepare(digest=["noreceipt"])
        self.failed(tool="digest")
        self.assertEqual(self.tools_called(), ["digest"])


class Sign(ReleaseCase):
    def test_chunks_have_at_most_their_size(self):
        for size in (17, 100000):
            with self.subTest(size):
                self.write("calls.jsonl", "")
                self.prepare(["b.bin"], sign=[f"chunks:{size}"])
                self.released()
                (call,) = self.calls("sign")
                self.assertEqual(call["chunks"], -(-len(call["text"].encode()) // size))

    def test_lost_chunks_are_sent_again(self):
        self.prepare([f"{n}.bin" for n in range(4)], sign=["resend"])
        manifest = self.released()
        text = json.dumps({name: manifest[name] for name in ("name", "version", "files")}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        self.assertEqual(self.calls("sign")[0]["text"], text)

    def test_much_on_standard_error(self):
        self.prepare(sign=["chatty"])
        self.assertEqual(self.released()["receipts"], self.receipts())

    def test_key_that_expires_soon(self):
        self.prepare(sign=["expiring:12"])
        manifest = self.released()
        self.assertIn("warning: signing key expires in 12 days", self.done.stderr.splitlines())
        self.assertEqual(manifest["receipts"], self.receipts())

    def test_refusal(self):
        self.prepare(sign=["refuse:holiday season"])
        self.failed("error: sign: refused: holiday season")
        self.assertEqual((self.tools_called(), len(self.calls("void"))), (["digest", "sign"], 2))

    def test_end_during_the_talk(self):
        for word in ("dies", "middle"):
            with self.subTest(word):
                self.write("calls.jsonl", "")
                self.prepare(sign=[word])
                self.failed(tool="sign")
                self.assertEqual(len(self.calls("void")), 1)

    def test_receipt_of_a_useless_answer_is_voided(self):
        for word in ("nosignature", "late:20"):
            with self.subTest(word):
                self.write("calls.jsonl", "")
                self.prepare(sign=[word])
                self.failed(tool="sign")
                self.assertEqual(len(self.calls("void")), 2)


class Stamp(ReleaseCase):
    def test_frames_with_other_letters(self):
        self.prepare(stamp=["wide"])
        self.assertEqual(self.released()["stamp"]["authority"], "Zürich „Süd“\nEurope")
        self.assertIn("„Süd“", self.read("out/manifest.json"))

    def test_busy_is_called_again(self):
        self.prepare(stamp=["busy", "busy", "ok"])
        manifest = self.released()
        self.assertEqual([call["signature"] for call in self.calls("stamp")], [[manifest["signature"]]] * 3)

    def test_busy_three_times_fails(self):
        self.prepare(stamp=["busy"] * 3)
        self.failed(tool="stamp")
        self.assertEqual(len(self.calls("stamp")), 3)

    def test_frame_that_is_too_short(self):
        self.prepare(stamp=["short"])
        self.failed(tool="stamp")

    def test_other_failures_are_not_repeated(self):
        self.prepare(stamp=["fail:no such authority"])
        self.failed(tool="stamp")
        self.assertEqual(self.tools_called(), ["digest", "sign", "stamp"])

    def test_receipt_of_a_useless_answer_is_voided(self):
        for word in ("notime", "late:5"):
            with self.subTest(word):
                self.write("calls.jsonl", "")
                self.prepare(stamp=[word])
                self.failed(tool="stamp")
                self.assertEqual(len(self.calls("void")), 3)


class Registry(ReleaseCase):
    def test_failed_commit_voids_everything(self):
        for word in ("fail:1", "notoken"):
            with self.subTest(word):
                self.write("calls.jsonl", "")
                self.prepare(commit=[word])
                self.failed(tool="registry")
                self.assertEqual(len(self.calls("void")), 3)

    def test_failing_void_is_a_warning(self):
        self.prepare(commit=["fail:1"], void=["ok", "status:1", "ok"])
        done = self.failed(tool="registry")
        warnings = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
        self.assertEqual(warnings, [f"warning: receipt {self.receipts()[1]} is not void"])

    def test_void_already_is_fine(self):
        self.prepare(stamp=["fail:x"], void=["status:4", "status:4"])
        self.assertNotIn("warning", self.failed(tool="stamp").stderr)

    def test_tool_that_cannot_be_started(self):
        self.prepare(tools={**SERVER, "stamp": ["./no-such-tool"]})
        self.failed(tool="stamp")
        self.assertEqual(len(self.calls("void")), 2)

    def test_registry_that_cannot_be_started(self):
        self.prepare(tools={**SERVER, "registry": ["./no-such-tool"]})
        done = self.build()
        self.assertEqual((done.status, done.stdout), (1, ""), done)
        lines = done.stderr.splitlines()
        expected = [f"warning: receipt {receipt} is not void" for receipt in self.receipts()[::-1]]
        self.assertEqual([line for line in lines if line.startswith("warning: ")], expected)
        self.assertEqual(len([line for line in lines if line.startswith("error: registry: ")]), 1)


class Recovery(ReleaseCase):
    def test_receipts_of_a_release_that_died_are_voided(self):
        for plan, count in (({"digest": ["kill"]}, 0), ({"digest": ["ok", "busy", "kill"]}, 1), ({"sign": ["kill"]}, 2), ({"stamp": ["busy", "kill"]}, 3)):
            with self.subTest(plan):
                self.write("calls.jsonl", "")
                self.prepare([f"{n}.bin" for n in range(7)], **plan)
                self.dies()
                self.recovers(f"recovered wídget 2.0: {count} receipts void")
                self.assertEqual((self.voided(), len(self.receipts())), (self.receipts()[::-1], count))
                self.assertEqual((self.exists("out"), self.calls("status")), (False, []))
                self.recovers("nothing to recover")

    def test_build_recovers_first(self):
        self.prepare(stamp=["kill"])
        self.dies()
        receipts = self.receipts()
        manifest = self.released()
        self.assertEqual(self.done.stderr, "recovered wídget 2.0: 2 receipts void\n")
        self.assertEqual([call["tool"] for call in self.calls()][3:], ["void", "void", "digest", "sign", "stamp", "commit"])
        self.assertEqual((self.voided(), manifest["receipts"]), (receipts[::-1], self.receipts()[2:]))
        self.assertFalse(self.exists(".release-journal"))

    def test_build_recovers_before_it_collects_files(self):
        self.prepare(stamp=["kill"])
        self.dies()
        settings = json.loads(self.read("release.json"))
        self.write("release.json", json.dumps({**settings, "tools": {**SERVER, "sign": []}}))
        self.assertEqual(self.build().stderr, "error: `tools` has no command for `sign`\n")
        self.assertEqual(self.voided(), [])
        self.write("release.json", json.dumps({**settings, "version": "3", "include": []}))
        done = self.build()
        self.assertEqual((done.status, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "recovered wídget 2.0: 2 receipts void\nerror: no file matches `include`\n")
        self.assertEqual((len(self.voided()), self.exists(".release-journal")), (2, False))

    def test_commit_that_was_not_carried_out(self):
        self.prepare(commit=["kill"])
        self.dies()
        self.recovers("recovered wídget 2.0: 3 receipts void")
        self.assertEqual([call["asked"] for call in self.calls("status")], self.receipts()[:1])
        self.assertEqual((self.voided(), self.exists("out")), (self.receipts()[::-1], False))

    def test_commit_that_was_carried_out(self):
        self.prepare([f"{n}.bin" for n in range(7)], commit=["killafter"], sign=["expiring:3"])
        self.write("deep/out/manifest.json", "earlier\n")
        self.dies("deep/out")
        self.assertEqual(self.read("deep/out/manifest.json"), "earlier\n")
        (commit,) = self.calls("commit")
        for name in self.contents:
            self.program("rm", name)
        self.recovers(f"recovered wídget 2.0: 7 files, commit {commit['commit']}")
        text = self.read("deep/out/manifest.json")
        manifest = json.loads(text)
        self.assertEqual(text, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        self.assertEqual(list(manifest), ["name", "version", "files", "signature", "stamp", "receipts", "commit"])
        self.assertEqual((manifest["receipts"], manifest["commit"]), (self.receipts()[:4], commit["commit"]))
        self.assertEqual([entry["path"] for entry in manifest["files"]], list(self.contents))
        body = {name: manifest[name] for name in ("name", "version", "files")}
        self.assertEqual(manifest["signature"], signature(self.key, json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)))
        self.assertEqual((self.voided(), self.exists("out")), ([], False))

    def test_build_after_a_commit_that_was_carried_out(self):
        self.prepare(commit=["killafter"])
        self.dies("first")
        settings = json.loads(self.read("release.json"))
        self.write("release.json", json.dumps({**settings, "version": "2.1"}))
        manifest = self.released()
        (first, second) = self.calls("commit")
        self.assertEqual(self.done.stderr, f"recovered wídget 2.0: 2 files, commit {first['commit']}\n")
        earlier = json.loads(self.read("first/manifest.json"))
        self.assertEqual((earlier["version"], earlier["commit"], earlier["receipts"]), ("2.0", first["commit"], first["receipts"]))
        self.assertEqual((manifest["version"], manifest["commit"]), ("2.1", second["commit"]))

    def test_status_that_fails(self):
        self.prepare(commit=["killafter"], status=["status:9", "garbage", "status:1"])
        self.dies()
        for arguments in (("recover", "release.json"), BUILD[3:], BUILD[3:]):
            done = self.program(*BUILD[:3], *arguments, env={"SERVER_KEY": self.key})
            self.assertEqual((done.status, done.stdout), (1, ""), done)
            self.assertRegex(done.stderr, r"\Aerror: registry: .*\n\Z")
        self.assertEqual((self.voided(), len(self.calls("digest"))), ([], 1))
        (commit,) = self.calls("commit")
        self.recovers(f"recovered wídget 2.0: 2 files, commit {commit['commit']}")
        self.assertEqual(json.loads(self.read("out/manifest.json"))["receipts"], commit["receipts"])

    def test_receipts_that_could_not_be_voided(self):
        self.prepare(commit=["fail:1"], void=["ok", "status:1", "ok", "status:1"])
        self.failed(tool="registry")
        left = self.receipts()[1]
        done = self.build()
        self.assertEqual((done.status, done.stdout), (1, ""))
        self.assertEqual(done.stderr, f"warning: receipt {left} is not void\nerror: registry: 1 receipts are not void\n")
        self.assertEqual(len(self.calls("digest")), 1)
        self.recovers("recovered wídget 2.0: 1 receipts void")
        self.assertEqual(self.voided()[3:], [left, left])

    def test_program_that_dies_while_it_voids(self):
        self.prepare(stamp=["fail:x"], void=["ok", "kill", "status:4"])
        self.dies()
        done = self.program(*BUILD[:3], "recover", "release.json", env={"SERVER_KEY": self.key})
        self.assertEqual((done.status, done.stderr), (0, ""), done)
        self.assertEqual(set(self.voided()), set(self.receipts()))
        self.assertEqual(self.voided()[-1], self.receipts()[0])
        self.assertFalse(self.exists(".release-journal"))

    def test_program_that_dies_in_recovery(self):
        self.prepare(stamp=["kill"], void=["kill"])
        self.dies()
        done = self.program(*BUILD[:3], "recover", "release.json", env={"SERVER_KEY": self.key})
        self.assertEqual(done.status, -signal.SIGUSR1)
        self.recovers("recovered wídget 2.0: 2 receipts void")
        self.assertEqual(self.voided()[1:], self.receipts()[::-1])

    def test_journal_exists_while_tools_run(self):
        self.prepare()
        self.released()
        self.assertEqual([call["has_journal"] for call in self.calls()], [True] * 4)
        self.assertFalse(self.exists(".release-journal"))

    def test_journal_is_no_file_of_a_release(self):
        self.prepare(stamp=["kill"])
        settings = json.loads(self.read("release.json"))
        self.write("release.json", json.dumps({**settings, "include": ["notes", ".release-*", "*.none"], "exclude": []}))
        self.write("notes", "x")
        self.dies()
        manifest = self.released()
        self.assertEqual([call["files"] for call in self.calls("digest")], [["notes"]] * 2)
        self.assertEqual([entry["path"] for entry in manifest["files"]], ["notes"])


class Leftovers(ReleaseCase):
    def test_earlier_manifest_stays_after_a_failure(self):
        self.prepare(stamp=["fail:x"])
        self.write("out/manifest.json", "earlier\n")
        done = self.build()
        self.assertEqual((done.status, self.read("out/manifest.json")), (1, "earlier\n"))

    def test_earlier_manifest_is_replaced_by_a_release(self):
        self.prepare()
        self.write("out/manifest.json", "earlier\n" * 1000)
        self.assertEqual(self.released()["receipts"], self.receipts())
