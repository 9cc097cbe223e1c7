//! Command line of the configuration reader.

mod config;
mod cursor;
mod error;
mod parse;
mod value;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::config::Config;

const USAGE: &str = "usage: layerconf dump FILE | layerconf get KEY FILE";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["dump", file] => dump(file),
        ["get", key, file] => get(key, file),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn dump(file: &str) -> Result<String, String> {
    let config = Config::load(file).map_err(|error| error.to_string())?;
    Ok(config.iter().map(|(key, value)| format!("{key} = {value}\n")).collect())
}

fn get(key: &str, file: &str) -> Result<String, String> {
    let config = Config::load(file).map_err(|error| error.to_string())?;
    let value = config.get(key).ok_or_else(|| format!("unknown key `{key}`"))?;
    Ok(format!("{}\n", value.to_plain()))
}
