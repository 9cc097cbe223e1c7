import random

import lab


class Base(lab.Case):
    def run_commands(self, text):
        """Runs commands and returns the printed lines."""
        done = self.program("{build}/debug/matchbook", stdin="".join(line.strip() + "\n" for line in text.strip().splitlines()))
        self.assertEqual(done.status, 0, done)
        return done.stdout.splitlines()

    def check(self, text, expected):
        """Compares the printed lines, but for those about acceptance."""
        lines = [line for line in self.run_commands(text) if not line.startswith("accepted")]
        self.assertEqual(lines, [line.strip() for line in expected.strip().splitlines()])


class Basics(Base):
    def test_events_of_a_simple_session(self):
        lines = self.run_commands("new 1 ann sell 10 101\nnew 2 bob buy 4 105\ncancel 1\ncancel 1\norder 1\norder 2\norder 9\nbook")
        self.assertEqual(
            lines,
            [
                "accepted 1",
                "accepted 2",
                "trade 1 2 101 4",
                "canceled 1 6 request",
                "rejected 1 unknown",
                "order 1 canceled 10 4 6",
                "order 2 filled 4 4 0",
                "rejected 9 unknown",
                "end",
            ],
        )

    def test_better_prices_first_and_limits_hold(self):
        self.check(
            """new 1 ann buy 3 99
            new 2 bob buy 3 100
            new 3 cat buy 3 98
            new 4 dan sell 8 99
            book""",
            """trade 2 4 100 3
            trade 1 4 99 3
            level buy 98 3 1
            level sell 99 2 1
            end""",
        )

    def test_ioc_and_market_rests_are_canceled(self):
        self.check(
            """new 1 ann sell 3 100
            new 2 bob buy 5 100 ioc
            new 3 bob buy 5 market ioc
            order 2""",
            """trade 1 2 100 3
            canceled 2 2 ioc
            canceled 3 5 market
            order 2 canceled 5 3 2""",
        )

    def test_contradicting_options_are_rejected_and_take_no_id(self):
        self.check(
            """new 1 ann sell 3 100 ioc fok
            new 1 ann sell 3 market post
            new 1 ann sell 3 100 peak=1 ioc
            new 1 ann sell 3 100
            book""",
            """rejected 1 invalid
            rejected 1 invalid
            rejected 1 invalid
            level sell 100 3 1
            end""",
        )

    def test_ids_stay_taken(self):
        self.check(
            """new 1 ann sell 3 100
            new 2 bob buy 3 100
            new 3 bob buy 3 90
            cancel 3
            new 4 bob buy 1 90 fok
            new 1 ann sell 3 100
            new 2 ann sell 3 100
            new 3 ann sell 3 100 ioc fok
            new 4 ann sell 3 100
            book""",
            """trade 1 2 100 3
            canceled 3 3 request
            canceled 4 1 fok
            rejected 1 duplicate
            rejected 2 duplicate
            rejected 3 duplicate
            rejected 4 duplicate
            end""",
        )


