use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::date;
use proptest::prelude::*;

use super::*;

const ZONES: [&str; 4] = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC"];

fn parse_time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn timing(cron: &str, zone: &str) -> Timing {
    Timing::new(cron, zone).unwrap()
}

fn next(cron: &str, zone: &str, time: &str) -> String {
    timing(cron, zone).next_after(parse_time(time)).unwrap().to_string()
}

#[test]
fn a_time_that_does_not_exist_runs_at_the_first_moment_after_the_gap() {
    // 2026-03-29: 02:00 becomes 03:00.
    assert_eq!(next("30 2 * * *", "Europe/Berlin", "2026-03-28T02:00:00Z"), "2026-03-29T01:00:00Z");
    assert_eq!(next("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z"), "2026-03-30T00:30:00Z");
    // All times in the gap, and its end, are one run.
    assert_eq!(next("*/15 * * * *", "Europe/Berlin", "2026-03-29T00:45:00Z"), "2026-03-29T01:00:00Z");
    assert_eq!(next("*/15 * * * *", "Europe/Berlin", "2026-03-29T01:00:00Z"), "2026-03-29T01:15:00Z");
    // 2026-10-04: half an hour, 02:00 becomes 02:30.
    assert_eq!(next("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:00:00Z"), "2026-10-03T15:30:00Z");
}

#[test]
fn a_time_that_exists_twice_runs_the_first_time() {
    // 2026-10-25: 03:00 becomes 02:00.
    assert_eq!(next("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z"), "2026-10-25T00:30:00Z");
    assert_eq!(next("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z"), "2026-10-26T01:30:00Z");
    assert_eq!(next("0 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z"), "2026-10-25T02:00:00Z");
    // From within the repeated hour.
    assert_eq!(next("*/15 * * * *", "Europe/Berlin", "2026-10-25T01:20:00Z"), "2026-10-25T02:00:00Z");
}

#[test]
fn bad_timings_are_refused_with_what_is_wrong() {
    let refused = |cron: &str, zone: &str| Timing::new(cron, zone).unwrap_err();
    assert_eq!(refused("0 0 * *", "UTC"), InvalidTiming::Fields(4));
    assert_eq!(refused("", "UTC"), InvalidTiming::Fields(0));
    assert_eq!(refused("0 0 * * * UTC", "UTC"), InvalidTiming::Fields(6));
    assert_eq!(refused(&"0,".repeat(200), "UTC"), InvalidTiming::Long);
    for special in
        ["0 0 L * *", "0 0 15W * *", "0 0 * * 5L", "0 0 * * 5#3", "H 0 * * *", "0 0 ? * *", "0 -1 * * *"]
    {
        assert!(matches!(refused(special, "UTC"), InvalidTiming::Word(_)), "{special}");
    }
    for range in
        ["60 0 * * *", "0 24 * * *", "0 0 0 * *", "0 0 * 13 *", "0 0 * * 8", "0 5-3 * * *", "0 */0 * * *"]
    {
        let InvalidTiming::Cron(text) = refused(range, "UTC") else { panic!("{range}") };
        assert!(!text.is_empty() && !text.contains(['\n', '^']), "{text}");
    }
    for zone in ["", "Europe/Nowhere", "../../etc/passwd", "Etc/Unknown"] {
        assert!(matches!(refused("0 0 * * *", zone), InvalidTiming::TimeZone(_)), "{zone}");
    }
    assert_eq!(refused("0 0 31 2 *", "UTC"), InvalidTiming::Never);
    for (cron, apart) in [("* * * * *", "1 minute apart"), ("*/10 * * * *", "10 minutes apart")] {
        let text = refused(cron, "UTC").to_string();
        assert!(text.ends_with(apart), "{text}");
    }
    assert_eq!(timing(" 0\t2  * * mon ", "europe/berlin").cron(), "0 2 * * mon");
    assert_eq!(timing("0 2 * * *", "europe/berlin").time_zone(), "Europe/Berlin");
}

