import json
import random

import lab

KEEP = 600
ARCHIVE = 3600


class Model:
    """The rules, without any index."""

    def __init__(self):
        self.units = {}
        self.all = []
        self.kept = {}

    def do(self, request):
        at, op = request["at"], request["op"]
        while True:
            ends = [self.end(r) for r in self.all if self.end(r) is not None and self.end(r) <= at]
            if not ends:
                break
            moment = min(ends)
            for r in [r for r in self.all if self.end(r) == moment]:
                r.update(state="expired", expires=moment)
            self.promote(moment)
        for r in self.all:
            if r["to"] + ARCHIVE <= at:
                r["archived"] = True
        if op == "define":
            if request["resource"] in self.units:
                return {"ok": False, "error": "exists"}
            self.units[request["resource"]] = request["count"]
            return {"ok": True}
        if op == "get":
            r = self.find(request["id"])
            return {"ok": True, "reservation": self.shown(r)} if r else {"ok": False, "error": "unknown"}
        if op == "expired":
            ended = [r for r in self.all if r["state"] == "expired" and not r["archived"]]
            ended.sort(key=lambda r: (r["expires"], r["number"]))
            return self.full(ids=[f"r{r['number']}" for r in ended])
        if op == "list":
            return self.full(reservations=[self.shown(r) for r in self.overlapping(**self.span(request))])
        if op == "free":
            return {"ok": True, "free": self.free(**self.span(request))}
        if op == "waiting":
            waiting = [r for r in self.all if r["state"] == "waiting" and request["resource"] in r["units"]]
            return self.full(ids=[f"r{r['number']}" for r in waiting])
        name = (request["client"], request["key"])
        content = {k: v for k, v in request.items() if k != "at"}
        if name in self.kept and self.kept[name][0] + KEEP > at:
            if self.kept[name][1] != content:
                return {"ok": False, "error": "key_reused"}
            self.kept[name][0] = at
            return self.kept[name][2]
        answer = json.loads(json.dumps(self.change(request)))
        self.promote(at)
        if answer.get("error") != "bad_request":
            self.kept[name] = [at, content, answer]
        return answer

    def end(self, r):
        if r["archived"]:
            return None
        return {"held": r.get("expires"), "waiting": r["from"]}.get(r["state"])

    def promote(self, at):
        for r in self.all:
            if r["state"] == "waiting" and not self.obstacles(r["units"], **{"from": r["from"], "to": r["to"]}):
                r.update(state="held", expires=at + r["ttl"])

    def span(self, request):
        return {name: request[name] for name in ("resource", "from", "to")}

    def full(self, **lists):
        return {"ok": True, **{k: v for k, v in lists.items() if v}}

    def find(self, name):
        return next((r for r in self.all if f"r{r['number']}" == name and not r["archived"]), None)

    def shown(self, r):
        shown = {"id": f"r{r['number']}", "client": r["client"], "state": r["state"], "units": r["units"], "from": r["from"], "to": r["to"]}
        if r["state"] in ("held", "expired"):
            shown["expires"] = r["expires"]
        return shown

    def active(self, r):
        return r["state"] in ("held", "booked") and not r["archived"]

    def overlapping(self, resource, without=None, **span):
        found = [
            r
            for r in self.all
            if r is not without and self.active(r) and resource in r["units"] and r["from"] < span["to"] and span["from"] < r["to"]
        ]
        return sorted(found, key=lambda r: (r["from"], r["number"]))

    def free(self, resource, **span):
        pieces = []
        for second in range(span["from"], span["to"]):
            used = sum(r["units"][resource] for r in self.overlapping(resource, **{"from": second, "to": second + 1}))
            free = self.units[resource] - used
            if pieces and pieces[-1][2] == free:
                pieces[-1][1] = second + 1
            else:
                pieces.append([second, second + 1, free])
        return pieces

    def obstacles(self, units, without=None, **span):
        numbers = set()
        for resource, count in units.items():
            others = self.overlapping(resource, without, **span)
            used = max(
                sum(r["units"][resource] for r in others if r["from"] <= second < r["to"]) for second in range(span["from"], span["to"])
            )
            if used + count > self.units[resource]:
                numbers |= {r["number"] for r in others}
        return [f"r{number}" for number in sorted(numbers)]

    def change(self, request):
        op = request["op"]
        if op in ("hold", "wait"):
            with_ = self.obstacles(request["units"], **{"from": request["from"], "to": request["to"]})
            if with_ and (op == "hold" or request["from"] <= request["at"]):
                return {"ok": False, "error": "conflict", "with": with_}
            r = {name: request[name] for name in ("client", "units", "from", "to", "ttl")}
            r.update(state="waiting" if with_ else "held", expires=request["at"] + request["ttl"], number=len(self.all) + 1, archived=False)
            self.all.append(r)
            return {"ok": True, "reservation": self.shown(r)}
        r = self.find(request["id"])
        if r is None or r["client"] != request["client"]:
            return {"ok": False, "error": "unknown"}
        if not self.active(r) and r["state"] != "waiting":
            return {"ok": False, "error": "gone"}
        if op in ("renew", "confirm"):
            if r["state"] == "booked":
                return {"ok": False, "error": "gone"}
            if r["state"] == "waiting" and op == "confirm":
                return {"ok": False, "error": "waiting"}
            if r["state"] == "waiting":
                r["ttl"] = request["ttl"]
            elif op == "confirm":
                r["state"] = "booked"
            else:
                r["expires"] = request["at"] + request["ttl"]
        elif op == "cancel":
            r["state"] = "canceled"
        else:
            start = request.get("from", r["from"])
            if start >= request["to"]:
                return {"ok": False, "error": "bad_request"}
            with_ = self.obstacles(r["units"], r, **{"from": start, "to": request["to"]})
            if with_ and (r["state"] != "waiting" or start <= request["at"]):
                return {"ok": False, "error": "conflict", "with": with_}
            r["from"], r["to"] = start, request["to"]
            if r["state"] == "waiting" and not with_:
                r.update(state="held", expires=request["at"] + r["ttl"])
        return {"ok": True, "reservation": self.shown(r)}


