import lab

REPLAY = """\
25\tdefault\tprices/eu\t25ms\tprices/eu@c1
25\tdefault\tprices/eu\t22ms\tprices/eu@c1
25\tdefault\tprices/us\t25ms\tprices/us@c2
45\tdefault\tstock/1\t41ms\tstock/1@c1
45\tdefault\tstock/1\t21ms\tstock/1@c1
45\tdefault\tstock/2\t39ms\tstock/2@c2
65\tdefault\tstock/3\t35ms\tstock/3@c1
110\tdefault\tprices/eu\t20ms\tprices/eu@c1
requests=8 ok=8 failed=0 end=110ms
"""


class Base(lab.Case):
    def start(self, op, **arguments):
        """Starts a driver and makes an object in it."""
        self.relay = self.driver("node", "tools/driver.js")
        self.do(op, **arguments)

    def do(self, op, **arguments):
        """Runs an operation and returns what happened, sorted."""
        return sorted(self.relay.call(op, **arguments)["events"])

    def value(self, op, **arguments):
        return self.relay.call(op, **arguments)["value"]

    def stats(self, **expected):
        stats = self.value("stats")
        zero = {"connecting": 0, "idle": 0, "leased": 0, "closing": 0, "waiting": 0}
        self.assertEqual({name: stats.get(name) for name in zero}, {**zero, **expected})

    def no_leftovers(self, *signals):
        self.assertEqual(self.value("timers"), 0)
        for signal in signals:
            self.assertEqual(self.value("listeners", signal=signal), 0, signal)


class PoolBase(Base):
    def pool(self, auto=None, **options):
        self.start("pool", options=options, auto={"connect": True, "close": True} if auto is None else auto)

    def served(self, first, count):
        """Releases leases one after the other; returns who got the connection, in order."""
        order = []
        name = first
        for _ in range(count):
            (event,) = self.do("release", name=name)
            name, _, _ = event.partition(" got ")
            order.append(name)
        return order


class Fairness(PoolBase):
    def queue(self, *names):
        for name in names:
            self.assertEqual(self.do("acquire", name=name, tenant=name[0]), [])

    def test_tenants_take_turns_by_weight(self):
        self.pool(maxConnections=1, weights={"a": 2})
        self.do("acquire", name="x", tenant="x")
        self.queue("a1", "a2", "a3", "a4", "a5", "b1", "b2", "b3")
        self.assertEqual(self.served("x", 8), ["a1", "a2", "b1", "a3", "a4", "b2", "a5", "b3"])

    def test_tenant_that_left_the_ring_begins_a_new_turn_at_the_end(self):
        self.pool(maxConnections=1, weights={"a": 2})
        self.do("acquire", name="x", tenant="x")
        self.do("acquire", name="a1", tenant="a")
        self.do("acquire", name="a2", tenant="a", signal="s")
        self.queue("b1", "b2")
        self.assertEqual(self.served("x", 1), ["a1"])
        self.assertEqual(self.do("abort", signal="s", reason="no"), ["a2 failed: no"])
        self.queue("a3", "a4", "a5")
        self.assertEqual(self.served("a1", 5), ["b1", "a3", "a4", "b2", "a5"])
        self.pool(maxConnections=1, weights={"a": 2})
        self.do("acquire", name="x", tenant="x")
        self.queue("a1", "b1", "b2")
        self.assertEqual(self.served("x", 1), ["a1"])
        self.queue("a2", "a3", "a4")
        self.assertEqual(self.served("a1", 5), ["b1", "a2", "a3", "b2", "a4"])

    def test_tenant_at_its_limit_is_passed_over_and_keeps_its_place(self):
        self.pool(maxConnections=2, maxPerTenant=1)
        self.do("acquire", name="a0", tenant="a")
        self.do("acquire", name="x", tenant="x")
        self.queue("a1", "b1", "c1", "a2")
        self.assertEqual(self.served("x", 1), ["b1"])
        # a is the first in the ring still.
        self.assertEqual(self.served("a0", 1), ["a1"])
        self.assertEqual(self.served("b1", 1), ["c1"])
        self.assertEqual(self.do("release", name="c1"), [])
        self.assertEqual(self.do("release", name="a1"), ["a2 got c1"])

    def test_tenant_that_is_passed_over_keeps_its_count(self):
        self.pool(maxConnections=3, maxPerTenant=2, weights={"a": 2})
        for name in ("a8", "x1", "x2"):
            self.do("acquire", name=name, tenant=name[0])
        self.queue("a1", "a2", "a3", "b1", "b2", "b3")
        self.assertEqual(self.served("x1", 1), ["a1"])
        # a has two leases now and has used one grant of its turn.
        self.assertEqual(self.served("x2", 1), ["b1"])
        self.assertEqual(self.served("a1", 1), ["a2"])
        # The turn of a is over: b is next.
        self.assertEqual(self.served("a8", 1), ["b2"])
        self.assertEqual(self.served("b1", 1), ["a3"])