class Priority(Base):
    def test_partial_fills_keep_priority(self):
        self.check(
            """new 1 ann sell 5 100
            new 2 bob sell 5 100
            new 3 cat buy 2 100
            new 4 cat buy 4 100""",
            """trade 1 3 100 2
            trade 1 4 100 3
            trade 2 4 100 1""",
        )

    def test_orders_after_a_cancellation_queue_at_the_end(self):
        self.check(
            """new 1 ann sell 5 100
            new 2 bob sell 5 100
            cancel 1
            new 3 cat sell 5 100
            new 4 dan buy 6 100""",
            """canceled 1 5 request
            trade 2 4 100 5
            trade 3 4 100 1""",
        )

    def test_orders_after_a_cancellation_trade_at_their_own_price(self):
        self.check(
            """new 1 ann sell 5 100
            new 2 bob sell 5 100
            cancel 1
            new 3 cat sell 5 104
            new 4 dan buy 8 100
            new 5 dan buy 1 market
            book""",
            """canceled 1 5 request
            trade 2 4 100 5
            trade 3 5 104 1
            level buy 100 3 1
            level sell 104 4 1
            end""",
        )

    def test_new_orders_on_the_other_side_after_a_fill(self):
        self.check(
            """new 1 ann sell 5 100
            new 2 bob sell 5 100
            new 3 cat buy 5 100
            new 4 dan buy 5 90
            new 5 eve buy 5 100
            new 6 fay sell 5 80
            book""",
            """trade 1 3 100 5
            trade 2 5 100 5
            trade 4 6 90 5
            end""",
        )

    def test_shown_again_quantity_queues_behind_others(self):
        self.check(
            """new 1 ann sell 9 100 peak=3
            new 2 bob sell 4 100
            book
            new 3 cat buy 5 100
            book
            new 4 cat buy 7 100
            book""",
            """level sell 100 7 2
            end
            trade 1 3 100 3
            trade 2 3 100 2
            level sell 100 5 2
            end
            trade 2 4 100 2
            trade 1 4 100 3
            trade 1 4 100 2
            level sell 100 1 1
            end""",
        )

    def test_incoming_peak_order_trades_whole(self):
        self.check(
            """new 1 ann sell 5 100
            new 2 bob buy 9 100 peak=2
            book
            order 2""",
            """trade 1 2 100 5
            level buy 100 2 1
            end
            order 2 open 9 5 4""",
        )


class Conditions(Base):
    def test_fok_trades_whole_or_not(self):
        self.check(
            """new 1 ann sell 5 100
            new 2 bob sell 9 101 peak=2
            new 3 cat buy 15 101 fok
            new 4 cat buy 14 100 fok
            new 5 cat buy 14 101 fok
            order 2""",
            """canceled 3 15 fok
            canceled 4 14 fok
            trade 1 5 100 5
            """
            + "trade 2 5 101 2\n" * 4
            + """trade 2 5 101 1
            order 2 filled 9 9 0""",
        )

    def test_fok_does_not_count_own_orders(self):
        for mode in ("newest", "oldest", "both", "decrement"):
            self.check(
                f"""new 1 cat sell 5 100
                new 2 ann sell 5 100
                new 3 cat buy 6 100 fok self={mode}
                book""",
                """canceled 3 6 fok
                level sell 100 10 2
                end""",
            )

    def test_fok_passes_own_orders_only_in_mode_oldest(self):
        text = "new 1 ann sell 3 100\nnew 2 cat sell 5 100\nnew 3 bob sell 3 100\nnew 4 cat buy {} 100 fok self={}"
        for mode in ("newest", "both", "decrement"):
            self.check(text.format(4, mode), "canceled 4 4 fok")
            self.check(text.format(3, mode), "trade 1 4 100 3")
        self.check(text.format(6, "oldest"), "trade 1 4 100 3\ncanceled 2 5 self_trade\ntrade 3 4 100 3")

    def test_fok_reaches_hidden_quantity_only_behind_own_orders(self):
        text = "new 1 ann sell 8 100 peak=4\nnew 2 cat sell 5 100\nnew 3 cat buy {} 100 fok self=newest"
        self.check(text.format(6), "canceled 3 6 fok")
        self.check(text.format(4), "trade 1 3 100 4")

    def test_post_orders_never_trade_on_entry(self):
        self.check(
            """new 1 ann sell 5 100
            new 2 bob buy 5 100 post
            new 3 ann buy 5 101 post
            new 2 bob buy 5 99 post
            book""",
            """rejected 2 would_trade
            rejected 3 would_trade
            level buy 99 5 1
            level sell 100 5 1
            end""",
        )