class Bookd(lab.Case):
    keys = 0

    def start(self, *arguments, units=None):
        self.bookd = self.process("bookd", *arguments)
        for resource, count in (units or {}).items():
            self.do(0, "define", resource=resource, count=count)

    def do(self, at, op, **more):
        if op in ("hold", "wait", "renew", "confirm", "resize", "move", "cancel"):
            self.keys += 1
            more = {"client": "c", "key": f"key {self.keys}", **more}
        more = {name.rstrip("_"): value for name, value in more.items()}
        self.bookd.send(json.dumps({"at": at, "op": op, **more}))
        self.text = self.bookd.line()
        return json.loads(self.text)

    def hold(self, at, span, ttl=10**6, units=None, **more):
        return self.do(at, "hold", units=units or {"desk": 1}, from_=span[0], to=span[1], ttl=ttl, **more)

    def wait(self, at, span, ttl=10**6, units=None, **more):
        return self.do(at, "wait", units=units or {"desk": 1}, from_=span[0], to=span[1], ttl=ttl, **more)

    def state(self, at, name):
        r = self.do(at, "get", id=name)["reservation"]
        return (r["state"], r.get("expires"))

    def conflict(self, *with_):
        return {"ok": False, "error": "conflict", "with": list(with_)}

    def refused(self, kind):
        return {"ok": False, "error": kind}


