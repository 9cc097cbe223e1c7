//! Replies that are a `<response>` element. They aren't XML: contents are taken word for word.

use std::sync::LazyLock;

use regex::Regex;

use super::xml_commands::read_commands;
use super::xml_tags::{count_tags, first_tag, top_level_tags};
use super::{ParsedReply, Warnings, order_warning};
use crate::python::strip;

/// Sections, in the order that is asked for.
const SECTIONS: [&str; 3] = ["analysis", "plan", "commands"];

/// Parses a reply.
pub(super) fn parse(reply: &str) -> ParsedReply {
    let mut warnings = Warnings::default();
    check_surroundings(reply, &mut warnings);
    let content = response_content(reply).unwrap_or_default();
    if content.is_empty() {
        return warnings.into_error("No <response> tag found");
    }
    let is_complete = says_complete(content);
    let [analysis, plan, commands] = SECTIONS.map(|name| section(content, name));
    for (name, found) in SECTIONS.iter().zip([analysis, plan, commands]) {
        if found.is_none() {
            warnings.add(format!("Missing <{name}> section"));
        }
    }
    check_tags(content, &mut warnings);
    let mut parsed = ParsedReply {
        is_complete,
        analysis: analysis.unwrap_or_default().to_owned(),
        plan: plan.unwrap_or_default().to_owned(),
        ..ParsedReply::default()
    };
    match commands {
        None if is_complete => {}
        None => "Missing <commands> section".clone_into(&mut parsed.error),
        Some("") if is_complete => {}
        Some("") => warnings.add(
            "Commands section is empty; not taking any action. If you want to wait a specific amount of time please use \
             `sleep`, but if you're waiting for a command to finish then continue to wait.",
        ),
        Some(commands) => parsed.commands = read_commands(commands, &mut warnings),
    }
    parsed.warning = warnings.into_lines();
    parsed
}

fn check_surroundings(reply: &str, warnings: &mut Warnings) {
    let Some(start) = reply.find("<response>") else { return };
    if reply.get(..start).is_some_and(|before| !strip(before).is_empty()) {
        warnings.add("Extra text detected before <response> tag");
    }
    let after = reply.split_once("</response>").map_or("", |(_, after)| after);
    if strip(after).is_empty() {
        return;
    }
    warnings.add("Extra text detected after </response> tag");
    let count = reply.matches("<response>").count();
    if count > 1 {
        warnings.add(only_first("response", count));
    }
}

fn only_first(name: &str, count: usize) -> String {
    format!(
        "IMPORTANT: Only issue one <{name}> block at a time. You issued {count} and only the first was executed."
    )
}

/// Returns the content of the first element, which ends with the reply if it isn't closed.
fn response_content(reply: &str) -> Option<&str> {
    let (_, after) = reply.split_once("<response>")?;
    Some(strip(after.split_once("</response>").map_or(after, |(content, _)| content)))
}

/// Looks for a confirmation anywhere in the content, also in the text of commands.
fn says_complete(content: &str) -> bool {
    static COMPLETE: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"(?i)<task_complete>[\s\x1c-\x1f]*true[\s\x1c-\x1f]*</task_complete>").ok()
    });
    COMPLETE.as_ref().is_some_and(|complete| complete.is_match(content))
}

/// Returns the text of a section; an empty one for `<name/>`, `None` if there is none.
fn section<'a>(content: &'a str, name: &str) -> Option<&'a str> {
    let closed = content
        .split_once(&format!("<{name}>"))
        .and_then(|(_, after)| after.split_once(&format!("</{name}>")))
        .map(|(text, _)| strip(text));
    closed.or_else(|| has_empty(content, name).then_some(""))
}

/// Looks for `<name/>`, with blanks before the slash.
fn has_empty(content: &str, name: &str) -> bool {
    let opening = format!("<{name}");
    content.match_indices(&opening).any(|(at, _)| {
        content.get(at + opening.len()..).is_some_and(|rest| strip_start(rest).starts_with("/>"))
    })
}

fn strip_start(text: &str) -> &str {
    text.trim_start_matches(crate::python::is_space)
}

fn check_tags(content: &str, warnings: &mut Warnings) {
    let is_known = |tag: &str| SECTIONS.contains(&tag) || tag == "task_complete";
    for tag in top_level_tags(content).into_iter().filter(|tag| !is_known(tag)) {
        warnings.add(format!("Unknown tag found: <{tag}>, expected analysis/plan/commands/task_complete"));
    }
    for name in SECTIONS.into_iter().chain(["task_complete"]) {
        match count_tags(content, name) {
            0 | 1 => {}
            count if name == "commands" => warnings.add(only_first(name, count)),
            _ => warnings.add(format!("Multiple <{name}> sections found")),
        }
    }
    let found = SECTIONS.into_iter().filter_map(|name| Some((name, first_tag(content, name)?)));
    if let Some(warning) = order_warning("Sections", found.collect()) {
        warnings.add(warning);
    }
}
