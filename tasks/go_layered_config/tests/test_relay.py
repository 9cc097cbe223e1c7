import os

import lab

KEYS = {
    "batch": "10", "color": "false", "max_age": "24h0m0s", "recipients": "", "spool": "spool",
    "subject_prefix": "", "templates": "templates", "token": "", "verbose": "false",
}
NOW = "2026-03-01T10:00:00Z"
USAGE = """usage: relay [FLAG...] config
       relay [FLAG...] send NAME [KEY=VALUE...] [-]
       relay [FLAG...] list
       relay [FLAG...] expire
"""


def config(**changed):
    return "".join(f"{key} = {value}\n" for key, value in {**KEYS, **changed}.items())


class Relay(lab.Case):
    def setUp(self):
        self.root = os.path.realpath(self.folder)
        self.home = self.root + "/home"
        self.write("home/empty", "")

    def relay(self, *arguments, status=0, env=None, stdin=""):
        env = {"HOME": self.home, "RELAY_NOW": NOW, **(env or {})}
        done = self.program("relay", *arguments, env=env, stdin=stdin)
        self.assertEqual(done.status, status, done)
        return done

    def explained(self, *arguments, **more):
        """Returns values and sources by keys."""
        lines = self.relay(*arguments, "config", "-explain", **more).stdout.splitlines()
        self.assertEqual([line.split(" = ")[0] for line in lines], list(KEYS))
        return dict(line.split(" = ", 1) for line in lines)


class Unchanged(Relay):
    def test_config(self):
        self.assertEqual(self.relay("config", env={"HOME": ""}).stdout, config())
        self.write("home/.relay.conf", "# mine\n\nbatch=3\n  recipients = a,, b \ntoken = s3cret\nmax_age = 90m\n")
        done = self.relay("-to", "x,y", "-v", "config", env={"RELAY_MAX_AGE": "1h", "RELAY_SPOOL": "", "RELAY_SUBJECT_PREFIX": "p: "})
        self.assertEqual(done.stdout, config(batch="3", max_age="1h0m0s", recipients="x, y", subject_prefix="p: ", token="****", verbose="true"))

    def test_send_list_and_expire(self):
        env = {"RELAY_RECIPIENTS": "eva, tom", "RELAY_TOKEN": "s3cret", "RELAY_SUBJECT_PREFIX": "[x] "}
        done = self.relay("send", "deploy", "service=api", "version=1.2", "-", env=env, stdin="more\n")
        self.assertEqual((done.stdout, done.stderr), ("queued 000001 for eva, tom\n", ""))
        self.assertEqual(self.read("spool/000001.msg"), f"Date: {NOW}\nTo: eva, tom\nSubject: [x] api was deployed\nToken: s3cret\n\nVersion 1.2 of api is live since 2026-03-01.\nmore\n")
        done = self.relay("-color", "send", "deploy", "service=web", env={**env, "RELAY_NOW": "2026-03-02T09:00:00+01:00"})
        self.assertEqual(done.stdout, "\x1b[32mqueued 000002 for eva, tom\x1b[0m\n")
        self.assertEqual(done.stderr, "relay: warning: template `deploy`: no value for `version`\nrelay: 1 warning\n")
        now = {"RELAY_NOW": "2026-03-02T10:30:00Z"}
        self.assertEqual(self.relay("list", env=now).stdout, "000001  24h30m0s  [x] api was deployed\n000002  2h30m0s  [x] web was deployed\n")
        self.assertEqual(self.relay("expire", env=now).stdout, "expired 1\n")
        self.assertFalse(self.exists("spool/000001.msg"))
        self.assertTrue(self.exists("spool/000002.msg"))

    def test_messages_have_paths_as_configured(self):
        self.write("home/t/x.txt", "subject")
        done = self.relay("-v", "-to", "a", "-spool", "./out/", "send", "x", env={"RELAY_TEMPLATES": "~/t"})
        self.assertEqual(done.stderr, f"relay: reading {self.home}/t/x.txt\nrelay: writing out/000001.msg\n")
        done = self.relay("-v", "-to", "a", "send", "deploy", "service=a", "version=1")
        self.assertEqual(done.stderr, "relay: reading templates/deploy.txt\nrelay: writing spool/000001.msg\n")
        self.write("file", "")
        self.assertEqual(self.relay("-spool", "./file", "list", status=1).stderr.split(": not a")[0].split()[-1], "./file")
        self.assertEqual(self.relay("-spool", "file", "-to", "a", "send", "deploy", "service=a", "version=1", status=1).stderr, "relay: mkdir file: not a directory\n")

    def test_errors_and_usage(self):
        self.write("home/.relay.conf", "colour = true\nbatch = 0\n")
        done = self.relay("config", status=2)
        path = self.home + "/.relay.conf"
        self.assertEqual(done.stderr, f"relay: warning: {path}:1: unknown key `colour`\nrelay: {path}:2: batch: bad value `0`\nrelay: 1 warning\n")
        done = self.relay(status=2)
        self.assertEqual(done.stderr, f"relay: warning: {path}:1: unknown key `colour`\n{USAGE}relay: 1 warning\n")
        self.write("home/.relay.conf", "a = 1\nb = 2\nverbose\n")
        self.assertEqual(self.relay("list", status=2).stderr.splitlines()[2:], [f"relay: {path}:3: `=` is missing", "relay: 2 warnings"])
        self.write("home/.relay.conf", "")
        self.assertEqual(self.relay("list", status=2, env={"RELAY_COLOR": "green"}).stderr, "relay: RELAY_COLOR: color: bad value `green`\n")
        for arguments in (["config", "x"], ["-color=maybe", "config"], ["list", "-v"], ["send"], ["nothing"], ["-x", "config"]):
            self.assertEqual(self.relay(*arguments, status=2).stderr, USAGE, arguments)
        self.assertEqual(self.relay("send", "deploy", status=1).stderr, "relay: no recipients\n")
        self.assertEqual(self.relay("-to", "a", "send", "none", status=1).stderr, "relay: template `none`: can't be read\n")