class Expiry(Bookd):
    def test_a_hold_ends_at_its_time(self):
        self.start(units={"desk": 1})
        self.hold(0, (500, 600), ttl=50)
        self.assertEqual(self.hold(49, (500, 600)), self.conflict("r1"))
        self.assertTrue(self.hold(50, (500, 600))["ok"])
        self.assertEqual(self.do(50, "get", id="r1")["reservation"]["state"], "expired")

    def test_a_renewed_hold_does_not_keep_others_from_expiring(self):
        self.start(units={"desk": 1})
        self.hold(0, (500, 600), ttl=50)
        self.hold(0, (700, 800), ttl=100)
        self.do(10, "renew", id="r1", ttl=900)
        self.assertTrue(self.hold(110, (700, 800))["ok"])
        self.assertEqual(self.hold(110, (500, 600)), self.conflict("r1"))

    def test_a_hold_can_be_renewed_to_an_earlier_time(self):
        self.start(units={"desk": 1})
        for i in range(5):
            self.hold(0, (500 + i, 501 + i), ttl=100 + i)
        self.do(10, "renew", id="r5", ttl=5)
        self.assertTrue(self.hold(20, (504, 505))["ok"])
        self.assertEqual(self.do(20, "expired"), {"ok": True, "ids": ["r5"]})

    def test_a_confirmed_hold_does_not_keep_later_ones_from_expiring(self):
        self.start(units={"desk": 1})
        for i, ttl in enumerate((100, 101, 102)):
            self.hold(0, (500 + i, 501 + i), ttl=ttl)
        self.do(0, "confirm", id="r2")
        self.hold(0, (600, 610), ttl=20)
        self.hold(0, (610, 620), ttl=30)
        self.assertTrue(self.hold(40, (600, 620))["ok"])
        self.assertEqual(self.do(40, "expired"), {"ok": True, "ids": ["r4", "r5"]})

    def test_a_canceled_hold_does_not_keep_later_ones_from_expiring(self):
        self.start(units={"desk": 1})
        for i, ttl in enumerate((100, 101, 102)):
            self.hold(0, (500 + i, 501 + i), ttl=ttl)
        self.do(0, "cancel", id="r2")
        self.hold(0, (600, 610), ttl=20)
        self.hold(0, (610, 620), ttl=30)
        self.assertTrue(self.hold(40, (600, 620))["ok"])

    def test_expired_holds_are_listed_by_time_then_number(self):
        self.start(units={"desk": 99})
        for ttl in (30, 20, 30, 40, 20):
            self.hold(0, (500, 600), ttl=ttl)
        self.do(0, "renew", id="r4", ttl=20)
        self.do(0, "renew", id="r2", ttl=30)
        self.assertEqual(self.do(30, "expired"), {"ok": True, "ids": ["r4", "r5", "r1", "r2", "r3"]})


