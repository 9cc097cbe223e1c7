//! `bench run --config FILE`: options of a run from a TOML file.
//!
//! The file's keys become options in front of those of the command line, so that they are parsed, checked and reported like
//! typed ones. An option on the command line replaces the file's, lists included; both win over variables.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use bench_domain::similar::most_similar;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use toml::{Table, Value};

/// Maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Options that aren't settings of a run.
const EXCLUDED: [&str; 4] = ["config", "help", "resume", "verbose"];
/// Options that replace each other: if the command line gives one, the file's others don't count.
const ALTERNATIVES: [&[&str]; 3] =
    [&["item", "subset_count", "subset_pct"], &["reasoning_effort", "thinking_budget"], &["dataset", "demo"]];

/// Returns the command line with the options of the file that it names, or `None` if it names none. `matches` are those of
/// the command line alone.
pub(crate) fn with_config(
    args: &[OsString],
    command: &Command,
    matches: &ArgMatches,
) -> Result<Option<Vec<OsString>>, clap::Error> {
    let Some(("run", of_run)) = matches.subcommand() else { return Ok(None) };
    let Some(file) = of_run.get_one::<std::path::PathBuf>("config") else { return Ok(None) };
    let Some(run) = command.find_subcommand("run") else { return Ok(None) };
    let table = read(file)?;
    let is_given = |id: &str| {
        of_run.try_contains_id(id).is_ok() && of_run.value_source(id) == Some(ValueSource::CommandLine)
    };
    let options = options(&table, run, &is_given).map_err(|problem| error(file, &problem))?;
    let at = args.iter().position(|arg| arg == "run").map_or(args.len(), |at| at + 1);
    let (before, after) = args.split_at(at);
    Ok(Some(before.iter().chain(&options).chain(after).cloned().collect()))
}

/// Adds the file's name to an error about one of its values.
pub(crate) fn with_file_name(mut error: clap::Error, matches: &ArgMatches) -> clap::Error {
    let file = matches.subcommand_matches("run").and_then(|run| run.get_one::<std::path::PathBuf>("config"));
    let (Some(file), true) = (file, error.get(ContextKind::Suggested).is_none()) else { return error };
    // Values of the command line alone were checked before.
    let tip: StyledStr = format!("the value comes from `{}`", file.display()).into();
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    error
}

fn error(file: &Path, problem: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::InvalidValue, format!("--config: `{}`: {problem}\n", file.display()))
}

fn read(file: &Path) -> Result<Table, clap::Error> {
    let unreadable = |problem: std::io::Error| error(file, &format!("could not be read: {problem}"));
    if std::fs::metadata(file).map_err(unreadable)?.len() > FILE_BYTES_MAX {
        return Err(error(file, &format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    let bytes = std::fs::read(file).map_err(unreadable)?;
    let text = String::from_utf8(bytes).map_err(|_| error(file, "it is not a text in UTF-8"))?;
    text.parse::<Table>().map_err(|problem| {
        let start = problem.span().map_or(0, |span| span.start).min(text.len());
        let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
        error(file, &format!("it is not TOML: line {line}: {}", problem.message().replace('\n', ", ")))
    })
}

/// Converts the keys of a file to options of `bench run`, without those that the command line replaces.
fn options(table: &Table, run: &Command, is_given: &dyn Fn(&str) -> bool) -> Result<Vec<OsString>, String> {
    let mut options: Vec<OsString> = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (key, value) in table {
        let arg = find(run, key).ok_or_else(|| unknown(run, key))?;
        let id = arg.get_id().as_str();
        if seen.contains(&id) {
            return Err(format!("`{key}` is given twice, under two names"));
        }
        seen.push(id);
        let values = values(arg, key, value)?;
        let replaced = ALTERNATIVES.iter().filter(|ids| ids.contains(&id)).flat_map(|ids| ids.iter());
        if !(is_given(id) || replaced.copied().any(is_given)) {
            options.extend(values);
        }
    }
    Ok(options)
}

/// Finds the option that a key names, with hyphens or underscores.
fn find<'a>(run: &'a Command, key: &str) -> Option<&'a Arg> {
    let name = key.replace('_', "-");
    run.get_arguments().filter(|arg| !EXCLUDED.contains(&arg.get_id().as_str())).find(|arg| {
        arg.get_long() == Some(name.as_str())
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name.as_str()))
    })
}

fn unknown(run: &Command, key: &str) -> String {
    let shown: String = key.chars().take(64).collect();
    let name = shown.replace('_', "-");
    if EXCLUDED.contains(&name.as_str()) {
        return format!("`{shown}` can't be set in a file");
    }
    let names = run.get_arguments().filter(|arg| !EXCLUDED.contains(&arg.get_id().as_str()));
    match most_similar(&name, names.filter_map(Arg::get_long)) {
        Some(known) => format!("`{shown}` is not an option of `bench run`; did you mean `{known}`?"),
        None => format!("`{shown}` is not an option of `bench run`; `bench run --help` lists them"),
    }
}

/// Converts a value to options. A list repeats the option, `true` gives a switch, and a table becomes JSON where JSON is
/// expected.
fn values(arg: &Arg, key: &str, value: &Value) -> Result<Vec<OsString>, String> {
    let long = arg.get_long().unwrap_or_default();
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    let is_list = matches!(arg.get_action(), ArgAction::Append);
    let option = |text: &str| {
        let mut option = OsString::from(format!("--{long}="));
        option.push(OsStr::new(text));
        option
    };
    Ok(match value {
        Value::Boolean(on) if is_switch => on.then(|| format!("--{long}").into()).into_iter().collect(),
        _ if is_switch => return Err(format!("`{key}` must be true or false")),
        Value::Array(list) if is_list => {
            let texts = list
                .iter()
                .map(|value| scalar(value).ok_or_else(|| format!("`{key}` must be a list of texts")));
            let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
            texts.iter().map(|text| option(text)).collect()
        }
        Value::Array(_) => return Err(format!("`{key}` takes one value, not a list")),
        Value::Table(_) if long == "extra-body" => {
            let json = json(value).ok_or_else(|| format!("`{key}` has a value that JSON doesn't have"))?;
            vec![option(&json.to_string())]
        }
        Value::Table(_) => {
            return Err(format!("`{key}` takes a value, not a table: write its settings one by one"));
        }
        other => scalar(other).iter().map(|text| option(text)).collect(),
    })
}

/// Returns a single value as it is typed on the command line.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(flag) => Some(flag.to_string()),
        Value::Datetime(time) => Some(time.to_string()),
        Value::Array(_) | Value::Table(_) => None,
    }
}

/// Converts a value to JSON. `None` for times and for numbers that aren't finite.
fn json(value: &Value) -> Option<serde_json::Value> {
    Some(match value {
        Value::String(text) => text.clone().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::Datetime(_) => return None,
        Value::Array(list) => serde_json::Value::Array(list.iter().map(json).collect::<Option<_>>()?),
        Value::Table(table) => {
            let fields = table.iter().map(|(name, value)| Some((name.clone(), json(value)?)));
            serde_json::Value::Object(fields.collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests;
