//! The user's web browser.

use std::env;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::output;

/// Time in which a program that can't open an address fails. One that still works after it has opened the address.
const FAILURE_TIME: Duration = Duration::from_secs(3);
/// Variable with the user's browsers, separated by colons, in the order to try.
const VARIABLE: &str = "BROWSER";
/// Part of an entry of the variable that stands for the address.
const ADDRESS: &str = "%s";

/// Opens an address, or says that the user has to.
pub(crate) async fn open(address: &str) {
    for command in commands(|name| env::var(name).ok(), cfg!(target_os = "macos")) {
        if starts(&command, address).await {
            return;
        }
    }
    output::note(&format!("No browser was found; open this address in one: {address}"));
}

/// Returns the commands to try, each as a program and its arguments.
fn commands(var: impl Fn(&str) -> Option<String>, is_mac: bool) -> Vec<Vec<String>> {
    let chosen = var(VARIABLE).unwrap_or_default();
    let split = |command: &str| command.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut commands: Vec<_> = chosen.split(':').map(split).filter(|words| !words.is_empty()).collect();
    if is_mac {
        commands.push(split("open"));
    } else if ["DISPLAY", "WAYLAND_DISPLAY"]
        .into_iter()
        .any(|name| var(name).is_some_and(|it| !it.is_empty()))
    {
        commands.push(split("xdg-open"));
    } else if var("WSL_DISTRO_NAME").is_some() {
        commands.push(split("wslview"));
    }
    commands
}

/// Starts a command with the address. Returns false if it fails soon.
async fn starts(command: &[String], address: &str) -> bool {
    let Some((program, args)) = command.split_first() else { return false };
    let mut args: Vec<String> = args.iter().map(|arg| arg.replace(ADDRESS, address)).collect();
    if !command.iter().any(|word| word.contains(ADDRESS)) {
        args.push(address.to_owned());
    }
    let started = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C ends this process, not the browser.
        .process_group(0)
        .spawn();
    let Ok(mut started) = started else { return false };
    match timeout(FAILURE_TIME, started.wait()).await {
        Ok(ended) => ended.is_ok_and(|status| status.success()),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_are_tried_in_order() {
        let found = |vars: &[(&str, &str)], is_mac| {
            let var =
                |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            commands(var, is_mac).iter().map(|words| words.join(" ")).collect::<Vec<_>>()
        };
        assert!(found(&[], false).is_empty());
        assert_eq!(found(&[("DISPLAY", ":0")], false), ["xdg-open"]);
        assert_eq!(found(&[("WAYLAND_DISPLAY", "wayland-0"), ("DISPLAY", "")], false), ["xdg-open"]);
        assert_eq!(found(&[("WSL_DISTRO_NAME", "Debian")], false), ["wslview"]);
        assert_eq!(
            found(&[("BROWSER", "firefox --new-tab: chromium %s:")], true),
            ["firefox --new-tab", "chromium %s", "open"]
        );
    }

    #[tokio::test]
    async fn a_command_gets_the_address_and_may_fail() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(starts(&words("test a ="), "a").await);
        assert!(starts(&words("test %s = a"), "a").await);
        assert!(!starts(&words("test b ="), "a").await);
        assert!(!starts(&words("no-such-program-anywhere"), "a").await);
    }
}
