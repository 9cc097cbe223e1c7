import json

import lab


class AgendaCase(lab.Case):
    def listing(self, events, zone, first, last):
        self.write("events.json", json.dumps({"events": events}))
        done = self.program("python3", "-m", "agenda", "list", "events.json", "--zone", zone, "--from", first, "--to", last)
        self.assertEqual((done.status, done.stderr), (0, ""), done)
        return done.stdout.splitlines()

    def starts(self, one, first, last, zone=None):
        """Returns the starts of one event's occurrences, without `:00` seconds and title."""
        return [line.split()[0] for line in self.listing([one], zone or one.get("zone", "UTC"), first, last)]

    def days(self, rule, start, first, last, **more):
        """Returns the dates of an all-day event's occurrences."""
        return self.starts({"id": "d", "title": "D", "start": start, "duration": "P1D", "repeat": rule, **more}, first, last)

    def refused(self, one):
        self.write("events.json", json.dumps({"events": [one]}))
        done = self.program("python3", "-m", "agenda", "list", "events.json", "--zone", "UTC", "--from", "2025-01-01", "--to", "2025-02-01")
        self.assertEqual((done.status, done.stdout), (1, ""), done)
        self.assertTrue(done.stderr.startswith(f"error: event {one['id']}: "), done.stderr)


def event(start, zone="Europe/Berlin", duration="PT1H", **more):
    return {"id": "e", "title": "Event", "zone": zone, "start": start, "duration": duration, **more}


class Kept(AgendaCase):
    def test_single_events_stay(self):
        done = self.program("python3", "-m", "agenda", "list", "examples/team.json", "--zone", "America/New_York", "--from", "2025-03-31", "--to", "2025-04-02")
        self.assertEqual(
            done.stdout,
            "2025-03-31T08:00-04:00 2025-03-31T08:45-04:00 handover Handover to Pune\n"
            "2025-03-31T09:00-04:00 2025-03-31T10:30-04:00 review Design review\n"
            "2025-04-01T08:00-04:00 2025-04-01T08:00-04:00 release Release 4.2\n",
        )

    def test_period_includes_what_overlaps(self):
        events = [
            {**event("2025-06-01T22:00", "UTC", "PT2H"), "id": "ends-at-begin"}, {**event("2025-06-01T22:00", "UTC", "PT2H1M"), "id": "overlaps"},
            {**event("2025-06-02T00:00", "UTC", "PT0M"), "id": "moment"}, {**event("2025-06-03T00:00", "UTC", "PT0M"), "id": "end"},
        ]
        self.assertEqual([line.split()[2] for line in self.listing(events, "UTC", "2025-06-02", "2025-06-03")], ["overlaps", "moment"])

    def test_errors_of_events(self):
        for changes in ({"zone": "Mars/Base"}, {"start": "2025-02-30T10:00"}, {"duration": "1H"}, {"colour": "red"}):
            self.refused({**event("2025-01-05T10:00"), **changes})