class Capacity(Bookd):
    def test_a_longer_reservation_keeps_its_units(self):
        self.start(units={"desk": 1})
        self.hold(0, (0, 100))
        self.hold(0, (200, 300))
        self.do(0, "cancel", id="r2")
        self.hold(0, (110, 120))
        self.do(0, "cancel", id="r3")
        self.assertTrue(self.do(1, "resize", id="r1", to=500)["ok"])
        self.assertEqual(self.hold(2, (300, 400)), self.conflict("r1"))

    def test_a_longer_reservation_is_found_behind_later_ones(self):
        self.start(units={"desk": 2, "room": 1})
        self.hold(0, (0, 100), units={"desk": 1, "room": 1})
        self.hold(0, (50, 60))
        self.do(1, "resize", id="r1", to=500)
        self.assertEqual([r["id"] for r in self.do(1, "list", resource="desk", from_=200, to=300)["reservations"]], ["r1"])
        self.assertEqual(self.do(1, "free", resource="room", from_=400, to=600), {"ok": True, "free": [[400, 500, 0], [500, 600, 1]]})

    def test_a_shorter_reservation_frees_the_rest(self):
        self.start(units={"desk": 1})
        self.hold(0, (0, 100))
        self.do(1, "resize", id="r1", to=40)
        self.assertTrue(self.hold(1, (40, 100))["ok"])
        self.assertEqual(self.do(1, "resize", id="r1", to=41), self.conflict("r2"))

    def test_only_the_peak_counts(self):
        self.start(units={"desk": 3})
        self.hold(0, (0, 50), units={"desk": 2})
        self.hold(0, (50, 90), units={"desk": 2})
        self.assertTrue(self.hold(0, (0, 90), units={"desk": 1})["ok"])
        self.assertEqual(self.hold(0, (49, 51), units={"desk": 1}), self.conflict("r1", "r2", "r3"))

    def test_a_refused_move_changes_nothing(self):
        self.start(units={"desk": 1})
        self.hold(0, (0, 100))
        self.hold(0, (200, 300))
        self.assertEqual(self.do(0, "move", id="r1", from_=150, to=201), self.conflict("r2"))
        self.assertEqual(self.hold(0, (50, 60)), self.conflict("r1"))
        self.assertTrue(self.do(0, "move", id="r1", from_=50, to=200)["ok"])

    def test_obstacles_of_several_resources_are_named_once_in_order(self):
        self.start(units={"a": 1, "b": 1, "c": 5, "d": 1})
        self.hold(0, (20, 30), units={"d": 1})
        self.hold(0, (0, 30), units={"a": 1, "c": 1})
        self.hold(0, (0, 10), units={"b": 1})
        self.hold(0, (10, 20), units={"b": 1})
        self.hold(0, (0, 30), units={"c": 1})
        answer = self.hold(0, (5, 25), units={"a": 1, "b": 1, "c": 1, "d": 1})
        self.assertEqual(answer, self.conflict("r1", "r2", "r3", "r4"))


class Archive(Bookd):
    def test_a_reservation_is_archived_an_hour_after_its_end(self):
        self.start(units={"desk": 1})
        self.hold(0, (0, 100))
        self.do(0, "confirm", id="r1")
        self.assertTrue(self.do(3699, "get", id="r1")["ok"])
        self.assertEqual(self.do(3700, "get", id="r1"), self.refused("unknown"))

    def test_the_new_end_counts_after_a_change(self):
        self.start(units={"desk": 5})
        for end in (100, 200, 300):
            self.hold(0, (0, end))
        self.do(0, "resize", id="r1", to=1000)
        self.do(0, "move", id="r3", from_=0, to=50)
        self.do(0, "resize", id="r2", to=60)
        self.assertEqual(self.do(3655, "get", id="r3"), self.refused("unknown"))
        self.assertTrue(self.do(3655, "get", id="r2")["ok"])
        self.assertEqual(self.do(3660, "get", id="r2"), self.refused("unknown"))
        self.assertTrue(self.do(4599, "get", id="r1")["ok"])
        self.assertEqual(self.do(4600, "cancel", id="r1"), self.refused("unknown"))