class Layers(Relay):
    def test_layers_replace_each_other(self):
        self.write("system.conf", "batch = 1\nmax_age = 1h\nspool = s1\ntemplates = t1\nsubject_prefix = p1\n")
        self.write("home/.relay.conf", "max_age = 2h\nspool = s2\ntemplates = t2\nsubject_prefix = p2\n")
        self.write(".relay.conf", "spool = s3\ntemplates = t3\nsubject_prefix = p3\n")
        env = {"RELAY_SYSTEM_CONFIG": self.root + "/system.conf", "RELAY_TEMPLATES": "t4", "RELAY_SUBJECT_PREFIX": "p4"}
        found = self.explained("-set", "subject_prefix=p5", env=env)
        self.assertEqual(found, {
            "batch": f"1 (system {self.root}/system.conf:1)",
            "color": "false (default)",
            "max_age": f"2h0m0s (user {self.home}/.relay.conf:1)",
            "recipients": " (default)",
            "spool": f"s3 (project {self.root}/.relay.conf:1)",
            "subject_prefix": "p5 (flag -set)",
            "templates": "t4 (env RELAY_TEMPLATES)",
            "token": " (default)",
            "verbose": "false (default)",
        })
        self.assertEqual(self.relay("config", env={**env, "RELAY_SYSTEM_CONFIG": "system.conf"}).stdout,
                         config(batch="1", max_age="2h0m0s", spool="s3", templates="t4", subject_prefix="p4"))

    def test_the_last_flag_for_a_key_counts(self):
        found = self.explained("-to", "a", "-set", "recipients=b", "-color", "-set", "color=false", "-spool=x")
        self.assertEqual([found[key] for key in ("recipients", "color", "spool")], ["b (flag -set)", "false (flag -set)", "x (flag -spool)"])
        found = self.explained("-set", "recipients=b", "-to", "a", "-set=verbose=false", "-v", "-set", "token=a=b")
        self.assertEqual([found[key] for key in ("recipients", "verbose", "token")], ["a (flag -to)", "true (flag -v)", "**** (flag -set)"])

    def test_lists_grow(self):
        self.write("system.conf", "recipients += s\n")
        self.write("home/.relay.conf", "recipients+= u1, u2\n")
        self.write(".relay.conf", "recipients += p\n")
        env = {"RELAY_SYSTEM_CONFIG": self.root + "/system.conf"}
        user, project = f"user {self.home}/.relay.conf", f"project {self.root}/.relay.conf"
        start = f"default + system {self.root}/system.conf:1 + {user}:1 + {project}:1"
        self.assertEqual(self.explained("-set", "recipients+=f", env=env)["recipients"], f"s, u1, u2, p, f ({start} + flag -set)")
        self.assertEqual(self.explained("-set", "recipients+=f", env={**env, "RELAY_RECIPIENTS": "e"})["recipients"], "e, f (env RELAY_RECIPIENTS + flag -set)")
        self.write(".relay.conf", "recipients += p\nrecipients = q\nrecipients += r\n")
        self.assertEqual(self.explained(env=env)["recipients"], f"q, r ({project}:2 + {project}:3)")

    def test_unset_lines(self):
        self.write("home/.relay.conf", "batch = 3\nrecipients = a\nspool = s\nunset spool\nmax_age = 1m\n")
        self.write(".relay.conf", "unset   batch\nunset recipients\nrecipients += b\nunset max_age\nmax_age = 3m\n")
        user, project = f"user {self.home}/.relay.conf", f"project {self.root}/.relay.conf"
        found = self.explained()
        self.assertEqual([found[key] for key in ("batch", "recipients", "spool", "max_age")], [
            f"10 (default, unset by {project}:1)",
            f"b (default, unset by {project}:2 + {project}:3)",
            f"spool (default, unset by {user}:4)",
            f"3m0s ({project}:5)",
        ])

    def test_new_lines_have_the_errors_of_others(self):
        path = self.root + "/.relay.conf"
        self.write(".relay.conf", "unset nothing\nnothing += 1\nunset = 1\nunset batch = 1\nbatch += 2\n")
        lines = self.relay("config", status=2).stderr.splitlines()
        self.assertEqual(lines, [f"relay: warning: {path}:{n}: unknown key `{key}`" for n, key in ((1, "nothing"), (2, "nothing"), (3, "unset"), (4, "unset batch"))]
                         + [f"relay: {path}:5: batch: not a list", "relay: 4 warnings"])
        for line in ("unset", "unset batch spool", "Unset batch", "batch"):
            self.write(".relay.conf", line)
            self.assertEqual(self.relay("config", status=2).stderr, f"relay: {path}:1: `=` is missing\n")

    def test_errors_of_set_flags(self):
        for value, text in (("batch=x", "batch: bad value `x`"), ("x=1", "unknown key `x`"), ("x+=1", "unknown key `x`"), ("batch+=1", "batch: not a list")):
            self.assertEqual(self.relay("-set", value, "config", status=2).stderr, f"relay: -set: {text}\n")
        self.assertEqual(self.relay("-set", "batch", "config", status=2).stderr, USAGE)
        done = self.relay("-set", "batch=x", "config", status=2, env={"RELAY_BATCH": "y"})
        self.assertEqual(done.stderr, "relay: RELAY_BATCH: batch: bad value `y`\n")
        self.write("home/.relay.conf", "batch = z\n")
        self.assertEqual(self.relay("-set", "batch=1", "config", status=2).stderr, f"relay: {self.home}/.relay.conf:1: batch: bad value `z`\n")


