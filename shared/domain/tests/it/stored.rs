//! Runs and schedules stored by versions from before the template became a part of the run: this version reads them,
//! and writes them again byte for byte.

use bench_domain::{RunSpec, Schedule};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Run with all fields set.
const RUN: &str = concat!(
    r#"{"id":"3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90","#,
    r#""model":{"id":"5b0c4a52-3b0e-5a53-9f5d-3f8a7c1d2e4b","provider":"openrouter","slug":"acme/model","#,
    r#""base_url":"http://127.0.0.1:9/v1","replay_key":null,"endpoint_host":"127.0.0.1:9"},"#,
    r#""benchmarks":["mmlu_pro","livecodebench"],"selected_benchmarks":["mmlu_pro","livecodebench"],"#,
    r#""subset":{"pct":5,"count":18446744073709551615,"seed":"s"},"items":["q1","=1"],"item_naming":"source-id","#,
    r#""samples":3,"generation":{"temperature":0.1,"top_p":0.95,"max_tokens":2048,"stop":["\n"],"seed":-9007199254740993},"#,
    r#""datasets":{"livecodebench":{"from":"demo"},"mmlu_pro":{"from":"local","revision":"abcd"}},"#,
    r#""protocols":{"mmlu_pro":"five-shot"},"options":{"livecodebench":{"release":"v6"}},"#,
    r#""judge":{"model":{"id":"5b0c4a52-3b0e-5a53-9f5d-3f8a7c1d2e4b","provider":"oracle","slug":"oracle","#,
    r#""base_url":null,"replay_key":null},"auth":"system","generation":{"temperature":null,"top_p":null,"#,
    r#""max_tokens":null,"stop":[],"seed":7},"price":null},"#,
    r#""rejudges":{"run":"00000000-0000-4000-8000-000000000001","version":2},"#,
    r#""owner":{"kind":"key","id":"ab12"},"auth":"api_key","config":"{\"x\":1}","coverage_min":0.9,"#,
    r#""price":{"input_per_million_usd":0.3,"output_per_million_usd":1.0},"budget":{"usd":2.5,"tokens":1000},"#,
    r#""schedule":"00000000-0000-4000-8000-000000000002","software":"0.1.0","#,
    r#""created_at":"2026-01-02T03:04:05.678901Z"}"#,
);

/// Run with only the required fields set.
const PLAIN_RUN: &str = concat!(
    r#"{"id":"3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90","#,
    r#""model":{"id":"5b0c4a52-3b0e-5a53-9f5d-3f8a7c1d2e4b","provider":"oracle","slug":"oracle","#,
    r#""base_url":null,"replay_key":null},"benchmarks":["mmlu_pro"],"selected_benchmarks":null,"#,
    r#""subset":{"pct":100,"count":null,"seed":null},"items":[],"item_naming":"row-index","samples":null,"#,
    r#""generation":{"temperature":null,"top_p":null,"max_tokens":null,"stop":[],"seed":null},"#,
    r#""datasets":{},"protocols":{},"judge":null,"rejudges":null,"owner":{"kind":"local"},"auth":"system","#,
    r#""config":null,"coverage_min":0.9,"price":null,"budget":{"usd":null,"tokens":null},"schedule":null,"#,
    r#""software":"0.1.0","created_at":"2026-01-02T03:04:05Z"}"#,
);

/// Run of a version that had fewer fields.
const OLD_RUN: &str = concat!(
    r#"{"id":"3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90","#,
    r#""model":{"id":"5b0c4a52-3b0e-5a53-9f5d-3f8a7c1d2e4b","provider":"oracle","slug":"oracle"},"#,
    r#""benchmarks":["mmlu_pro"],"subset":{"pct":100},"owner":{"kind":"local"},"auth":"system","#,
    r#""coverage_min":0.9,"software":"0.1.0","created_at":"2026-01-02T03:04:05Z","some_day":1}"#,
);

const SCHEDULE: &str = concat!(
    r#"{"id":"00000000-0000-4000-8000-000000000002","name":"nightly","owner":{"kind":"local"},"#,
    r#""timing":{"cron":"30 2 * * *","time_zone":"Europe/Berlin"},"run":{"#,
    r#""model":{"id":"5b0c4a52-3b0e-5a53-9f5d-3f8a7c1d2e4b","provider":"oracle","slug":"oracle","#,
    r#""base_url":null,"replay_key":null},"benchmarks":["mmlu_pro"],"selected_benchmarks":null,"#,
    r#""subset":{"pct":100,"count":5,"seed":"s"},"items":[],"item_naming":"source-id","samples":null,"#,
    r#""generation":{"temperature":null,"top_p":null,"max_tokens":null,"stop":[],"seed":null},"#,
    r#""datasets":{"mmlu_pro":{"from":"demo"}},"protocols":{},"options":{"livecodebench":{"release":"v6"}},"#,
    r#""judge":null,"config":null,"coverage_min":0.9,"price":null,"budget":{"usd":null,"tokens":null}},"#,
    r#""auth":"system","webhook":null,"enabled":true,"created_at":"2026-01-02T03:04:05Z","#,
    r#""updated_at":"2026-01-02T03:04:05Z","next_at":null}"#,
);

fn reserialize<T: DeserializeOwned + Serialize>(stored: &str) -> String {
    serde_json::to_string(&serde_json::from_str::<T>(stored).unwrap()).unwrap()
}

#[test]
fn stored_runs_are_written_as_they_were() {
    assert_eq!(reserialize::<RunSpec>(RUN), RUN);
    assert_eq!(reserialize::<RunSpec>(PLAIN_RUN), PLAIN_RUN);
    assert_eq!(reserialize::<RunSpec>(OLD_RUN), PLAIN_RUN);
}

#[test]
fn stored_schedules_are_written_as_they_were() {
    assert_eq!(reserialize::<Schedule>(SCHEDULE), SCHEDULE);
}