class Retries(Bookd):
    def test_a_retry_gets_the_first_answer_whatever_happened_since(self):
        self.start(units={"desk": 1})
        self.hold(0, (500, 600), key="h")
        first = self.text
        self.do(1, "renew", id="r1", ttl=300)
        self.hold(2, (500, 600), key="h")
        self.assertEqual(self.text, first)
        self.do(3, "confirm", id="r1", key="x")
        confirmed = self.text
        self.do(4, "resize", id="r1", to=550)
        self.do(5, "cancel", id="r1")
        self.do(6, "confirm", id="r1", key="x")
        self.assertEqual(self.text, confirmed)
        self.hold(7, (500, 600), key="h")
        self.assertEqual(self.text, first)

    def test_a_retry_of_a_refused_request_is_refused_again(self):
        self.start(units={"desk": 1})
        self.hold(0, (0, 10))
        self.assertEqual(self.hold(1, (0, 10), key="h"), self.conflict("r1"))
        self.do(2, "cancel", id="r1")
        self.assertEqual(self.hold(3, (0, 10), key="h"), self.conflict("r1"))

    def test_a_retry_prolongs_the_time_of_its_answer_only(self):
        self.start(units={"desk": 9})
        self.hold(0, (0, 10), key="a")
        self.hold(1, (0, 20), key="b")
        self.hold(500, (0, 10), key="a")
        self.assertEqual(self.hold(600, (0, 20), key="b")["reservation"]["id"], "r2")
        self.assertEqual(self.hold(1099, (0, 10), key="a")["reservation"]["id"], "r1")
        self.assertEqual(self.hold(1200, (0, 20), key="b")["reservation"]["id"], "r3")

    def test_a_key_can_be_used_for_something_else_when_its_time_is_over(self):
        self.start(units={"desk": 9})
        self.hold(0, (0, 10), key="a")
        self.hold(5, (0, 20), key="b")
        self.hold(550, (0, 10), key="a")
        self.assertEqual(self.hold(604, (1, 20), key="b"), self.refused("key_reused"))
        self.assertEqual(self.hold(605, (1, 20), key="b")["reservation"]["id"], "r3")

    def test_keys_of_different_clients_are_apart(self):
        self.start(units={"desk": 9})
        self.hold(0, (0, 10), client="acme", key="eu/1")
        self.assertEqual(self.hold(0, (0, 20), client="acme/eu", key="1")["reservation"]["id"], "r2")
        self.hold(0, (0, 30), client="a\x00b", key="c")
        self.assertEqual(self.hold(0, (0, 30), client="a", key="b\x00c")["reservation"]["id"], "r4")


class Journal(Bookd):
    def test_the_journal_of_the_incident_is_accepted(self):
        text = self.read("docs/incidents/lisbon.jsonl")
        self.start("-journal", "docs/incidents/lisbon.jsonl")
        answers = [json.loads(line) for line in text.splitlines()]
        again = answers[1]["request"]
        self.bookd.send(json.dumps({**again, "at": 400}))
        self.assertEqual(json.loads(self.bookd.line()), answers[1]["answer"])
        self.assertEqual(self.do(400, "expired"), {"ok": True, "ids": ["r1", "r3", "r5"]})

    def test_everything_survives_a_restart(self):
        self.start("-journal", "j", units={"desk": 1})
        self.hold(0, (500, 600), ttl=100, key="h")
        first = self.text
        self.do(1, "renew", id="r1", ttl=50)
        self.hold(2, (500, 550), key="no")
        self.do(40, "list", resource="desk", from_=0, to=900)
        self.do(45, "confirm", id="r1")
        self.do(46, "resize", id="r1", to=900)
        self.hold(400, (500, 600), ttl=100, key="h")
        self.assertEqual(self.bookd.wait().status, 0)
        before = self.read("j")
        self.start("-journal", "j")
        self.hold(999, (500, 600), ttl=100, key="h")
        self.assertEqual(self.text, first)
        self.assertEqual(self.hold(999, (800, 810)), self.conflict("r1"))
        self.assertTrue(self.hold(999, (500, 550), key="no", client="d")["error"])
        self.assertEqual(self.bookd.wait().status, 0)
        self.assertTrue(self.read("j").startswith(before))

    def test_a_journal_with_a_wrong_answer_is_refused(self):
        self.start("-journal", "j", units={"desk": 1})
        self.hold(0, (0, 10))
        self.bookd.wait()
        self.write("j", self.read("j").replace('"id":"r1"', '"id":"r7"'))
        done = self.program("bookd", "-journal", "j")
        self.assertEqual(done.status, 1, done)
        self.assertIn("journal line 2: answer differs", done.stderr)