class Project(Relay):
    def run_in(self, folder, *arguments, env=None):
        """Runs the program in a folder below."""
        self.write(f"{folder}/here", "")
        env = {"HOME": self.home, "RELAY_NOW": NOW, **(env or {})}
        return self.program("sh", "-c", 'cd "$0" && exec relay "$@"', folder, *arguments, env=env)

    def test_the_nearest_file_above_counts(self):
        self.write("p/.relay.conf", "batch = 2\nmax_age = 1h\n")
        self.write("p/q/.relay.conf", "batch = 3\n")
        self.assertEqual(self.run_in("p/q/r/s", "config").stdout, config(batch="3"))
        self.assertEqual(self.run_in("p/o", "config").stdout, config(batch="2", max_age="1h0m0s"))

    def test_the_users_file_is_no_projects_file(self):
        self.write(".relay.conf", "batch = 2\n")
        self.write("home/.relay.conf", "recipients += u\n")
        done = self.run_in("home/a/b", "config", "-explain")
        self.assertIn(f"recipients = u (default + user {self.home}/.relay.conf:1)\n", done.stdout)
        self.assertIn("batch = 10 (default)\n", done.stdout)
        done = self.run_in("home/a/b", "config", "-explain", env={"HOME": self.home + "/"})
        self.assertIn(f"recipients = u (default + user {self.home}/.relay.conf:1)\n", done.stdout)

    def test_paths_of_the_projects_file_are_relative_to_its_folder(self):
        self.write("p/.relay.conf", "spool = out\ntemplates = ./t\nrecipients = a\n")
        self.write("p/t/x.txt", "subject\n")
        done = self.run_in("p/q", "-v", "send", "x")
        self.assertEqual((done.status, done.stdout), (0, "queued 000001 for a\n"), done)
        self.assertEqual(done.stderr, f"relay: reading {self.root}/p/t/x.txt\nrelay: writing {self.root}/p/out/000001.msg\n")
        self.assertTrue(self.exists("p/out/000001.msg"))
        self.assertIn("templates = ./t\n", self.run_in("p/q", "config").stdout)

    def test_paths_of_other_layers_are_relative_to_the_working_folder(self):
        self.write("p/.relay.conf", "spool = out\nunset templates\nrecipients = a\n")
        self.write("home/.relay.conf", "templates = ../never\n")
        self.write("p/q/templates/x.txt", "subject\n")
        done = self.run_in("p/q", "-v", "-spool", "out2", "send", "x")
        self.assertEqual(done.stderr, "relay: reading templates/x.txt\nrelay: writing out2/000001.msg\n")
        self.assertTrue(self.exists("p/q/out2/000001.msg"))
        self.write("p/.relay.conf", "spool = ~/out\ntemplates = q/templates\nrecipients = a\n")
        self.run_in("p/q", "send", "x", env={"RELAY_TEMPLATES": "templates"})
        self.assertTrue(self.exists("home/out/000001.msg"))