class Waiting(PoolBase):
    def test_abort_rejects_with_the_reason_and_leaves_nothing(self):
        self.pool(maxConnections=1)
        self.do("acquire", name="a")
        self.do("acquire", name="b", signal="s", timeoutMs=50)
        self.assertEqual(self.do("abort", signal="s", reason="gone"), ["b failed: gone"])
        self.stats(leased=1)
        self.no_leftovers("s")
        self.do("release", name="a")
        self.stats(idle=1)
        self.pool()
        self.do("abort", signal="s", reason="gone")
        self.assertEqual(self.do("acquire", name="a", signal="s"), ["a failed: gone"])
        self.stats()

    def test_timeout_counts_from_the_call_and_ends_with_the_grant(self):
        self.pool(maxConnections=1)
        self.do("acquire", name="a")
        self.do("acquire", name="b", timeoutMs=10, signal="s")
        self.assertEqual(self.do("release", name="a"), ["b got c1"])
        self.no_leftovers("s")
        self.assertEqual(self.do("advance", ms=20), [])
        self.assertEqual(self.do("abort", signal="s", reason="late"), [])
        self.stats(leased=1)
        self.pool(maxConnections=1)
        self.do("acquire", name="a")
        self.do("advance", ms=7)
        self.do("acquire", name="b", timeoutMs=10, signal="s")
        self.assertEqual(self.do("advance", ms=9), [])
        self.assertEqual(self.do("advance", ms=1), ["b failed: AcquireTimeoutError"])
        self.no_leftovers("s")

    def test_request_that_is_refused_at_once_leaves_nothing(self):
        self.pool(maxConnections=1, maxWaiting=1)
        self.do("acquire", name="a")
        self.do("acquire", name="b", signal="s")
        self.assertEqual(self.do("acquire", name="c", signal="t", timeoutMs=9), ["c failed: QueueFullError"])
        self.no_leftovers("t")
        self.do("abort", signal="s", reason="no")
        self.assertEqual(self.do("acquire", name="d"), [])
        self.assertEqual(self.do("release", name="a"), ["d got c1"])
        self.pool(auto={}, maxConnections=2, maxWaiting=0)
        self.assertEqual(self.do("acquire", name="a"), ["a failed: QueueFullError"])
        self.stats()
        self.pool(maxConnections=2)
        self.assertEqual(self.do("acquire", name="a", timeoutMs=0), ["a failed: AcquireTimeoutError"])
        self.stats()
        self.do("acquire", name="b")
        self.do("release", name="b")
        self.assertEqual(self.do("acquire", name="c", timeoutMs=0), ["c got c1"])