class SelfTrade(Base):
    def test_newest_cancels_the_rest_of_the_incoming_order(self):
        self.check(
            """new 1 ann sell 2 100
            new 2 bob sell 5 100 self=oldest
            new 3 bob buy 9 100
            book""",
            """trade 1 3 100 2
            canceled 3 7 self_trade
            level sell 100 5 1
            end""",
        )

    def test_oldest_cancels_resting_orders_and_goes_on(self):
        self.check(
            """new 1 bob sell 2 100
            new 2 bob sell 7 100 peak=1
            new 3 ann sell 5 100
            new 4 bob buy 6 100 self=oldest
            book""",
            """canceled 1 2 self_trade
            canceled 2 7 self_trade
            trade 3 4 100 5
            level buy 100 1 1
            end""",
        )

    def test_both_cancels_both(self):
        self.check(
            """new 1 bob sell 2 100
            new 2 bob sell 7 100
            new 3 bob buy 6 100 self=both
            book""",
            """canceled 1 2 self_trade
            canceled 3 6 self_trade
            level sell 100 7 1
            end""",
        )

    def test_decrement_reduces_both_by_the_lesser_open_quantity(self):
        self.check(
            """new 1 bob sell 9 100 peak=2
            new 2 ann sell 3 100
            new 3 bob buy 4 100 self=decrement
            order 1
            order 3
            book
            new 4 bob buy 7 100 self=decrement
            order 1
            order 4
            book""",
            """reduced 1 4
            reduced 3 4
            canceled 3 0 self_trade
            order 1 open 5 0 5
            order 3 canceled 0 0 0
            level sell 100 5 2
            end
            reduced 1 5
            reduced 4 5
            canceled 1 0 self_trade
            trade 2 4 100 2
            order 1 canceled 0 0 0
            order 4 filled 2 2 0
            level sell 100 1 1
            end""",
        )

    def test_decrement_of_visible_quantity_shows_in_the_book(self):
        self.check(
            """new 1 bob sell 9 100
            new 2 ann sell 3 100
            new 3 bob buy 4 100 self=decrement
            book
            cancel 1
            book""",
            """reduced 1 4
            reduced 3 4
            canceled 3 0 self_trade
            level sell 100 8 2
            end
            canceled 1 5 request
            level sell 100 3 1
            end""",
        )


class Replacement(Base):
    def test_total_includes_the_filled_quantity(self):
        self.check(
            """new 1 ann sell 10 100
            new 2 bob buy 4 100
            replace 1 7 100
            order 1
            book
            replace 1 12 102
            order 1
            book""",
            """trade 1 2 100 4
            replaced 1 7 100
            order 1 open 7 4 3
            level sell 100 3 1
            end
            replaced 1 12 102
            order 1 open 12 4 8
            level sell 102 8 1
            end""",
        )

    def test_total_up_to_the_filled_quantity_cancels(self):
        for total in (3, 4):
            self.check(
                f"""new 1 ann sell 10 100
                new 2 bob buy 4 100
                replace 1 {total} 200
                order 1
                book""",
                """trade 1 2 100 4
                canceled 1 6 replaced
                order 1 canceled 10 4 6
                end""",
            )

    def test_priority_after_replacement(self):
        entered = "".join(f"new {n} ann sell 4 100\n" for n in (1, 2, 3))
        self.check(
            entered + "replace 1 3 100\nreplace 2 5 100\nreplace 3 4 100\nbook\nnew 9 bob buy 12 100",
            """replaced 1 3 100
            replaced 2 5 100
            replaced 3 4 100
            level sell 100 12 3
            end
            trade 1 9 100 3
            trade 3 9 100 4
            trade 2 9 100 5""",
        )

    def test_return_to_an_earlier_price_loses_priority(self):
        self.check(
            """new 1 ann sell 4 100
            new 2 bob sell 4 100
            replace 1 4 101
            replace 1 4 100
            new 3 cat buy 5 100""",
            """replaced 1 4 101
            replaced 1 4 100
            trade 2 3 100 4
            trade 1 3 100 1""",
        )

    def test_replacement_that_crosses_trades(self):
        self.check(
            """new 1 ann sell 4 100
            new 2 bob buy 6 99
            replace 2 6 100
            order 2
            book""",
            """replaced 2 6 100
            trade 1 2 100 4
            order 2 open 6 4 2
            level buy 100 2 1
            end""",
        )

    def test_replacement_prevents_self_trades_with_its_own_mode(self):
        self.check(
            """new 1 bob sell 4 100
            new 2 bob buy 6 99 self=oldest
            replace 2 6 101
            book""",
            """replaced 2 6 101
            canceled 1 4 self_trade
            level buy 101 6 1
            end""",
        )

    def test_post_order_is_not_replaced_into_a_trade(self):
        self.check(
            """new 1 ann sell 4 100
            new 2 bob buy 6 99 post
            replace 2 8 100
            replace 2 5 99
            order 2
            book""",
            """rejected 2 would_trade
            replaced 2 5 99
            order 2 open 5 0 5
            level buy 99 5 1
            level sell 100 4 1
            end""",
        )

    def test_reduction_takes_hidden_quantity_first(self):
        self.check(
            """new 1 ann sell 9 100 peak=4
            new 2 bob buy 1 100
            replace 1 5 100
            book
            replace 1 3 100
            book
            replace 1 8 100
            book""",
            """trade 1 2 100 1
            replaced 1 5 100
            level sell 100 3 1
            end
            replaced 1 3 100
            level sell 100 2 1
            end
            replaced 1 8 100
            level sell 100 4 1
            end""",
        )