class Isolation(Relay):
    """Runs the program several times in a process that has other arguments, variables and folders."""

    def setUp(self):
        super().setUp()
        self.write("home/.relay.conf", "batch = 66\ntoken = wrong\n")
        self.driver_ = self.driver("driver", "-v", env={"HOME": self.home, "RELAY_BATCH": "77", "RELAY_NOW": "2001-01-01T00:00:00Z", "RELAY_TO": "wrong"})
        for name in ("a", "b"):
            self.write(f"{name}/templates/x.txt", f"subject of {name}\n{{{{word}}}}\n")

    def request(self, name, *arguments, **more):
        return {"args": list(arguments), "dir": f"{self.root}/{name}", "now": NOW, **more, "env": {"RELAY_RECIPIENTS": name, **more.get("env", {})}}

    def ran(self, name, *arguments, **more):
        return self.driver_.call("run", **self.request(name, *arguments, **more))

    def test_nothing_of_the_process_is_used(self):
        done = self.ran("a", "config")
        self.assertEqual(done, {"status": 0, "stdout": config(recipients="a"), "stderr": ""})
        done = self.ran("a", "-v", "send", "x", "word=1", "-", stdin="extra")
        self.assertEqual(done, {"status": 0, "stdout": "queued 000001 for a\n", "stderr": "relay: reading templates/x.txt\nrelay: writing spool/000001.msg\n"})
        self.assertEqual(self.read("a/spool/000001.msg"), f"Date: {NOW}\nTo: a\nSubject: subject of a\n\n1\nextra")
        self.assertFalse(self.exists("spool"))

    def test_a_run_does_not_see_earlier_ones(self):
        self.ran("a", "-v", "-color", "-to", "x", "-set", "batch=4", "send", "x", env={"RELAY_MAX_AGE": "1s"})
        self.ran("a", "send", "x", "word=1")
        self.assertEqual(self.ran("b", "config")["stdout"], config(recipients="b"))
        done = self.ran("b", "send", "x")
        self.assertEqual(done, {"status": 0, "stdout": "queued 000001 for b\n", "stderr": "relay: warning: template `x`: no value for `word`\nrelay: 1 warning\n"})
        self.assertIn("Subject: subject of b", self.read("b/spool/000001.msg"))
        self.assertEqual(self.ran("b", "nonsense")["stderr"], USAGE)
        self.write("b/templates/x.txt", "new subject\n")
        self.ran("b", "send", "x")
        self.assertIn("Subject: new subject", self.read("b/spool/000002.msg"))

    def test_clocks_are_separate(self):
        self.ran("a", "send", "x", "word=1")
        self.assertEqual(self.ran("a", "list", env={"RELAY_NOW": "2026-03-01T10:10:00Z"})["stdout"], "000001  10m0s  subject of a\n")
        self.assertEqual(self.ran("a", "list", now="2026-03-01T10:20:59Z")["stdout"], "000001  20m0s  subject of a\n")

    def test_a_run_that_waits_is_not_disturbed(self):
        self.driver_.call("start", name="first", **self.request("a", "-v", "-color", "send", "x", "word=1", "-", env={"RELAY_SUBJECT_PREFIX": "1: "}))
        done = self.ran("b", "-to", "z", "send", "x", "word=2", env={"RELAY_NOW": "2026-05-05T05:05:05Z"})
        self.assertEqual(done, {"status": 0, "stdout": "queued 000001 for z\n", "stderr": ""})
        done = self.driver_.call("finish", name="first", stdin="rest\n")
        self.assertEqual(done["stdout"], "\x1b[32mqueued 000001 for a\x1b[0m\n")
        self.assertEqual(done["stderr"], "relay: reading templates/x.txt\nrelay: writing spool/000001.msg\n")
        self.assertEqual(self.read("a/spool/000001.msg"), f"Date: {NOW}\nTo: a\nSubject: 1: subject of a\n\n1\nrest\n")

    def test_many_runs_at_the_same_time(self):
        runs = [self.request("a", "-set", f"batch={n}", "config", env={"RELAY_MAX_AGE": f"{n}m"}) for n in range(1, 9)]
        runs.append(self.request("b", "config", env={"RELAY_COLOR": "x"}))
        found = self.driver_.call("together", runs=runs, count=20)
        for i, outcome in enumerate(found):
            n = i % 9 + 1
            expected = {"status": 0, "stdout": config(batch=str(n), max_age=f"{n}m0s", recipients="a"), "stderr": ""}
            if n == 9:
                expected = {"status": 2, "stdout": "", "stderr": "relay: RELAY_COLOR: color: bad value `x`\n"}
            self.assertEqual(outcome, expected)
