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


class Stops(Base):
    def test_waiting_orders_are_outside_of_the_book(self):
        self.check(
            """new 1 ann sell 5 100 stop=90
            new 2 ann buy 5 100 self=both
            order 1
            book
            cancel 1
            order 1
            new 1 ann sell 5 100
            cancel 1""",
            """order 1 waiting 5 0 5
            level buy 100 5 1
            end
            canceled 1 5 request
            order 1 canceled 5 0 5
            rejected 1 duplicate
            rejected 1 unknown""",
        )

    def test_contradictions(self):
        self.check(
            """new 1 ann sell 5 100 stop=90 post
            new 2 ann sell 5 market stop=90 peak=2
            new 3 ann sell 5 100 stop=90 ioc fok
            order 1""",
            """rejected 1 invalid
            rejected 2 invalid
            rejected 3 invalid
            rejected 1 unknown""",
        )

    def test_each_trade_triggers(self):
        # The price touches 104 and goes on within one command.
        self.check(
            """new 1 ann sell 2 105
            new 2 cat buy 3 90
            new 3 dan sell 4 98 stop=104
            new 4 ann sell 2 104
            new 5 bob buy 4 110
            book""",
            """trade 4 5 104 2
            trade 1 5 105 2
            triggered 3
            level buy 90 3 1
            level sell 98 4 1
            end""",
        )

    def test_prices_of_the_past_count(self):
        self.check(
            """new 1 dan sell 2 80 stop=90
            new 2 ann buy 2 90 peak=1
            new 3 ann buy 9 80
            new 4 bob sell 5 80
            new 9 eva buy 1 85 stop=81 ioc
            new 5 ann sell 1 200 stop=80 ioc
            order 1""",
            """trade 2 4 90 1
            trade 2 4 90 1
            trade 3 4 80 3
            triggered 1
            trade 3 1 80 2
            triggered 5
            canceled 5 1 ioc
            order 1 filled 2 2 0""",
        )

    def test_order_of_triggered_orders(self):
        self.check(
            """new 9 dan buy 1 50 stop=102
            new 1 dan buy 1 50 stop=101
            new 2 dan sell 1 150 stop=105
            new 8 dan buy 1 50 stop=99
            new 3 dan buy 1 51 stop=102
            new 4 ann sell 1 101
            new 5 ann sell 1 103
            new 6 bob buy 2 110
            book""",
            """trade 4 6 101 1
            trade 5 6 103 1
            triggered 1
            triggered 2
            triggered 8
            triggered 9
            triggered 3
            level buy 51 1 1
            level buy 50 3 3
            level sell 150 1 1
            end""",
        )

    def test_trades_of_triggered_orders_queue_behind(self):
        self.check(
            """new 1 dan buy 1 103 stop=101
            new 2 dan buy 1 60 stop=101
            new 3 dan buy 1 61 stop=103
            new 4 ann sell 1 101
            new 5 ann sell 1 103
            new 6 bob buy 1 110""",
            """trade 4 6 101 1
            triggered 1
            trade 5 1 103 1
            triggered 2
            triggered 3""",
        )

    def test_the_rest_of_the_incoming_order_comes_first(self):
        self.check(
            """new 1 dan sell 3 100 stop=101
            new 2 ann sell 1 101
            new 3 bob buy 3 101
            new 4 dan buy 1 60 stop=100
            new 5 dan sell 1 60 fok""",
            """trade 2 3 101 1
            triggered 1
            trade 3 1 101 2
            triggered 4
            canceled 5 1 fok""",
        )

    def test_conditions_hold_when_it_comes_in(self):
        self.check(
            """new 1 dan buy 5 100 stop=95 fok
            new 2 dan buy 5 market stop=95
            new 3 dan buy 5 100 stop=95 ioc
            new 4 ann sell 4 100
            new 5 bob buy 1 95
            new 6 eve sell 1 95
            new 7 bob buy 1 95""",
            """trade 5 6 95 1
            triggered 1
            canceled 1 5 fok
            triggered 2
            trade 4 2 100 4
            canceled 2 1 market
            triggered 3
            canceled 3 5 ioc""",
        )

    def test_replacement_of_waiting_orders(self):
        self.check(
            """new 1 dan buy 5 40 stop=100
            new 2 dan buy 5 41 stop=100
            new 3 dan buy 5 42 stop=100
            new 4 dan buy 5 market stop=100
            new 5 dan buy 5 44 stop=100
            replace 1 6 40
            replace 2 3 41
            replace 3 5 43
            replace 4 1 40
            replace 5 5 44
            new 6 ann sell 1 100
            new 7 bob buy 1 100
            order 1
            order 2""",
            """replaced 1 6 40
            replaced 2 3 41
            replaced 3 5 43
            rejected 4 invalid
            replaced 5 5 44
            trade 6 7 100 1
            triggered 2
            triggered 4
            canceled 4 5 market
            triggered 5
            triggered 1
            triggered 3
            order 1 open 6 0 6
            order 2 open 3 0 3""",
        )

    def test_many_waiting_orders(self):
        count = 30000
        waiting = [f"new {n} dan buy 1 1 stop={500000 + n % 977}" for n in range(1, count + 1)]
        trades = [f"new {count + n} {'ann sell' if n % 2 else 'bob buy'} 1 100" for n in range(1, 2 * count + 1)]
        done = self.program("{build}/debug/matchbook", stdin="\n".join(waiting + trades) + "\n", seconds=8)
        self.assertEqual(done.status, 0)
        self.assertEqual(done.stdout.count("trade "), count)
        self.assertNotIn("triggered", done.stdout)


