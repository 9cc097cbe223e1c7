//! Complete replies at the beginning of a text that the length limit cut.

use super::{ReplyFormat, parse_reply};

/// Returns the beginning of a cut reply up to `</response>`, if that is a flawless reply with commands.
///
/// Warnings are accepted, except those about several blocks, since the cut may have removed the one that the model
/// meant. The official function does the same; its caller then fails, so an official run ends there.
pub fn salvage_truncated_xml(reply: &str) -> Option<&str> {
    let commands_end = reply.find("</commands>")?;
    let response_end = commands_end + reply.get(commands_end..)?.find("</response>")?;
    let complete = reply.get(..response_end + "</response>".len())?;
    let parsed = parse_reply(ReplyFormat::Xml, complete);
    let warning = parsed.warning.to_lowercase();
    let has_several = warning.contains("only issue one") && warning.contains("block at a time");
    (parsed.error.is_empty() && !has_several).then_some(complete)
}