#[test]
fn runs_are_at_least_a_quarter_of_an_hour_apart() {
    for (cron, apart) in [
        ("* * * * *", 1),
        ("*/10 * * * *", 10),
        ("0,14 3 * * *", 14),
        ("50,0 23,0 * * *", 10),
        ("0 0 1 1 *", 0),
        ("*/15 * * * *", 0),
        // The last time on Monday and the first time on Monday aren't adjacent.
        ("50,0 23,0 * * MON", 0),
        ("50,0 23,0 * * MON,TUE", 10),
        ("50,0 23,0 1,15 * *", 0),
    ] {
        let expected = if apart == 0 { Ok(()) } else { Err(InvalidTiming::Often(apart)) };
        assert_eq!(Timing::new(cron, "UTC").map(drop), expected, "{cron}");
    }
}

#[test]
fn after_an_outage_the_latest_time_alone_is_run_unless_it_is_too_late() {
    let nightly = timing("0 2 * * *", "UTC");
    assert_eq!(nightly.due(parse_time("2026-05-04T02:00:00Z"), parse_time("2026-05-04T01:59:59Z")), None);
    let due = |now: &str| nightly.due(parse_time("2026-05-01T02:00:00Z"), parse_time(now)).unwrap();
    let on_time = due("2026-05-01T02:00:00Z");
    assert_eq!((on_time.fire, on_time.missed.len()), (Some(parse_time("2026-05-01T02:00:00Z")), 0));
    assert_eq!(on_time.next, Some(parse_time("2026-05-02T02:00:00Z")));
    let late = due("2026-05-03T07:59:59Z");
    assert_eq!(late.fire, Some(parse_time("2026-05-03T02:00:00Z")));
    assert_eq!(late.missed, [parse_time("2026-05-01T02:00:00Z"), parse_time("2026-05-02T02:00:00Z")]);
    let too_late = due("2026-05-03T08:00:00Z");
    assert_eq!((too_late.fire, too_late.missed.len(), too_late.earlier), (None, 3, 0));
    assert_eq!(too_late.next, Some(parse_time("2026-05-04T02:00:00Z")));
    let long = due("2026-07-20T03:00:00Z");
    assert_eq!((long.fire, long.missed.len()), (Some(parse_time("2026-07-20T02:00:00Z")), MISSED_KEPT - 1));
    assert!(long.earlier > 0);
    // A planned time before the counted period, and none since then.
    let yearly = timing("0 0 1 1 *", "UTC");
    let due = yearly.due(parse_time("2026-01-01T00:00:00Z"), parse_time("2026-06-01T00:00:00Z")).unwrap();
    assert_eq!((due.fire, due.missed), (None, vec![parse_time("2026-01-01T00:00:00Z")]));
    assert_eq!((due.earlier, due.next), (0, Some(parse_time("2027-01-01T00:00:00Z"))));
}

/// Computes the expected times by the same rule, minute by minute and without the library: each wall clock time of the
/// expression, at the moment when clocks first show it or have passed it.
fn stepped(fields: &Fields, zone: &str, from: jiff::Timestamp, hours: i64) -> BTreeSet<i64> {
    let zone = TimeZone::get(zone).unwrap();
    let mut shown: BTreeSet<DateTime> = BTreeSet::new();
    let (mut last, mut found): (Option<DateTime>, _) = (None, BTreeSet::new());
    for minute in 0..hours * 60 {
        let instant = from + minute.minutes();
        let wall = zone.to_datetime(instant);
        let first = last.map_or(wall, |last| last + 1.minute());
        let mut each = first.min(wall);
        while each <= wall {
            if shown.insert(each) && fields.match_wall(each) {
                found.insert(instant.as_second());
            }
            each += 1.minute();
        }
        last = Some(wall);
    }
    found
}

#[derive(Debug, Clone)]
struct Fields {
    minutes: BTreeSet<i8>,
    hours: BTreeSet<i8>,
    /// Days of the week from 1, Monday; empty for all.
    weekdays: BTreeSet<i8>,
}

impl Fields {
    fn match_wall(&self, wall: DateTime) -> bool {
        let weekday = wall.weekday().to_monday_one_offset();
        self.minutes.contains(&wall.minute())
            && self.hours.contains(&wall.hour())
            && (self.weekdays.is_empty() || self.weekdays.contains(&weekday))
    }

    fn cron(&self) -> String {
        let list = |set: &BTreeSet<i8>| set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let weekdays = if self.weekdays.is_empty() { "*".to_owned() } else { list(&self.weekdays) };
        format!("{} {} * * {weekdays}", list(&self.minutes), list(&self.hours))
    }
}