class LocalTimes(AgendaCase):
    def test_time_that_is_skipped_comes_later(self):
        for zone, start, shown in (
            ("Europe/Berlin", "2025-03-30T02:30", "2025-03-30T03:30+02:00"), ("Asia/Beirut", "2025-03-30T00:10", "2025-03-30T01:10+03:00"),
            ("Australia/Lord_Howe", "2025-10-05T02:05", "2025-10-05T02:35+11:00"), ("America/New_York", "2025-03-09T02:00", "2025-03-09T03:00-04:00"),
        ):
            self.assertEqual(self.starts(event(start, zone), start[:10], "2025-12-31"), [shown])

    def test_day_that_is_skipped(self):
        self.assertEqual(self.starts(event("2011-12-30T10:00", "Pacific/Apia"), "2011-12-29", "2012-01-02"), ["2011-12-31T10:00+13:00"])

    def test_time_that_exists_twice(self):
        for more, shown in (({}, "+02:00"), ({"ambiguous": "first"}, "+02:00"), ({"ambiguous": "second"}, "+01:00")):
            self.assertEqual(self.starts(event("2025-10-26T02:30", **more), "2025-10-26", "2025-10-27"), ["2025-10-26T02:30" + shown])

    def test_half_hour_that_exists_twice(self):
        shown = [self.starts(event("2025-04-06T01:45", "Australia/Lord_Howe", ambiguous=which), "2025-04-06", "2025-04-07") for which in ("first", "second")]
        self.assertEqual(shown, [["2025-04-06T01:45+11:00"], ["2025-04-06T01:45+10:30"]])

    def test_times_next_to_changes(self):
        for zone, start, offset in (
            ("Europe/Berlin", "2025-03-30T01:59", "+01:00"), ("Europe/Berlin", "2025-03-30T03:00", "+02:00"), ("Europe/Berlin", "2025-10-26T03:00", "+01:00"),
            ("America/New_York", "2025-11-02T02:00", "-05:00"), 
            ("America/Sao_Paulo", "2016-02-20T22:59", "-02:00"), ("America/Sao_Paulo", "2016-02-21T00:00", "-03:00"), ("Pacific/Apia", "2011-12-31T00:00", "+13:00"),
        ):
            with self.subTest(start=start, zone=zone):
                self.assertEqual(self.starts(event(start, zone), start[:10], "2026-01-01"), [start + offset])

    def test_period_begins_when_the_day_does(self):
        late = event("2025-03-29T21:59", "UTC", "PT0M")
        begin = event("2025-03-29T22:00", "UTC", "PT0M")
        self.assertEqual(self.starts(late, "2025-03-30", "2025-03-31", "Asia/Beirut"), [])
        self.assertEqual(self.starts(begin, "2025-03-30", "2025-03-31", "Asia/Beirut"), ["2025-03-30T01:00+03:00"])
        self.assertEqual(self.starts(begin, "2025-03-29", "2025-03-30", "Asia/Beirut"), [])


class Durations(AgendaCase):
    def line(self, one, first, last):
        return [line.split()[:2] for line in self.listing([one], one["zone"], first, last)]

    def test_days_follow_the_calendar(self):
        one = event("2025-03-29T12:00", duration="P1D")
        self.assertEqual(self.line(one, "2025-03-29", "2025-03-30"), [["2025-03-29T12:00+01:00", "2025-03-30T12:00+02:00"]])

    def test_hours_pass_really(self):
        one = event("2025-03-29T12:00", duration="PT24H")
        self.assertEqual(self.line(one, "2025-03-29", "2025-03-30"), [["2025-03-29T12:00+01:00", "2025-03-30T13:00+02:00"]])

    def test_days_first_then_hours(self):
        one = event("2025-03-29T01:30", duration="P1DT2H15M")
        self.assertEqual(self.line(one, "2025-03-29", "2025-03-30"), [["2025-03-29T01:30+01:00", "2025-03-30T04:45+02:00"]])

    def test_days_count_from_the_nominal_start(self):
        one = event("2025-03-30T02:30", duration="P1DT30M")
        self.assertEqual(self.line(one, "2025-03-30", "2025-03-31"), [["2025-03-30T03:30+02:00", "2025-03-31T03:00+02:00"]])

    def test_end_in_a_gap_or_twice(self):
        self.assertEqual(self.line(event("2025-03-29T02:30", duration="P1D"), "2025-03-29", "2025-03-30"), [["2025-03-29T02:30+01:00", "2025-03-30T03:30+02:00"]])
        one = event("2025-10-25T02:30", duration="P1D", ambiguous="second")
        self.assertEqual(self.line(one, "2025-10-25", "2025-10-26"), [["2025-10-25T02:30+02:00", "2025-10-26T02:30+01:00"]])

    def test_bad_durations(self):
        for text in ("P", "P1DT", "PT1M1H", "P1W", "P1H", "-P1D"):
            with self.subTest(text):
                self.refused(event("2025-01-05T10:00", duration=text))


