//! Keystrokes as shell commands that hand them to tmux.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::python::quote;
use crate::session::SESSION;

/// Maximum length of a `tmux send-keys` command in bytes. tmux refuses commands above about 16 KiB.
const SEND_COMMAND_BYTES_MAX: usize = 16_000;
/// Length of the chunks in which long keystrokes are written, in characters of base64.
const CHUNK_CHARS: usize = 65_536;

/// Keystrokes to send, and the time to wait afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Keystrokes {
    /// Text or names of keys, such as `C-c`, word for word.
    pub keys: String,
    /// Seconds to wait: at most 60, otherwise as the model wrote it. 0 if that wasn't a number.
    pub duration_s: f64,
}

impl Keystrokes {
    /// Returns the wait after sending in milliseconds, counted from the moment of sending. It doesn't depend on what
    /// the program does.
    pub fn wait_ms(&self) -> u64 {
        // Negative durations become 0.
        (self.duration_s * 1_000.0) as u64
    }

    /// Returns the shell commands that type the keystrokes in [`SESSION`], to be run one after the other.
    ///
    /// Keystrokes that fit are one `tmux send-keys` with one argument, so that names of keys work. Longer ones are
    /// pasted; see [`Keystrokes::paste_commands`]. NUL characters, which no argument can have, are left out.
    pub fn send_commands(&self, token: &str) -> Vec<String> {
        let keys = self.keys.replace('\0', "");
        let command = format!("tmux send-keys -t {SESSION} -- {}", quote(&keys));
        match command.len() <= SEND_COMMAND_BYTES_MAX {
            true => vec![command],
            false => self.paste_commands(token),
        }
    }

    /// Returns the shell commands that paste the keystrokes: chunks are collected in a file, which tmux loads and
    /// pastes.
    ///
    /// They are also used if tmux refuses a command with `command too long`. The token is in the names of file and
    /// buffer, so it consists of letters, digits and dashes, and differs from that of other keystrokes in the same
    /// environment. Names of keys aren't keys in pasted text, but none is so long. The last command removes the file
    /// and belongs after the others also if one of them fails.
    pub fn paste_commands(&self, token: &str) -> Vec<String> {
        if self.keys.is_empty() {
            return Vec::new();
        }
        let file = quote(&format!("/tmp/.bench-paste-{token}"));
        let buffer = quote(&format!("bench-paste-{token}"));
        let encoded = STANDARD.encode(&self.keys);
        let mut commands = Vec::new();
        let mut rest = encoded.as_str();
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at_checked(CHUNK_CHARS).unwrap_or((rest, ""));
            let redirect = if commands.is_empty() { ">" } else { ">>" };
            commands.push(format!("printf %s {chunk} | base64 -d {redirect} {file}"));
            rest = after;
        }
        commands.push(format!(
            "tmux load-buffer -b {buffer} {file} && tmux paste-buffer -d -b {buffer} -t {SESSION}"
        ));
        commands.push(format!("rm -f {file}"));
        commands
    }
}