class Random(Bookd):
    """Compares answers with those of the model."""

    def requests(self, seed, count, hold=("hold",)):
        random_ = random.Random(seed)
        resources = ["desk", "room", "van"]
        yield from ({"at": 0, "op": "define", "resource": r, "count": n} for r, n in zip(resources, (3, 1, 2)))
        at, holds, earlier = 0, 0, []
        for i in range(count):
            at += random_.choice((0, 0, 1, 2, 5, 9, 30))
            start = at + random_.randrange(-20, 60)
            if random_.random() < 0.02:
                at += random_.choice((200, 601, 3500))
            span = {"from": max(0, start), "to": max(0, start) + random_.randrange(1, 40)}
            op = random_.choice(hold * 6 + ("renew", "renew", "confirm", "resize", "resize", "move", "cancel", *(("waiting",) if "wait" in hold else ()), "list", "free", "expired", "get", "again", "again"))
            name = f"r{max(1, holds - random_.randrange(0, 12))}"
            if op == "waiting":
                yield {"at": at, "op": op, "resource": random_.choice(resources)}
                continue
            if op in ("list", "free"):
                yield {"at": at, "op": op, "resource": random_.choice(resources), **span}
                continue
            if op in ("expired", "get"):
                yield {"at": at, "op": op, **({"id": name} if op == "get" else {})}
                continue
            if op == "again":
                if earlier:
                    request = random_.choice(earlier[-40:])
                    if random_.random() < 0.1:
                        request = {**request, "op": "cancel", "id": name}
                        for field in ("units", "from", "to", "ttl"):
                            request.pop(field, None)
                    yield {**request, "at": at}
                continue
            request = {"at": at, "op": op, "client": "c", "key": f"k{i}"}
            if op in ("hold", "wait"):
                holds += 1
                units = {r: 1 if r == "room" else random_.randrange(1, 3) for r in random_.sample(resources, random_.choice((1, 1, 2, 3)))}
                request.update(units=units, ttl=random_.randrange(1, 120), **span)
            else:
                request["id"] = name
                request.update({"renew": {"ttl": random_.randrange(1, 150)}, "resize": {"to": span["to"]}, "move": span}.get(op, {}))
            earlier.append(request)
            yield request

    def check(self, seed, hold=("hold",)):
        requests = list(self.requests(seed, 400, hold))
        model = Model()
        done = self.program("bookd", "-journal", f"j{seed}", stdin="".join(json.dumps(r) + "\n" for r in requests))
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), len(requests), done)
        for number, (request, line) in enumerate(zip(requests, lines)):
            self.assertEqual(json.loads(line), json.loads(json.dumps(model.do(request))), f"request {number}: {request}")
        restarted = self.program("bookd", "-journal", f"j{seed}")
        self.assertEqual(restarted.status, 0, restarted)

    def test_long_histories_follow_the_rules(self):
        for seed in (1, 2, 3, 4):
            with self.subTest(seed=seed):
                self.check(seed)

    def test_long_histories_with_waiting_follow_the_rules(self):
        for seed in (11, 12, 13, 14, 15, 16):
            with self.subTest(seed=seed):
                self.check(seed, ("hold", "wait", "wait"))