class Auction(Base):
    def test_phases(self):
        self.check(
            """uncross
            call
            call
            new 1 ann buy 5 100
            new 2 ann sell 5 90
            book
            new 3 ann sell 5 90 ioc
            new 4 ann sell 5 market
            new 5 ann sell 5 90 fok ioc
            new 6 ann sell 5 90 post
            indicative
            uncross
            indicative
            uncross""",
            """refused
            phase call
            refused
            level buy 100 5 1
            level sell 90 5 1
            end
            rejected 3 phase
            rejected 4 phase
            rejected 5 invalid
            indicative 90 5 -5
            uncross 90 5
            trade 2 1 90 5
            phase continuous
            indicative none
            refused""",
        )

    def test_prices_between_limits(self):
        book = "new 1 ann buy 5 100\nnew 2 bob sell 5 90\n"
        for last, price in ((None, 90), (95, 95), (80, 90), (1000, 100), (100, 100)):
            trade = "" if last is None else f"new 8 x buy 1 {last}\nnew 9 y sell 1 {last}\n"
            lines = self.run_commands(trade + "call\n" + book + "indicative\nuncross")
            self.assertIn(f"indicative {price} 5 0", lines)
            self.assertIn(f"trade 2 1 {price} 5", lines)

    def test_surplus_decides_after_volume(self):
        self.check(
            """call
            new 1 ann buy 5 100
            new 2 bob buy 4 97
            new 3 cat sell 5 90
            new 4 dan sell 3 99
            indicative""",
            """phase call
            indicative 98 5 0""",
        )
        self.check("call\nnew 1 a buy 7 100\nnew 2 b sell 5 90\nindicative", "phase call\nindicative 100 5 2")
        self.check("call\nnew 1 a buy 5 100\nnew 2 b sell 7 90\nindicative", "phase call\nindicative 90 5 -2")

    def test_surplus_of_both_signs(self):
        # 90 to 94: volume 5; 95 to 100: volume 6, surplus -1
        both = "call\nnew 1 a buy 6 100\nnew 2 b sell 5 90\nnew 3 c sell 2 95\nindicative"
        self.check(both, "phase call\nindicative 95 6 -1")
        signs = "call\nnew 1 a buy 5 100\nnew 2 b buy 2 94\nnew 3 c sell 5 90\nnew 4 d sell 2 95\nindicative"
        # 90 to 94: surplus 2; 95 to 100: surplus -2, both with volume 5
        self.check(signs, "phase call\nindicative 90 5 2")
        self.check("new 8 x buy 1 97\nnew 9 y sell 1 97\n" + signs, "trade 8 9 97 1\nphase call\nindicative 97 5 -2")
        self.check("new 8 x buy 1 200\nnew 9 y sell 1 200\n" + signs, "trade 8 9 200 1\nphase call\nindicative 100 5 -2")

    def test_hidden_quantity_takes_part_and_queues_again(self):
        self.check(
            """call
            new 1 ann sell 5 90 peak=2
            new 2 bob sell 3 90
            new 3 cat buy 7 95
            book
            uncross
            book""",
            """phase call
            level buy 95 7 1
            level sell 90 5 2
            end
            uncross 90 7
            trade 1 3 90 2
            trade 2 3 90 3
            trade 1 3 90 2
            phase continuous
            level sell 90 1 1
            end""",
        )

    def test_own_orders_and_post_orders_trade(self):
        self.check(
            """new 1 ann buy 4 80 post
            call
            new 2 ann sell 4 90 self=both
            replace 1 5 95
            uncross
            order 1""",
            """phase call
            replaced 1 5 95
            uncross 95 4
            trade 2 1 95 4
            phase continuous
            order 1 open 5 4 1""",
        )

    def test_triggered_orders_wait_for_the_end_of_the_phase(self):
        self.check(
            """new 1 x buy 1 100
            new 2 y sell 1 100
            call
            new 3 dan buy 2 120 stop=100
            new 4 dan buy 2 50 stop=99
            new 5 dan buy 2 51 stop=98
            new 6 dan sell 2 130 stop=94
            new 7 ann sell 3 94
            new 8 bob buy 3 94
            order 3
            replace 3 3 120
            cancel 4
            uncross
            book""",
            """trade 1 2 100 1
            phase call
            order 3 waiting 2 0 2
            replaced 3 3 120
            canceled 4 2 request
            uncross 94 3
            trade 7 8 94 3
            phase continuous
            triggered 3
            triggered 5
            triggered 6
            level buy 120 3 1
            level buy 51 2 1
            level sell 130 2 1
            end""",
        )

    def test_prices_far_apart(self):
        self.check(
            f"""call
            new 1 ann buy {10**12} {10**12}
            new 2 bob sell {10**12} 1
            new 3 cat sell {10**12} 1
            indicative
            cancel 3
            indicative""",
            f"""phase call
            indicative 1 {10**12} {-10**12}
            canceled 3 {10**12} request
            indicative 1 {10**12} 0""",
        )