fn fields() -> impl Strategy<Value = Fields> {
    let minutes = prop_oneof![
        (0_i8..60).prop_map(|minute| BTreeSet::from([minute])),
        (0_i8..30).prop_map(|minute| BTreeSet::from([minute, minute + 30])),
        Just(BTreeSet::from([0, 15, 30, 45])),
    ];
    let hours = prop_oneof![
        // Hours at which clocks change, and other hours.
        proptest::collection::btree_set(0_i8..4, 1..4),
        proptest::collection::btree_set(0_i8..24, 1..24),
    ];
    (minutes, hours, proptest::collection::btree_set(1_i8..8, 0..3))
        .prop_map(|(minutes, hours, weekdays)| Fields { minutes, hours, weekdays })
}

/// Returns a day before a clock change of 2026 in one of the zones, or any day.
fn start() -> impl Strategy<Value = jiff::Timestamp> {
    let days = [(3, 28), (10, 24), (3, 7), (10, 31), (4, 4), (10, 3)];
    let changes = proptest::sample::select(days.to_vec()).prop_map(|(month, day)| date(2026, month, day));
    let any = (0..365_i64).prop_map(|day| date(2026, 1, 1) + day.days());
    (prop_oneof![changes, any], 0..24 * 60_i64).prop_map(|(date, minute)| {
        TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).unwrap() - 24.hours() + minute.minutes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn planned_times_are_those_of_a_clock_that_is_watched(
        fields in fields(), zone in proptest::sample::select(ZONES.to_vec()), start in start(),
    ) {
        let timing = Timing::new(&fields.cron(), zone);
        prop_assume!(timing.is_ok());
        let timing = timing.unwrap();
        const HOURS: i64 = 96;
        // The simulation starts earlier because it must have seen what the clock showed before a change back.
        let watched = stepped(&fields, zone, start - 4.hours(), HOURS + 4);
        let end = start + HOURS.hours();
        let mut planned = BTreeSet::new();
        let mut time = Timestamp::from_micros(start.as_microsecond());
        while let Some(next) = timing.next_after(time) {
            prop_assert!(next > time);
            time = next;
            if next.as_micros() >= end.as_microsecond() { break; }
            planned.insert(next.as_seconds());
        }
        let watched: BTreeSet<i64> = watched.into_iter().filter(|second| *second > start.as_second()).collect();
        prop_assert_eq!(planned, watched, "{} {}", fields.cron(), zone);
    }

    #[test]
    fn the_next_time_is_later(micros in 0_i64..4_000_000_000_000_000, fields in fields(), zone in proptest::sample::select(ZONES.to_vec())) {
        if let Ok(timing) = Timing::new(&fields.cron(), zone) {
            let time = Timestamp::from_micros(micros);
            let next = timing.next_after(time).unwrap();
            prop_assert!(next > time);
            // Nothing is planned in between.
            let before = Timestamp::from_micros(next.as_micros() - 1);
            prop_assert_eq!(timing.next_after(before.max(time)), Some(next));
        }
    }

    #[test]
    fn a_daily_plan_runs_once_on_each_day(
        minute in 0..60_i8, hour in 0..24_i8, zone in proptest::sample::select(ZONES.to_vec()),
    ) {
        let timing = timing(&format!("{minute} {hour} * * *"), zone);
        let local = TimeZone::get(zone).unwrap();
        let start = local.to_timestamp(date(2026, 1, 1).at(0, 0, 0, 0)).unwrap();
        let mut time = Timestamp::from_micros(start.as_microsecond() - 1);
        for day in 0..400_i64 {
            time = timing.next_after(time).unwrap();
            let instant = jiff::Timestamp::from_microsecond(time.as_micros()).unwrap();
            prop_assert_eq!(local.to_datetime(instant).date(), date(2026, 1, 1) + day.days());
        }
    }

    #[test]
    fn no_text_makes_it_panic(cron in "[0-9*/,A-Za-z# -]{0,30}", zone in ".{0,20}") {
        let _ = Timing::new(&cron, "UTC");
        let _ = Timing::new("0 0 * * *", &zone);
    }
}