class Connects(PoolBase):
    def test_connects_follow_the_demand(self):
        self.pool(auto={"close": True}, maxConnections=5, maxPerTenant=2)
        self.assertEqual(self.do("acquire", name="a1", tenant="a"), ["connect c1"])
        self.assertEqual(self.do("acquire", name="a2", tenant="a"), ["connect c2"])
        self.assertEqual(self.do("acquire", name="a3", tenant="a"), [])
        self.assertEqual(self.do("acquire", name="b1", tenant="b"), ["connect c3"])
        self.stats(connecting=3, waiting=4)

    def test_connection_isnt_tied_to_the_request_that_left(self):
        self.pool(auto={}, maxConnections=2)
        self.do("acquire", name="a", signal="s")
        self.assertEqual(self.do("abort", signal="s", reason="no"), ["a failed: no"])
        self.assertEqual(self.do("acquire", name="b"), [])
        self.assertEqual(self.do("connected", id="c1"), ["b got c1"])
        self.pool(auto={}, maxConnections=2)
        self.do("acquire", name="a", signal="s")
        self.do("abort", signal="s", reason="no")
        self.assertEqual(self.do("connected", id="c1"), [])
        self.stats(idle=1)

    def test_failed_connect_fails_one_request_and_the_pool_connects_again(self):
        self.pool(auto={}, maxConnections=1)
        self.do("acquire", name="a1", tenant="a")
        self.do("acquire", name="a2", tenant="a")
        self.do("acquire", name="b1", tenant="b")
        self.assertEqual(self.do("refuse", id="c1"), ["a1 failed: ConnectError(refused)", "connect c2"])
        # The failure was a grant of the turn of a.
        self.assertEqual(self.do("connected", id="c2"), ["b1 got c2"])
        self.stats(leased=1, waiting=1)
        self.pool(auto={}, maxConnections=1)
        self.do("acquire", name="a", signal="s")
        self.do("abort", signal="s", reason="no")
        self.assertEqual(self.do("refuse", id="c1"), [])
        self.stats()
        self.assertEqual(self.do("acquire", name="b"), ["connect c2"])

    def test_connect_timeout_abandons_the_connect(self):
        self.pool(auto={}, maxConnections=1, connectTimeoutMs=30)
        self.do("acquire", name="a")
        self.do("acquire", name="b")
        self.do("advance", ms=29)
        happened = self.do("advance", ms=1)
        self.assertEqual(happened, ["a failed: ConnectError(ConnectTimeoutError)", "connect c1 aborted", "connect c2"])
        # It comes too late: it is closed, and isn't counted.
        self.assertEqual(self.do("connected", id="c1"), ["close c1"])
        self.stats(connecting=1, waiting=1)
        self.assertEqual(self.do("connected", id="c2"), ["b got c2"])
        self.no_leftovers()
        self.pool(auto={}, maxConnections=1, connectTimeoutMs=30)
        self.do("acquire", name="a")
        self.do("acquire", name="b")
        self.do("advance", ms=30)
        self.assertEqual(self.do("refuse", id="c1"), [])
        self.stats(connecting=1, waiting=1)

    def test_connection_that_closes_keeps_its_place_until_it_is_closed(self):
        self.pool(auto={"connect": True}, maxConnections=1)
        self.do("acquire", name="a")
        self.do("acquire", name="b")
        self.assertEqual(self.do("release", name="a", discard=True), ["close c1"])
        self.stats(closing=1, waiting=1)
        self.assertEqual(self.do("closed", id="c1"), ["b got c2", "connect c2"])
        self.pool(auto={"connect": True}, maxConnections=1)
        self.do("acquire", name="a")
        self.do("acquire", name="b")
        self.do("release", name="a", discard=True)
        self.assertEqual(self.do("close_failed", id="c1"), ["b got c2", "connect c2"])
        self.do("auto", auto={"connect": True, "closeThrows": True})
        self.do("acquire", name="c")
        self.assertEqual(self.do("release", name="b", discard=True), ["c got c3", "close c2", "connect c3"])

    def test_idle_connections_are_closed_after_uninterrupted_idleness(self):
        self.pool(maxConnections=2, idleTimeoutMs=100)
        self.do("acquire", name="a")
        self.do("acquire", name="b")
        self.do("release", name="a")
        self.do("advance", ms=60)
        self.do("release", name="b")
        # The last one that became idle is used first.
        self.assertEqual(self.do("acquire", name="c"), ["c got c2"])
        self.assertEqual(self.do("advance", ms=40), ["close c1"])
        self.do("release", name="c")
        self.assertEqual(self.do("advance", ms=99), [])
        self.assertEqual(self.do("advance", ms=1), ["close c2"])
        self.no_leftovers()


