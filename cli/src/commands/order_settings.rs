//! Plain fields of an order: parsing, sending and display in `bench run` and `bench schedules`.

use bench_domain::Generation;
use bench_runs::Order;
use clap::{Arg, Args};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::format;

/// Options of `bench run` and the variables that replace them. `bench schedules` reads no variables: an edit changes
/// only what the command line gives.
const VARIABLES: [(&str, &str); 3] =
    [("samples", "BENCH_SAMPLES"), ("temperature", "BENCH_TEMPERATURE"), ("max_tokens", "BENCH_MAX_TOKENS")];

/// Fields of an order whose option, field in requests and field in views are the same value under the same name.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
pub(crate) struct OrderSettings {
    /// Samples per item: how many times the model answers each item [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "K", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) samples: Option<u32>,
    /// Temperature of the model, 0 to 2 [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "T", value_parser = parse_temperature)]
    pub(crate) temperature: Option<f64>,
    /// Maximum length of an answer in tokens, including reasoning [default: the benchmark's own]
    #[arg(long, help_heading = "Generation", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) max_tokens: Option<u32>,
}

impl OrderSettings {
    /// Sets the fields of an order in this process.
    pub(crate) fn set_in(&self, order: &mut Order) {
        let Self { samples, temperature, max_tokens } = *self;
        order.samples = samples;
        order.generation = Generation { temperature, max_tokens, ..Generation::default() };
    }

    /// Returns the given fields for a request.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(self) else { return Map::new() };
        fields.retain(|_, value| !value.is_null());
        fields
    }

    /// Returns names and values for people.
    pub(crate) fn shown(&self) -> Vec<(&'static str, Option<String>)> {
        let Self { samples, temperature, max_tokens } = *self;
        vec![
            ("samples", samples.map(|samples| samples.to_string())),
            ("temperature", temperature.map(|temperature| temperature.to_string())),
            ("max tokens", max_tokens.map(|tokens| format::count(tokens.into()))),
        ]
    }
}

/// Adds the variable that replaces an option of `bench run`.
pub(crate) fn with_variable(arg: Arg) -> Arg {
    match VARIABLES.iter().find(|(id, _)| arg.get_id() == id) {
        Some((_, variable)) => arg.env(variable),
        None => arg,
    }
}

/// Parses a temperature.
pub(crate) fn parse_temperature(text: &str) -> Result<f64, String> {
    let temperature = text.trim().parse::<f64>().ok().filter(|temperature| (0.0..=2.0).contains(temperature));
    temperature.ok_or_else(|| "it must be a number from 0 to 2".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_given_is_sent_set_and_shown() {
        let command = OrderSettings::augment_args(Command::new("order"));
        let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        assert_eq!(ids, VARIABLES.map(|(id, _)| id), "every option of `bench run` has a variable");
        let args = ["order", "--samples", "3", "--temperature", "0.5", "--max-tokens", "4096"];
        let matches = command.try_get_matches_from(args).unwrap();
        let settings = OrderSettings::from_arg_matches(&matches).unwrap();

        let sent = json!({ "samples": 3, "temperature": 0.5, "max_tokens": 4096 });
        assert_eq!(Value::Object(settings.fields()), sent);
        let mut order = Order::default();
        settings.set_in(&mut order);
        let generation = &order.generation;
        let set = json!({
            "samples": order.samples, "temperature": generation.temperature, "max_tokens": generation.max_tokens,
        });
        assert_eq!(set, sent);
        let shown: Vec<_> =
            settings.shown().into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let expected = [("samples", "3"), ("temperature", "0.5"), ("max tokens", "4,096")];
        assert_eq!(shown, expected.map(|(name, value)| (name, value.to_owned())));

        assert_eq!(OrderSettings::default().fields(), Map::new());
        assert!(OrderSettings::default().shown().iter().all(|(_, value)| value.is_none()));
    }
}
