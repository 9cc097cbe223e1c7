//! Options of the agents.

use std::collections::BTreeMap;

use bench_agents::bash::BashSettings;
use bench_agents::terminus2::{ReplyFormat, Terminus2Settings};

fn options(given: &[(&str, &str)]) -> BTreeMap<String, String> {
    given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn options_are_read_by_their_official_names() {
    assert_eq!(Terminus2Settings::parse(&options(&[])).unwrap(), Terminus2Settings::default());
    let settings = Terminus2Settings::parse(&options(&[
        ("parser_name", "xml"),
        ("episodes", "50"),
        ("enable_summarize", "False"),
        ("proactive_summarization_threshold", "0"),
        ("tmux_pane_width", "80"),
        ("max_cost_usd", "1.5"),
        ("max_time_sec", "60"),
    ]));
    let settings = settings.unwrap();
    assert_eq!((settings.format, settings.turns_max, settings.is_summarizing), (ReplyFormat::Xml, 50, false));
    assert_eq!((settings.summary_threshold_tokens, settings.columns, settings.rows), (0, 80, 40));
    assert_eq!((settings.budget.cost_usd_max, settings.budget.time_ms_max), (Some(1.5), Some(60_000)));
    let settings =
        BashSettings::parse(&options(&[("folder", "/work"), ("command_timeout_sec", "5")]), "/app");
    let expected =
        BashSettings { folder: "/work".into(), command_time_ms: 5_000, ..BashSettings::new("/app") };
    assert_eq!(settings.unwrap(), expected);
}

#[test]
fn mistakes_are_named_in_one_sentence() {
    let long = "9".repeat(2_000);
    for (given, message) in [
        (("parser_name", "yaml"), "option `parser_name` must be `json` or `xml`, not `yaml`"),
        (("max_turns", "0"), "option `max_turns` must be a number from 1 to 1000000, not `0`"),
        (("max_turns", "1.5"), "option `max_turns` must be a number from 1 to 1000000, not `1.5`"),
        (("max_cost_usd", "NaN"), "option `max_cost_usd` must be a number from 0 to 1000000, not `NaN`"),
        (("enable_summarize", "ye\u{1b}s"), "option `enable_summarize` must be `true` or `false`, not `yes`"),
        (
            ("max_tokens", long.as_str()),
            "option `max_tokens` must be a number from 1 to 1000000000000, not `99999999999999999999999999999999999999999999999999`",
        ),
        (
            ("temprature", "1"),
            "agent `terminus-2` has no option `temprature`; its options are `parser_name`, `max_turns`, `enable_summarize`, \
             `proactive_summarization_threshold`, `max_input_tokens`, `max_output_tokens`, `tmux_pane_width`, \
             `tmux_pane_height`, `record_terminal_session`, `max_tokens`, `max_cost_usd`, `max_time_sec`",
        ),
    ] {
        assert_eq!(Terminus2Settings::parse(&options(&[given])).unwrap_err().to_string(), message);
    }
    let twice = Terminus2Settings::parse(&options(&[("max_turns", "1"), ("episodes", "2")])).unwrap_err();
    assert_eq!(twice.to_string(), "option `max_turns` is given twice, also as `episodes`: leave one out");
    let relative = BashSettings::parse(&options(&[("folder", "app")]), "/app").unwrap_err();
    assert_eq!(
        relative.to_string(),
        "option `folder` must be an absolute path without control characters, not `app`"
    );
}