class Drain(PoolBase):
    def test_waiting_requests_are_served_and_new_ones_refused(self):
        self.pool(maxConnections=1)
        self.do("acquire", name="a")
        self.do("acquire", name="b")
        self.assertEqual(self.do("drain", name="d"), [])
        self.assertEqual(self.do("acquire", name="c"), ["c failed: PoolClosedError"])
        self.assertEqual(self.do("release", name="a"), ["b got c1"])
        self.assertEqual(self.do("release", name="b"), ["close c1", "d drained, forced 0"])
        self.stats()

    def test_drain_waits_for_connections_to_close(self):
        self.pool(auto={"connect": True}, maxConnections=2, idleTimeoutMs=50)
        self.do("acquire", name="a")
        self.do("release", name="a")
        self.assertEqual(self.do("drain", name="d", timeoutMs=500), ["close c1"])
        self.stats(closing=1)
        self.assertEqual(self.do("closed", id="c1"), ["d drained, forced 0"])
        self.no_leftovers()
        self.pool()
        self.assertEqual(self.do("drain", name="d", timeoutMs=500), ["d drained, forced 0"])
        self.no_leftovers()

    def test_drain_ends_when_the_last_waiting_request_leaves(self):
        self.pool(auto={"close": True}, maxConnections=2, maxPerTenant=1)
        self.do("acquire", name="a", tenant="a", signal="s")
        self.do("acquire", name="b", tenant="b", timeoutMs=20)
        self.do("drain", name="d")
        self.assertEqual(self.do("abort", signal="s", reason="no"), ["a failed: no"])
        self.assertEqual(
            self.do("advance", ms=20),
            ["b failed: AcquireTimeoutError", "connect c1 aborted", "connect c2 aborted", "d drained, forced 0"],
        )
        self.assertEqual(self.do("connected", id="c1"), ["close c1"])
        self.assertEqual(self.do("refuse", id="c2"), [])

    def test_deadline_revokes_leases_and_refuses_waiting_requests(self):
        self.pool(auto={"connect": True}, maxConnections=1)
        self.do("acquire", name="a")
        self.do("acquire", name="b", signal="s", timeoutMs=1000)
        self.do("drain", name="d", timeoutMs=100)
        self.assertEqual(self.do("advance", ms=99), [])
        happened = self.do("advance", ms=1)
        self.assertEqual(happened, ["a revoked: PoolClosedError", "b failed: PoolClosedError", "close c1"])
        self.assertEqual(self.do("release", name="a"), [])
        self.stats(closing=1)
        self.assertEqual(self.do("closed", id="c1"), ["d drained, forced 1"])
        self.no_leftovers("s")

    def test_lease_released_in_reaction_to_a_revocation_is_not_revoked(self):
        self.pool(maxConnections=3)
        self.do("acquire", name="a", releases="b")
        self.do("acquire", name="b", releases="a")
        happened = self.do("drain", name="d", timeoutMs=0)
        self.assertEqual(len([event for event in happened if event.endswith("revoked: PoolClosedError")]), 1, happened)
        self.assertEqual([event for event in happened if event.startswith("close")], ["close c1", "close c2"])
        self.assertIn("d drained, forced 1", happened)
        self.stats()

    def test_later_drain_can_only_bring_the_deadline_forward(self):
        self.pool(maxConnections=1)
        self.do("acquire", name="a")
        self.do("drain", name="d")
        self.do("drain", name="e", timeoutMs=100)
        self.do("advance", ms=10)
        self.do("drain", name="f", timeoutMs=300)
        self.do("drain", name="g", timeoutMs=50)
        self.do("drain", name="h")
        self.assertEqual(self.do("advance", ms=49), [])
        happened = self.do("advance", ms=1)
        self.assertEqual(
            happened,
            ["a revoked: PoolClosedError", "close c1"] + [f"{name} drained, forced 1" for name in "defgh"],
        )
        self.no_leftovers()


class Coalescing(Base):
    def setUp(self):
        self.start("coalescer")

    def test_callers_share_a_flight_and_no_outcome_is_kept(self):
        self.assertEqual(self.do("get", name="a", key="k", tenant="t1"), ["load 1 k for t1"])
        self.assertEqual(self.do("get", name="b", key="k", tenant="t2"), [])
        self.assertEqual(self.do("loaded", number=1, value="v"), ["a got v", "b got v"])
        self.assertEqual(self.value("size"), 0)
        self.assertEqual(self.do("get", name="c", key="k"), ["load 2 k for default"])

    def test_caller_that_leaves_doesnt_disturb_others(self):
        self.do("get", name="a", key="k", signal="s")
        self.do("get", name="b", key="k", timeoutMs=30)
        self.do("get", name="c", key="k")
        self.assertEqual(self.do("abort", signal="s", reason="no"), ["a failed: no"])
        self.assertEqual(self.do("advance", ms=30), ["b failed: RequestTimeoutError"])
        self.assertEqual(self.do("loaded", number=1, value="v"), ["c got v"])
        self.do("get", name="a", key="k", signal="z", timeoutMs=30)
        self.do("get", name="b", key="k", signal="z", timeoutMs=40)
        self.assertEqual(self.do("load_failed", number=2, message="broken"), ["a failed: broken", "b failed: broken"])
        self.no_leftovers("z")
        self.start("coalescer")
        self.do("abort", signal="s", reason="no")
        self.assertEqual(self.do("get", name="a", key="k", signal="s"), ["a failed: no"])
        self.do("get", name="b", key="k", signal="t")
        self.assertEqual(self.do("get", name="c", key="k", signal="s"), ["c failed: no"])
        self.assertEqual(self.do("abort", signal="t", reason="end"), ["b failed: end", "load 1 aborted: end"])

    def test_last_caller_aborts_the_flight_with_its_reason(self):
        self.do("get", name="a", key="k", signal="s")
        self.do("get", name="b", key="k", timeoutMs=30)
        self.do("abort", signal="s", reason="no")
        self.assertEqual(
            self.do("advance", ms=30), ["b failed: RequestTimeoutError", "load 1 aborted: RequestTimeoutError"]
        )
        self.assertEqual(self.value("size"), 0)
        self.assertEqual(self.do("load_failed", number=1, message="late"), [])

    def test_new_caller_in_the_same_tick_starts_a_new_flight(self):
        self.do("get", name="a", key="k", signal="s")
        happened = self.do(
            "batch", steps=[{"op": "abort", "signal": "s", "reason": "no"}, {"op": "get", "name": "b", "key": "k"}]
        )
        self.assertEqual(happened, ["a failed: no", "load 1 aborted: no", "load 2 k for default"])
        # The end of the first flight must not remove the second one.
        self.assertEqual(self.do("loaded", number=1, value="old"), [])
        self.assertEqual(self.do("get", name="c", key="k"), [])
        self.assertEqual(self.do("loaded", number=2, value="new"), ["b got new", "c got new"])

    def test_key_is_free_when_callers_continue(self):
        self.do("get_after", key="k", next="b")
        self.assertEqual(self.do("load_failed", number=1, message="broken"), ["load 2 k for default"])