class Invariants(Base):
    def test_long_sessions_keep_the_book_consistent(self):
        for seed in range(3):
            choice = random.Random(seed)
            commands, ids = [], []
            for number in range(1, 400):
                kind = choice.random()
                if ids and kind < 0.2:
                    commands.append(f"cancel {choice.choice(ids)}")
                elif ids and kind < 0.4:
                    commands.append(f"replace {choice.choice(ids)} {choice.randint(1, 20)} {choice.randint(95, 105)}")
                else:
                    ids.append(number)
                    mode = choice.choice(["newest", "oldest", "both", "decrement"])
                    condition = choice.choice(["", "", "", " fok", " ioc", " post"])
                    side, owner = choice.choice(["buy", "sell"]), choice.choice("abc")
                    commands.append(f"new {number} {owner} {side} {choice.randint(1, 20)} {choice.randint(95, 105)} self={mode}{condition}")
                commands.append("book")
            self.check_session(commands + [f"order {number}" for number in ids])

    def check_session(self, commands):
        lines = self.run_commands("\n".join(commands))
        traded, books, orders = {}, [[]], []
        for line in lines:
            kind, *rest = line.split()
            if kind == "trade":
                for order in rest[:2]:
                    traded[order] = traded.get(order, 0) + int(rest[3])
            elif kind == "level":
                books[-1].append((rest[0], int(rest[1]), int(rest[2]), int(rest[3])))
            elif kind == "end":
                books.append([])
            elif kind == "order":
                orders.append(rest)
        for levels in books:
            best_buy = max((price for side, price, _, _ in levels if side == "buy"), default=0)
            best_sell = min((price for side, price, _, _ in levels if side == "sell"), default=1000)
            self.assertLess(best_buy, best_sell)
            self.assertTrue(all(visible >= count > 0 for _, _, visible, count in levels), levels)
        for order, _, total, filled, rest in orders:
            self.assertEqual(int(filled), traded.get(order, 0), order)
            self.assertEqual(int(total) - int(filled), int(rest), order)
        resting = [int(order[4]) for order in orders if order[1] == "open"]
        self.assertEqual(sum(resting), sum(visible for _, _, visible, _ in books[-2]))
        self.assertEqual(len(resting), sum(count for _, _, _, count in books[-2]))