class Waiting(Bookd):
    def test_a_reservation_waits_only_for_a_conflict(self):
        self.start(units={"desk": 1})
        self.assertEqual(self.wait(0, (500, 600), ttl=9)["reservation"]["state"], "held")
        answer = self.wait(1, (550, 700), ttl=9)["reservation"]
        self.assertEqual(answer, {"id": "r2", "client": "c", "state": "waiting", "units": {"desk": 1}, "from": 550, "to": 700})
        self.assertEqual(self.do(1, "waiting", resource="desk"), {"ok": True, "ids": ["r2"]})
        self.assertEqual(self.do(1, "waiting", resource="room"), self.refused("unknown"))
        self.assertEqual([r["id"] for r in self.do(1, "list", resource="desk", from_=0, to=900)["reservations"]], ["r1"])
        self.assertEqual(self.do(1, "free", resource="desk", from_=590, to=610)["free"], [[590, 600, 0], [600, 610, 1]])
        self.assertEqual(self.hold(2, (690, 800))["reservation"]["id"], "r3")

    def test_nothing_waits_for_the_past(self):
        self.start(units={"desk": 1})
        self.hold(0, (0, 600))
        self.assertEqual(self.wait(5, (5, 50)), self.conflict("r1"))
        self.assertEqual(self.wait(5, (6, 50))["reservation"]["state"], "waiting")

    def test_the_time_of_a_promotion_is_that_of_the_expiry(self):
        self.start(units={"desk": 1})
        self.hold(0, (500, 600), ttl=50)
        self.wait(0, (500, 600), ttl=100)
        self.assertEqual(self.state(120, "r2"), ("held", 150))

    def test_promotions_follow_each_other_between_two_requests(self):
        self.start(units={"desk": 1})
        self.hold(0, (5000, 6000), ttl=50)
        self.wait(0, (5000, 6000), ttl=100)
        self.wait(0, (5500, 6000), ttl=30)
        self.wait(0, (5000, 5500), ttl=70)
        self.wait(0, (5000, 6000), ttl=1000)
        self.assertEqual(self.do(400, "expired"), {"ok": True, "ids": ["r1", "r2", "r3", "r4"]})
        self.assertEqual([self.state(400, name) for name in ("r3", "r4", "r5")], [("expired", 180), ("expired", 220), ("held", 1220)])

    def test_one_that_does_not_fit_lets_others_pass(self):
        self.start(units={"desk": 2, "room": 1})
        self.hold(0, (500, 600), units={"desk": 1, "room": 1})
        self.hold(0, (500, 600))
        self.wait(0, (500, 600), units={"desk": 2})
        self.wait(0, (500, 600), units={"room": 1, "desk": 1}, ttl=7)
        self.wait(0, (500, 600))
        self.do(10, "cancel", id="r1")
        self.assertEqual([self.state(10, name) for name in ("r3", "r4", "r5")], [("waiting", None), ("held", 17), ("waiting", None)])
        self.assertEqual(self.state(20, "r5"), ("held", 17 + 10**6))

    def test_those_that_expire_together_free_their_units_together(self):
        self.start(units={"desk": 2})
        self.hold(0, (500, 600), ttl=50)
        self.hold(0, (500, 600), ttl=50)
        self.wait(0, (500, 600), units={"desk": 2})
        self.wait(0, (500, 600))
        self.assertEqual(self.state(50, "r3")[0], "held")
        self.assertEqual(self.state(50, "r4")[0], "waiting")

    def test_a_change_of_an_interval_frees_units(self):
        self.start(units={"desk": 1})
        self.hold(0, (100, 300))
        self.wait(0, (250, 280), ttl=40)
        self.wait(0, (100, 150), ttl=40)
        answer = self.do(3, "resize", id="r1", to=200)
        self.assertEqual(answer["reservation"]["to"], 200)
        self.assertEqual([self.state(3, name) for name in ("r2", "r3")], [("held", 43), ("waiting", None)])
        self.do(4, "move", id="r1", from_=150, to=250)
        self.assertEqual(self.state(4, "r3"), ("held", 44))

    def test_waiting_ends_at_the_start_of_the_interval(self):
        self.start(units={"desk": 1})
        self.hold(0, (0, 600), ttl=80)
        self.wait(0, (80, 90))
        self.wait(0, (81, 90), ttl=5)
        self.wait(0, (40, 90))
        self.assertEqual(self.do(100, "expired"), {"ok": True, "ids": ["r4", "r1", "r2", "r3"]})
        self.assertEqual([self.state(100, name)[1] for name in ("r4", "r2", "r3")], [40, 80, 85])
        self.assertEqual(self.do(100, "cancel", id="r2"), self.refused("gone"))
        self.assertEqual(self.do(3690, "get", id="r2"), self.refused("unknown"))

    def test_operations_with_a_waiting_reservation(self):
        self.start(units={"desk": 1})
        self.hold(0, (500, 600))
        self.wait(0, (500, 600), ttl=50)
        self.assertEqual(self.do(1, "confirm", id="r2"), self.refused("waiting"))
        self.assertEqual(self.do(1, "renew", id="r2", ttl=0), self.refused("bad_request"))
        self.assertEqual(self.do(1, "renew", id="r2", ttl=70)["reservation"]["state"], "waiting")
        self.assertEqual(self.do(2, "move", id="r2", from_=2, to=501), self.conflict("r1"))
        self.assertEqual(self.do(2, "move", id="r2", from_=3, to=501)["reservation"]["state"], "waiting")
        self.assertEqual(self.state(2, "r2"), ("waiting", None))
        self.assertEqual(self.do(2, "resize", id="r2", to=500)["reservation"]["expires"], 72)
        self.do(2, "cancel", id="r2")
        self.wait(2, (500, 600))
        self.assertEqual(self.do(3, "cancel", id="r3")["reservation"]["state"], "canceled")
        self.do(4, "cancel", id="r1")
        self.assertEqual(self.state(4, "r3"), ("canceled", None))
        self.assertEqual(self.do(900, "waiting", resource="desk"), {"ok": True})

    def test_a_moved_reservation_waits_until_its_new_start(self):
        self.start(units={"desk": 1})
        self.hold(0, (50, 900))
        self.wait(0, (60, 70))
        self.do(0, "move", id="r2", from_=700, to=800)
        self.assertEqual(self.state(699, "r2"), ("waiting", None))
        self.assertEqual(self.state(700, "r2"), ("expired", 700))

    def test_a_retry_gets_the_first_answer_after_the_promotion(self):
        self.start(units={"desk": 1})
        self.hold(0, (500, 600), ttl=5)
        self.wait(0, (500, 600), key="w")
        first = self.text
        self.assertEqual(self.state(9, "r2")[0], "held")
        self.wait(10, (500, 600), key="w")
        self.assertEqual(self.text, first)
        self.assertEqual(self.hold(10, (500, 600), key="w"), self.refused("key_reused"))

    def test_questions_make_no_difference_to_the_journal(self):
        self.start("-journal", "j", units={"desk": 1})
        self.hold(0, (5000, 6000), ttl=50)
        self.wait(0, (5000, 6000), ttl=100)
        self.do(77, "expired")
        self.wait(90, (5000, 6000), ttl=100)
        self.do(200, "renew", id="r3", ttl=30)
        self.assertEqual(self.bookd.wait().status, 0)
        self.start("-journal", "j")
        self.assertEqual(self.state(200, "r3"), ("held", 230))

    def test_many_wait_for_something_else(self):
        count = 4000
        requests = [{"at": 0, "op": "define", "resource": name, "count": 1} for name in ("desk", "room")]
        change = {"client": "c"}
        requests.append({"at": 0, "op": "hold", "key": "a", "units": {"room": 1}, "from": 100, "to": 10**6, "ttl": 10**6, **change})
        requests.append({"at": 0, "op": "hold", "key": "b", "units": {"desk": 1}, "from": 10**5, "to": 10**6, "ttl": 10**6, **change})
        for i in range(count):
            units, start = ({"room": 1}, 200 + i) if i % 2 else ({"desk": 1, "room": 1}, 10**5 + i)
            requests.append({"at": 0, "op": "wait", "key": f"w{i}", "units": units, "from": start, "to": start + 50, "ttl": 5, **change})
        for i in range(count):
            requests.append({"at": 0, "op": "hold", "key": f"h{i}", "units": {"desk": 1}, "from": 500, "to": 600, "ttl": 5, **change})
            requests.append({"at": 0, "op": "cancel", "key": f"c{i}", "id": f"r{3 + count + i}", **change})
        done = self.program("bookd", stdin="".join(json.dumps(r) + "\n" for r in requests))
        self.assertEqual(done.stdout.count('"ok":true'), len(requests))