class GatewayBehavior(Base):
    def gateway(self, **options):
        self.start("gateway", options=options, auto={"connect": True, "close": True})

    def test_failed_request_discards_the_connection_unless_reusable(self):
        self.gateway(maxConnections=1)
        self.do("fetch", name="a", key="k")
        self.assertEqual(self.do("answer_failed", key="k", message="broken"), ["a failed: broken", "close c1"])
        self.assertEqual(self.do("fetch", name="b", key="m"), ["connect c2", "request m on c2"])
        self.gateway(maxConnections=1)
        self.do("fetch", name="a", key="k")
        self.assertEqual(self.do("answer_failed", key="k", message="not found", reusable=True), ["a failed: not found"])
        self.assertEqual(self.do("fetch", name="b", key="m"), ["request m on c1"])

    def test_abort_while_waiting_leaves_the_queue(self):
        self.gateway(maxConnections=1)
        self.do("fetch", name="a", key="k")
        self.do("fetch", name="b", key="m", signal="s")
        self.stats(leased=1, waiting=1)
        self.assertEqual(self.do("abort", signal="s", reason="no"), ["b failed: no"])
        self.stats(leased=1)
        self.assertEqual(self.do("answer", key="k", value="v"), ["a got v"])
        self.stats(idle=1)

    def test_abort_between_grant_and_request_returns_the_connection_unused(self):
        self.gateway(maxConnections=1)
        self.do("fetch", name="a", key="k")
        self.do("answer", key="k", value="v")
        happened = self.do(
            "batch",
            steps=[
                {"op": "fetch", "name": "b", "key": "m", "signal": "s"},
                {"op": "abort", "signal": "s", "reason": "no"},
            ],
        )
        self.assertEqual(happened, ["b failed: no"])
        self.stats(idle=1)

    def test_abort_during_the_request_discards_without_waiting(self):
        self.gateway(maxConnections=1)
        self.do("fetch", name="a", key="k", timeoutMs=40)
        happened = self.do("advance", ms=40)
        self.assertEqual(happened, ["a failed: RequestTimeoutError", "close c1", "request k aborted: RequestTimeoutError"])
        self.stats()
        self.assertEqual(self.do("answer_failed", key="k", message="late"), [])

    def test_close_serves_flights_and_revokes_at_the_deadline(self):
        self.gateway(maxConnections=1)
        self.do("fetch", name="a", key="k")
        self.do("fetch", name="b", key="m")
        self.do("close", name="d", timeoutMs=100)
        self.assertEqual(self.do("fetch", name="c", key="n"), ["c failed: PoolClosedError"])
        self.assertEqual(self.do("answer", key="k", value="v"), ["a got v", "request m on c1"])
        happened = self.do("advance", ms=100)
        self.assertEqual(
            happened,
            ["b failed: PoolClosedError", "close c1", "d drained, forced 1", "request m aborted: PoolClosedError"],
        )
        self.assertEqual(self.do("answer", key="m", value="late"), [])


class Replay(lab.Case):
    def test_replay_of_the_trace_is_unchanged(self):
        done = self.program("node", "bin/replay.js", "traces/morning.json")
        self.assertEqual((done.status, done.stdout), (0, REPLAY), done)