class Model:
    """The rule book, written for clarity: one list of orders, and a pass over it for each question."""

    def __init__(self):
        self.out, self.orders, self.book, self.queue, self.last, self.phase, self.clock = [], {}, [], [], None, "continuous", 0

    def say(self, *words):
        self.out.append(" ".join(str(word) for word in words))

    def now(self):
        self.clock += 1
        return self.clock

    def side(self, side):
        sign = -1 if side == "buy" else 1
        return sorted((o for o in self.book if o["side"] == side), key=lambda o: (sign * o["price"], o["place"]))

    def others(self, order):
        other = "sell" if order["side"] == "buy" else "buy"
        return [o for o in self.side(other) if order["price"] is None or (o["price"] - order["price"]) * (1 if other == "sell" else -1) <= 0]

    def open(self, order):
        return order["total"] - order["filled"]

    def show(self, order):
        order["visible"] = min(self.open(order), order["peak"] or self.open(order))

    def rest(self, order):
        order.update(state="open", place=self.now())
        self.show(order)
        self.book.append(order)

    def leave(self, order, state, reason=None):
        if order in self.book:
            self.book.remove(order)
        if reason:
            self.say("canceled", order["id"], self.open(order), reason)
        order["state"] = state

    def traded(self, resting, incoming, price, quantity):
        self.say("trade", resting["id"], incoming["id"], price, quantity)
        self.last = price
        met = [o for o in self.orders.values() if o["state"] == "waiting" and o not in self.queue and self.meets(o, price)]
        self.queue += sorted(met, key=lambda o: o["place"])

    def meets(self, order, price):
        return price >= order["stop"] if order["side"] == "buy" else price <= order["stop"]

    def fill(self, order, quantity):
        order["filled"] += quantity
        order["visible"] -= quantity
        if not self.open(order):
            self.leave(order, "filled")
        elif not order["visible"]:
            self.show(order)
            order["place"] = self.now()

    def reduce(self, order, quantity):
        order["total"] -= quantity
        order["visible"] = min(order["visible"], self.open(order))

    def new(self, id, owner, side, quantity, price, options):
        if id in self.orders:
            return self.say("rejected", id, "duplicate")
        order = {"id": id, "owner": owner, "side": side, "total": quantity, "filled": 0, "price": price, "visible": 0}
        order.update({"peak": None, "self": "newest", "stop": None, "ioc": False, "fok": False, "post": False, **options})
        at_once = order["ioc"] or order["fok"] or price is None
        if (order["ioc"] and order["fok"]) or (at_once and (order["post"] or order["peak"])) or (order["stop"] and order["post"]):
            return self.say("rejected", id, "invalid")
        if self.phase == "call" and at_once and not order["stop"]:
            return self.say("rejected", id, "phase")
        if order["post"] and self.phase == "continuous" and self.others(order):
            return self.say("rejected", id, "would_trade")
        self.orders[id] = order
        self.say("accepted", id)
        if order["stop"]:
            order.update(state="waiting", place=self.now())
            if self.last is not None and self.meets(order, self.last):
                self.queue.append(order)
        else:
            self.come_in(order)
        self.run_queue()

    def run_queue(self):
        while self.queue and self.phase == "continuous":
            order = self.queue.pop(0)
            self.say("triggered", order["id"])
            self.come_in(order)

    def can_fill(self, order):
        left, groups = self.open(order), {}
        for other in self.others(order):
            groups.setdefault(other["price"], []).append([other, other["visible"], self.open(other) - other["visible"]])
        for group in groups.values():
            while group:
                other, visible, hidden = group.pop(0)
                if other["owner"] == order["owner"]:
                    if order["self"] != "oldest":
                        return False
                    continue
                left -= visible
                if left <= 0:
                    return True
                if hidden:
                    shown = min(hidden, other["peak"])
                    group.append([other, shown, hidden - shown])
        return False

    def come_in(self, order):
        order["state"] = "coming"
        if self.phase == "call":
            return self.rest(order)
        if order["fok"] and not self.can_fill(order):
            return self.leave(order, "canceled", "fok")
        while self.open(order) and self.others(order):
            other = self.others(order)[0]
            if other["owner"] == order["owner"]:
                mode = order["self"]
                if mode in ("oldest", "both"):
                    self.leave(other, "canceled", "self_trade")
                elif mode == "decrement":
                    quantity = min(self.open(order), self.open(other))
                    self.reduce(other, quantity)
                    order["total"] -= quantity
                    self.say("reduced", other["id"], quantity)
                    self.say("reduced", order["id"], quantity)
                    if not self.open(other):
                        self.leave(other, "canceled", "self_trade")
                if mode in ("newest", "both") or not self.open(order):
                    return self.leave(order, "canceled", "self_trade")
                continue
            quantity = min(self.open(order), other["visible"])
            order["filled"] += quantity
            self.traded(other, order, other["price"], quantity)
            self.fill(other, quantity)
        if not self.open(order):
            self.leave(order, "filled")
        elif order["price"] is None:
            self.leave(order, "canceled", "market")
        elif order["ioc"]:
            self.leave(order, "canceled", "ioc")
        else:
            self.rest(order)

    def cancel(self, id):
        order = self.orders.get(id)
        if not order or order["state"] not in ("open", "waiting"):
            return self.say("rejected", id, "unknown")
        self.queue = [o for o in self.queue if o is not order]
        self.leave(order, "canceled", "request")

    def replace(self, id, total, price):
        order = self.orders.get(id)
        if not order or order["state"] not in ("open", "waiting"):
            return self.say("rejected", id, "unknown")
        keeps = price == order["price"] and total <= order["total"]
        if order["state"] == "waiting":
            if order["price"] is None:
                return self.say("rejected", id, "invalid")
            order.update(total=total, price=price, place=order["place"] if keeps else self.now())
            return self.say("replaced", id, total, price)
        if total <= order["filled"]:
            return self.leave(order, "canceled", "replaced")
        if keeps:
            self.reduce(order, order["total"] - total)
            return self.say("replaced", id, total, price)
        if order["post"] and self.phase == "continuous" and self.others({**order, "price": price}):
            return self.say("rejected", id, "would_trade")
        self.book.remove(order)
        order.update(total=total, price=price)
        self.say("replaced", id, total, price)
        # Conditions of the entry don't hold for what rests.
        self.come_in(order)
        self.run_queue()

    def outcome(self):
        best = {}
        limits = [order["price"] for order in self.book]
        for price in range(min(limits, default=1), max(limits, default=0) + 1):
            buys = sum(self.open(o) for o in self.book if o["side"] == "buy" and o["price"] >= price)
            sells = sum(self.open(o) for o in self.book if o["side"] == "sell" and o["price"] <= price)
            if min(buys, sells):
                best.setdefault((-min(buys, sells), abs(buys - sells)), []).append((price, min(buys, sells), buys - sells))
        if not best:
            return None
        found = best[min(best)]
        if all(surplus > 0 for _, _, surplus in found):
            return found[-1]
        if all(surplus < 0 for _, _, surplus in found) or self.last is None:
            return found[0]
        return min(found, key=lambda one: (abs(one[0] - self.last), one[0]))

    def uncross(self):
        if self.phase != "call":
            return self.say("refused")
        found = self.outcome()
        if found:
            price, left, _ = found
            self.say("uncross", price, left)
            while left:
                buy, sell = self.side("buy")[0], self.side("sell")[0]
                quantity = min(left, buy["visible"], sell["visible"])
                left -= quantity
                self.traded(sell, buy, price, quantity)
                self.fill(sell, quantity)
                self.fill(buy, quantity)
        self.phase = "continuous"
        self.say("phase", "continuous")
        self.run_queue()

    def call(self):
        if self.phase == "call":
            return self.say("refused")
        self.phase = "call"
        self.say("phase", "call")

    def indicative(self):
        self.say("indicative", *(self.outcome() or ["none"]))

    def levels(self):
        for side in ("buy", "sell"):
            levels = {}
            for order in self.side(side):
                level = levels.setdefault(order["price"], [0, 0])
                level[0] += order["visible"]
                level[1] += 1
            for price, (visible, count) in levels.items():
                self.say("level", side, price, visible, count)
        self.say("end")

    def order(self, id):
        order = self.orders.get(id)
        if not order:
            return self.say("rejected", id, "unknown")
        self.say("order", id, order["state"], order["total"], order["filled"], self.open(order))


