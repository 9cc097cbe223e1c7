//! Commands that are printed for people to use next.

use std::env;
use std::fmt::Display;
use std::path::Path;
use std::sync::OnceLock;

use crate::client::ServerArgs;
use crate::data_dir::DataArgs;

/// Folder for results unless another one is given.
pub(crate) const OUT_DEFAULT: &str = "bench-results";

/// Options of server and data directory that this process was called with.
static PLACE: OnceLock<String> = OnceLock::new();
/// Option of the folder for results that this process was called with.
static OUT: OnceLock<String> = OnceLock::new();

/// Keeps the options of server and data directory, so that printed commands have them, too.
pub(crate) fn remember(server: &ServerArgs, data: &DataArgs) {
    // A process has one command line.
    let _ = PLACE.set(place(server, data));
}

/// Keeps the folder for results of a command that works on runs, so that printed commands have it, too.
pub(crate) fn remember_out(out: &Path) {
    let _ = OUT.set(results_folder(out));
}

/// Returns the command that continues a run at the same server or in the same data directory.
pub(crate) fn resume(run: impl Display) -> String {
    format!("bench run --resume {run}{}", same_place())
}

/// Returns this command's options for server, data directory and results, with a space in front, for other commands that work on
/// its runs.
pub(crate) fn same_place() -> String {
    [&PLACE, &OUT].into_iter().filter_map(OnceLock::get).map(String::as_str).collect()
}

/// Returns the options of server and data directory, with a space in front. What variables give isn't repeated, except for the
/// server.
fn place(server: &ServerArgs, data: &DataArgs) -> String {
    let data_dir = data.data_dir.as_ref().map(|dir| dir.display().to_string());
    let given = [
        ("--server", server.server().map(str::to_owned)),
        ("--api-key-env", without("BENCH_API_KEY_ENV", server.api_key_env.clone())),
        ("--data-dir", without("BENCH_HOME", data_dir).filter(|_| server.server().is_none())),
    ];
    given.into_iter().filter_map(|(flag, value)| Some(option(flag, &value?))).collect()
}

/// Returns the option of the folder for results, like [`place`]; nothing for the default.
fn results_folder(out: &Path) -> String {
    let out = Some(out.display().to_string()).filter(|out| out != OUT_DEFAULT);
    without("BENCH_OUT", out).map(|out| option("--out", &out)).unwrap_or_default()
}

/// Returns the value unless the variable gives it.
fn without(variable: &str, value: Option<String>) -> Option<String> {
    value.filter(|value| env::var(variable).ok().as_ref() != Some(value))
}

fn option(flag: &str, value: &str) -> String {
    format!(" {flag} {}", shell_word(value.trim()))
}

/// Quotes a word of a command for a POSIX shell, if it needs it.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_has_the_options_of_this_one() {
        let options = |server: &ServerArgs, data: &DataArgs, out: Option<&Path>| {
            place(server, data) + &out.map(results_folder).unwrap_or_default()
        };
        let here = ServerArgs { server: None, api_key_env: Some("MY_KEY".to_owned()) };
        let there = ServerArgs { server: Some(" https://bench.example ".to_owned()), api_key_env: None };
        let data = |dir: Option<&str>| DataArgs { data_dir: dir.map(Into::into) };
        assert_eq!(options(&here, &data(None), Some(Path::new(OUT_DEFAULT))), " --api-key-env MY_KEY");
        assert_eq!(
            options(&here, &data(Some("/a b/it's")), None),
            r" --api-key-env MY_KEY --data-dir '/a b/it'\''s'"
        );
        assert_eq!(
            options(&there, &data(Some("/data")), Some(Path::new("res dir"))),
            " --server https://bench.example --out 'res dir'"
        );
    }
}
