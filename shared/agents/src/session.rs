//! Shell commands for a tmux session. They run as the agent's user, in the container.

use std::collections::BTreeMap;

use crate::python::quote;

/// Name of the tmux session in which `terminus-2` works.
pub const SESSION: &str = "terminus-2";
/// Prints the pane with everything that has scrolled away.
pub const CAPTURE_HISTORY: &str = "tmux capture-pane -p -S - -t terminus-2";
/// Prints the visible part of the pane.
pub const CAPTURE_SCREEN: &str = "tmux capture-pane -p -t terminus-2";
/// Succeeds while the session lives.
pub const HAS_SESSION: &str = "tmux has-session -t terminus-2";
/// Lines of history that the session keeps. Its failure can be ignored.
pub const KEEP_HISTORY: &str = "tmux set-option -g history-limit 10000000";
/// Ends the recording. It is complete half a second later.
pub const STOP_RECORDING: &str = "tmux send-keys -t terminus-2 -- C-d";

/// Returns the command that starts the session with a login shell, and copies its output to a file.
///
/// Names of variables consist of letters, digits and underscores; values are any text.
pub fn start_session(
    columns: u16,
    rows: u16,
    pane_log: &str,
    variables: &BTreeMap<String, String>,
) -> String {
    let options = variables.iter().map(|(name, value)| format!("-e {} ", quote(&format!("{name}={value}"))));
    let options: String = options.collect();
    // tmux hands the command to a shell, so the path is quoted twice if it has to be quoted at all.
    let copy = quote(&format!("cat > {}", quote(pane_log)));
    format!(
        "export TERM=xterm-256color && export SHELL=/bin/bash && tmux new-session {options}-x {columns} -y {rows} -d \
         -s {SESSION} 'bash --login' \\; pipe-pane -t {SESSION} {copy}"
    )
}

/// Returns the commands that start the recording of the terminal into a file. One second passes after the first one.
pub fn start_recording(path: &str) -> [String; 2] {
    let record = quote(&format!("asciinema rec --stdin {}", quote(path)));
    [
        format!("tmux send-keys -t {SESSION} -- {record} Enter"),
        format!("tmux send-keys -t {SESSION} -- clear Enter"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_the_official_ones() {
        let variables =
            BTreeMap::from([("A".to_owned(), "b c".to_owned()), ("D".to_owned(), "e'".to_owned())]);
        assert_eq!(
            start_session(160, 40, "/logs/agent/terminus_2.pane", &variables),
            "export TERM=xterm-256color && export SHELL=/bin/bash && tmux new-session -e 'A=b c' -e 'D=e'\"'\"'' -x 160 \
             -y 40 -d -s terminus-2 'bash --login' \\; pipe-pane -t terminus-2 'cat > /logs/agent/terminus_2.pane'"
        );
        assert_eq!(
            start_recording("/logs/agent/recording.cast"),
            [
                "tmux send-keys -t terminus-2 -- 'asciinema rec --stdin /logs/agent/recording.cast' Enter",
                "tmux send-keys -t terminus-2 -- clear Enter",
            ]
        );
    }
}