class Rules(AgendaCase):
    def test_daily_keeps_the_time_of_day(self):
        found = self.starts(event("2025-03-28T02:30", repeat="FREQ=DAILY"), "2025-03-29", "2025-04-01")
        self.assertEqual(found, ["2025-03-29T02:30+01:00", "2025-03-30T03:30+02:00", "2025-03-31T02:30+02:00"])

    def test_daily_with_filters(self):
        found = self.days("FREQ=DAILY;INTERVAL=2;BYDAY=MO,FR;BYMONTH=1,3;BYMONTHDAY=1,3,14,-1", "2025-01-01", "2025-01-01", "2026-01-01")
        self.assertEqual(found, ["2025-01-03", "2025-01-31", "2025-03-14"])

    def test_weeks_begin_on_their_first_day(self):
        rule = "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU"
        self.assertEqual(self.days(rule, "2025-08-05", "2025-08-01", "2025-10-01"), ["2025-08-05", "2025-08-10", "2025-08-19", "2025-08-24"])
        self.assertEqual(self.days(rule + ";WKST=SU", "2025-08-05", "2025-08-01", "2025-10-01"), ["2025-08-05", "2025-08-17", "2025-08-19", "2025-08-31"])

    def test_weekly_on_the_day_of_start(self):
        self.assertEqual(self.days("FREQ=WEEKLY;BYMONTH=2", "2025-01-08", "2025-01-01", "2026-01-01"), ["2025-02-05", "2025-02-12", "2025-02-19", "2025-02-26"])

    def test_monthly_leaves_out_missing_days(self):
        self.assertEqual(self.days("FREQ=MONTHLY", "2025-01-31", "2025-01-01", "2025-08-01"), ["2025-01-31", "2025-03-31", "2025-05-31", "2025-07-31"])

    def test_monthly_weekdays_with_numbers(self):
        found = self.days("FREQ=MONTHLY;BYDAY=2TU,-1FR", "2025-01-15", "2025-01-01", "2025-04-01")
        self.assertEqual(found, ["2025-01-31", "2025-02-11", "2025-02-28", "2025-03-11", "2025-03-28"])

    def test_monthly_day_and_weekday(self):
        self.assertEqual(self.days("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13,-1", "2025-01-01", "2025-01-01", "2026-01-01"), ["2025-01-31", "2025-02-28", "2025-06-13", "2025-10-31"])

    def test_positions_in_the_period(self):
        rule = "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=2,-1"
        self.assertEqual(self.days(rule, "2025-05-01", "2025-05-01", "2025-07-01"), ["2025-05-02", "2025-05-30", "2025-06-03", "2025-06-30"])
        self.assertEqual(self.days(rule, "2025-05-06", "2025-05-01", "2025-06-04"), ["2025-05-30", "2025-06-03"])

    def test_positions_count_before_start(self):
        self.assertEqual(self.days("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=1", "2025-01-08", "2025-01-01", "2025-01-25"), ["2025-01-13", "2025-01-20"])

    def test_yearly_on_the_leap_day(self):
        self.assertEqual(self.days("FREQ=YEARLY", "2024-02-29", "2024-01-01", "2033-01-01"), ["2024-02-29", "2028-02-29", "2032-02-29"])

    def test_yearly_weekdays_count_in_the_year_or_month(self):
        self.assertEqual(self.days("FREQ=YEARLY;BYDAY=20MO,-1SU", "2025-01-01", "2025-01-01", "2027-01-01"), ["2025-05-19", "2025-12-28", "2026-05-18", "2026-12-27"])
        self.assertEqual(self.days("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "2025-01-01", "2025-01-01", "2027-01-01"), ["2025-11-27", "2026-11-26"])

    def test_yearly_by_month_and_day(self):
        self.assertEqual(self.days("FREQ=YEARLY;BYMONTH=9,3", "2025-01-15", "2025-01-01", "2026-06-01"), ["2025-03-15", "2025-09-15", "2026-03-15"])
        self.assertEqual(self.days("FREQ=YEARLY;BYMONTHDAY=-1;BYDAY=SU", "2025-01-01", "2025-01-01", "2026-06-01"), ["2025-08-31", "2025-11-30", "2026-05-31"])
        self.assertEqual(self.days("FREQ=YEARLY;BYMONTH=1,12;BYDAY=MO;BYSETPOS=-1", "2025-01-01", "2025-01-01", "2027-01-01"), ["2025-12-29", "2026-12-28"])

    def test_start_that_is_no_candidate_is_no_occurrence(self):
        self.assertEqual(self.days("FREQ=WEEKLY;BYDAY=MO;COUNT=2", "2025-01-01", "2025-01-01", "2025-02-01"), ["2025-01-06", "2025-01-13"])

    def test_until_a_date_includes_it(self):
        one = event("2025-01-01T23:30", "America/New_York", repeat="FREQ=DAILY;UNTIL=20250103")
        self.assertEqual(self.starts(one, "2025-01-01", "2025-02-01"), [f"2025-01-0{n}T23:30-05:00" for n in (1, 2, 3)])

    def test_until_a_time_is_utc(self):
        for until, count in (("20250330T013000Z", 2), ("20250330T012959Z", 1)):
            one = event("2025-03-29T02:30", repeat=f"FREQ=DAILY;UNTIL={until}")
            self.assertEqual(len(self.starts(one, "2025-03-01", "2025-04-30")), count)

    def test_rule_that_yields_nothing(self):
        self.assertEqual(self.days("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", "2025-01-01", "2025-01-01", "2099-01-01"), [])

    def test_rule_ends_with_2099(self):
        self.assertEqual(self.days("FREQ=YEARLY", "2090-12-31", "2098-01-01", "2103-01-01"), ["2098-12-31", "2099-12-31"])

    def test_old_rules_are_fast(self):
        events = [{**event(f"1970-01-01T{hour:02}:00", repeat="FREQ=DAILY"), "id": f"e{hour}"} for hour in range(2)]
        self.assertEqual(len(self.listing(events, "Europe/Berlin", "2069-03-01", "2069-04-01")), 62)

    def test_bad_rules(self):
        for rule in (
            "INTERVAL=2", "FREQ=HOURLY", "FREQ=DAILY;FREQ=DAILY", "FREQ=DAILY;INTERVAL=0", "FREQ=DAILY;COUNT=2;UNTIL=20250101",
            "FREQ=WEEKLY;BYDAY=1MO", "FREQ=MONTHLY;BYDAY=1MO;BYMONTHDAY=1", "FREQ=WEEKLY;BYMONTHDAY=1", "FREQ=DAILY;BYSETPOS=1", "FREQ=MONTHLY;BYMONTHDAY=0",
            "FREQ=YEARLY;BYDAY=54MO", "FREQ=DAILY;UNTIL=20250230",
        ):
            with self.subTest(rule):
                self.refused(event("2025-01-05T10:00", repeat=rule))


class Exceptions(AgendaCase):
    def test_count_comes_before_exceptions(self):
        one = event("2025-01-01T10:00", "UTC", repeat="FREQ=DAILY;COUNT=4", extra=["2025-01-09T08:00"], **{"except": ["2025-01-02T10:00"]})
        self.assertEqual([text[:16] for text in self.starts(one, "2025-01-01", "2025-02-01")], ["2025-01-01T10:00", "2025-01-03T10:00", "2025-01-04T10:00", "2025-01-09T08:00"])

    def test_exceptions_compare_nominal_starts(self):
        one = event("2025-03-29T02:30", repeat="FREQ=DAILY;COUNT=3")
        nominal = {**one, "except": ["2025-03-30T02:30"]}
        real = {**one, "except": ["2025-03-30T03:30"]}
        self.assertEqual(len(self.starts(nominal, "2025-03-01", "2025-04-30")), 2)
        self.assertEqual(len(self.starts(real, "2025-03-01", "2025-04-30")), 3)

    def test_date_leaves_out_all_starts_of_the_day(self):
        one = event("2025-01-01T23:30", "America/New_York", repeat="FREQ=DAILY;COUNT=3", extra=["2025-01-02T08:00", "2025-01-01T08:00"], **{"except": ["2025-01-02"]})
        self.assertEqual(self.starts(one, "2025-01-01", "2025-02-01", "UTC"), ["2025-01-01T13:00+00:00", "2025-01-02T04:30+00:00", "2025-01-04T04:30+00:00"])

    def test_extra_that_is_there_already(self):
        one = event("2025-01-01T10:00", "UTC", extra=["2025-01-01T10:00", "2025-01-02T10:00"])
        self.assertEqual([text[:10] for text in self.starts(one, "2025-01-01", "2025-02-01")], ["2025-01-01", "2025-01-02"])

    def test_same_real_time_is_listed_once(self):
        one = event("2011-12-28T10:00", "Pacific/Apia", repeat="FREQ=DAILY;COUNT=5")
        self.assertEqual(
            self.starts(one, "2011-12-27", "2012-01-10"),
            ["2011-12-28T10:00-11:00", "2011-12-29T10:00-11:00", "2011-12-31T10:00+13:00", "2012-01-01T10:00+13:00"],
        )

    def test_latest_nominal_start_stays(self):
        changes = {"2011-12-30T10:00": {"title": "Skipped"}, "2011-12-31T10:00": {"title": "Stays"}}
        one = event("2011-12-30T10:00", "Pacific/Apia", repeat="FREQ=DAILY;COUNT=2", changes=changes)
        self.assertEqual([line.split()[3] for line in self.listing([one], "Pacific/Apia", "2011-12-27", "2012-01-10")], ["Stays"])

    def test_bad_values(self):
        for more in (
            {"extra": ["2025-01-01"]}, {"except": ["tomorrow"]}, {"changes": {"2025-01-01": {}}}, {"changes": {"2025-01-05T10:00": {"colour": "red"}}},
            {"ambiguous": "third"}, {"changes": {"2025-01-05T10:00": {"start": "2025-01-05"}}},
        ):
            with self.subTest(more):
                self.refused(event("2025-01-05T10:00", **more))


class Changes(AgendaCase):
    def test_change_of_start_duration_and_title(self):
        changes = {"2025-01-02T10:00": {"start": "2025-01-02T15:00", "title": "Later"}, "2025-01-03T10:00": {"duration": "PT2H"}, "2025-01-04T10:00": {"cancelled": True}, "2025-01-05T10:00": {"cancelled": False}}
        one = event("2025-01-01T10:00", "UTC", repeat="FREQ=DAILY;COUNT=5", changes=changes)
        lines = self.listing([one], "UTC", "2025-01-02", "2025-01-10")
        self.assertEqual(
            [line.replace("+00:00", "") for line in lines],
            ["2025-01-02T15:00 2025-01-02T16:00 e Later", "2025-01-03T10:00 2025-01-03T12:00 e Event", "2025-01-05T10:00 2025-01-05T11:00 e Event"],
        )

    def test_change_is_found_by_its_nominal_start(self):
        one = event("2025-03-29T02:30", repeat="FREQ=DAILY;COUNT=2", changes={"2025-03-30T02:30": {"title": "Changed"}})
        self.assertEqual(self.listing([one], "Europe/Berlin", "2025-03-30", "2025-04-30"), ["2025-03-30T03:30+02:00 2025-03-30T04:30+02:00 e Changed"])

    def test_moved_into_the_period_from_later(self):
        one = event("2025-01-06T10:00", "UTC", repeat="FREQ=WEEKLY", changes={"2025-12-29T10:00": {"start": "2025-02-01T09:00"}})
        self.assertEqual([text[:16] for text in self.starts(one, "2025-01-27", "2025-02-03")], ["2025-01-27T10:00", "2025-02-01T09:00"])

    def test_moved_out_of_the_period(self):
        one = event("2025-01-06T10:00", "UTC", repeat="FREQ=WEEKLY", changes={"2025-01-13T10:00": {"start": "2025-02-01T09:00"}})
        self.assertEqual(self.starts(one, "2025-01-13", "2025-01-20"), [])

    def test_days_of_a_changed_occurrence(self):
        one = event("2025-03-22T12:00", duration="P1D", repeat="FREQ=WEEKLY;COUNT=2", changes={"2025-03-29T12:00": {"start": "2025-03-29T18:00"}})
        self.assertEqual([line.split()[:2] for line in self.listing([one], "Europe/Berlin", "2025-03-29", "2025-04-01")], [["2025-03-29T18:00+01:00", "2025-03-30T18:00+02:00"]])

    def test_change_of_an_excluded_start_is_ignored(self):
        change = {"2025-01-02T10:00": {"start": "2025-01-09T10:00"}, "2025-01-04T10:00": {"title": "Never"}}
        one = event("2025-01-01T10:00", "UTC", repeat="FREQ=DAILY;COUNT=3", changes=change, **{"except": ["2025-01-02"]})
        self.assertEqual([text[:10] for text in self.starts(one, "2025-01-01", "2025-02-01")], ["2025-01-01", "2025-01-03"])


class AllDay(AgendaCase):
    def test_dates_are_the_same_in_every_zone(self):
        one = {"id": "h", "title": "Office closed", "start": "2025-12-24", "duration": "P3D"}
        for zone in ("Pacific/Apia", "America/New_York", "UTC"):
            self.assertEqual(self.listing([one], zone, "2025-12-26", "2025-12-27"), ["2025-12-24 2025-12-27 h Office closed"])
            self.assertEqual(self.listing([one], zone, "2025-12-27", "2025-12-28"), [])
            self.assertEqual(self.listing([one], zone, "2025-12-20", "2025-12-24"), [])

    def test_extra_exceptions_and_changes(self):
        more = {"extra": ["2025-01-20"], "except": ["2025-01-02"], "changes": {"2025-01-03": {"start": "2025-01-10", "duration": "P2D"}}}
        self.assertEqual(self.days("FREQ=DAILY;UNTIL=20250104", "2025-01-01", "2025-01-01", "2025-02-01", **more), ["2025-01-01", "2025-01-04", "2025-01-10", "2025-01-20"])

    def test_order_among_timed_events(self):
        events = [
            {**event("2025-03-30T01:00", "Asia/Beirut"), "id": "a"}, {"id": "z", "title": "Z", "start": "2025-03-30", "duration": "P1D"},
            {**event("2025-03-29T23:30", "Asia/Beirut", "PT2H"), "id": "y"}, {**event("2025-03-30T01:00", "Asia/Beirut", "PT5M"), "id": "b"},
            {"id": "x", "title": "X", "start": "2025-03-30", "duration": "P2D"},
        ]
        self.assertEqual([line.split()[2] for line in self.listing(events, "Asia/Beirut", "2025-03-29", "2025-03-31")], ["y", "x", "z", "a", "b"])

    def test_order_by_end(self):
        one = event("2025-01-01T10:00", "UTC", repeat="FREQ=DAILY;COUNT=2", changes={"2025-01-02T10:00": {"start": "2025-01-01T10:00", "duration": "PT5M"}})
        self.assertEqual([line.split()[1][11:16] for line in self.listing([one], "UTC", "2025-01-01", "2025-01-02")], ["10:05", "11:00"])

    def test_bad_all_day_events(self):
        one = {"id": "h", "title": "H", "start": "2025-12-24", "duration": "P1D"}
        for more in (
            {"zone": "UTC"}, {"ambiguous": "first"}, {"duration": "PT1H"}, {"duration": "P1DT1H"}, {"repeat": "FREQ=DAILY;UNTIL=20250101T000000Z"},
            {"except": ["2025-12-24T10:00"]}, {"changes": {"2025-12-24": {"start": "2025-12-24T10:00"}}},
        ):
            with self.subTest(more):
                self.refused({**one, **more})

    def test_timed_event_needs_a_zone(self):
        one = event("2025-01-05T10:00")
        del one["zone"]
        self.refused(one)


class Long(AgendaCase):
    def test_occurrence_that_began_long_before(self):
        one = event("2024-01-01T10:00", "UTC", "P400D", repeat="FREQ=YEARLY;COUNT=2")
        self.assertEqual([text[:10] for text in self.starts(one, "2025-02-01", "2025-02-02")], ["2024-01-01", "2025-01-01"])

    def test_zones_far_apart(self):
        one = event("2025-06-02T00:30", "Pacific/Apia", repeat="FREQ=DAILY;COUNT=2")
        self.assertEqual(self.starts(one, "2025-06-01", "2025-06-02", "America/New_York"), ["2025-06-01T07:30-04:00"])
        two = event("2025-06-01T20:30", "America/New_York", repeat="FREQ=DAILY;COUNT=2")
        self.assertEqual(self.starts(two, "2025-06-02", "2025-06-03", "Pacific/Apia"), ["2025-06-02T13:30+13:00"])