class Sessions(Base):
    def session(self, seed, phases, stops, peaks):
        choice, model, commands = random.Random(seed), Model(), []
        for number in range(1, 250):
            kind, known = choice.random(), choice.randint(1, max(1, number - 1))
            if kind < 0.12:
                commands.append(f"cancel {known}")
                model.cancel(known)
            elif kind < 0.3:
                total, price = choice.randint(1, 16), choice.randint(95, 105)
                commands.append(f"replace {known} {total} {price}")
                model.replace(known, total, price)
            elif phases and kind < 0.38:
                name = choice.choice(["call", "uncross", "indicative", "uncross"])
                commands.append(name)
                getattr(model, name)()
            else:
                options = {"self": choice.choice(["newest", "oldest", "both", "decrement"])}
                if choice.random() < 0.3:
                    options[choice.choice(["fok", "ioc", "post"])] = True
                if peaks and choice.random() < 0.3:
                    options["peak"] = choice.randint(1, 5)
                if stops and choice.random() < 0.4:
                    options["stop"] = choice.randint(95, 105)
                id, owner, side = number, choice.choice("abcd"), choice.choice(["buy", "sell"])
                quantity, price = choice.randint(1, 16), None if choice.random() < 0.1 else choice.randint(95, 105)
                words = [name if value is True else f"{name}={value}" for name, value in options.items()]
                commands.append(f"new {id} {owner} {side} {quantity} {price or 'market'} {' '.join(words)}")
                model.new(id, owner, side, quantity, price, options)
            if number % 10 == 0:
                commands.append("book")
                model.levels()
                commands.append(f"order {known}")
                model.order(known)
        lines = self.run_commands("\n".join(commands))
        for index, (line, wanted) in enumerate(zip(lines + ["nothing"], model.out + ["nothing"])):
            self.assertEqual(line, wanted, f"line {index + 1} of session {seed}, after {model.out[max(0, index - 5) : index]}")

    def test_orders_alone(self):
        for seed in range(6):
            self.session(seed, phases=False, stops=False, peaks=True)

    def test_stop_orders(self):
        for seed in range(8):
            self.session(100 + seed, phases=False, stops=True, peaks=False)

    def test_call_phases(self):
        for seed in range(8):
            self.session(200 + seed, phases=True, stops=False, peaks=True)

    def test_everything(self):
        for seed in range(12):
            self.session(300 + seed, phases=True, stops=True, peaks=True)
