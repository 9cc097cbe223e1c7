//! The Python programs that run in the sandbox: they need its standard library only.

use std::fmt::Write;

/// Defines a program: what all of them have, its own files, and the end that calls the last one's `main`.
macro_rules! program {
    ($name:ident, $end:literal, $($file:literal),+) => {
        pub(crate) const $name: &str = concat!(
            include_str!("scripts/docker.py"),
            $("\n\n", include_str!(concat!("scripts/", $file)),)+
            "\n\n",
            include_str!(concat!("scripts/", $end))
        );
    };
}

program!(UNPACK, "operation.py", "unpack.py");
program!(RESOLVE, "operation.py", "resolve.py");
program!(BUILD, "operation.py", "lock.py", "build.py");
program!(START, "operation.py", "start.py");
program!(EXEC, "operation.py", "api.py", "exec.py");
program!(CHECK_HEALTH, "operation.py", "api.py", "exec.py", "health.py");
program!(TYPE_KEYS, "operation.py", "api.py", "exec.py", "type.py");
program!(PUT, "operation.py", "put.py");
program!(FETCH, "operation.py", "fetch.py");
program!(PROBE, "query.py", "probe.py");
program!(REMOVE, "query.py", "remove.py");
program!(LEFTOVERS, "query.py", "leftovers.py");
program!(SWITCH_NETWORK, "query.py", "network.py");

/// Returns the shell command that runs a program with these arguments.
pub(crate) fn command_line(program: &str, arguments: &[&str]) -> String {
    let mut line = format!("exec python3 -I -S -X utf8 -c {}", quoted(program));
    for argument in arguments {
        // Writing to a string never fails.
        let _ = write!(line, " {}", quoted(argument));
    }
    line
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_the_program_as_they_are() {
        let line = command_line("import sys; print(sys.argv[1:])", &["it's", "$(x) `y` \"z\"", ""]);
        let output = std::process::Command::new("bash").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "[\"it's\", '$(x) `y` \"z\"', '']\n");
    }
}
