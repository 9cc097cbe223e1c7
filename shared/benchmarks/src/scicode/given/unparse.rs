//! Extracts one definition from a Python text and writes it as `ast.unparse` of Python 3.11 does: without comments,
//! with normalized whitespace, quotes and parentheses.
//!
//! There is no syntax tree. Each expression is read directly into its output text, together with the precedence of its
//! outermost operator, so that the enclosing expression can add parentheses.

mod brackets;
mod expression;
mod literal;
mod reader;
mod simple;
mod statement;
mod token;

use reader::Reader;

/// Returns the definition that the official program takes from a text: of the functions and classes with this name, the
/// first in a breadth-first walk over the tree. `None` if there is none.
///
/// Formatted string literals stay unchanged. If the text has unsupported syntax, such as `match`, the definition is cut
/// out by lines and stays unchanged. If no line defines the name, the whole text is returned, as the official program
/// does for texts that aren't Python.
pub(super) fn definition(text: &str, name: &str) -> Option<String> {
    let tokens = token::tokens(text);
    let Some(module) = tokens.as_deref().and_then(Reader::module) else {
        return Some(cut_by_lines(text, name).unwrap_or_else(|| text.to_owned()));
    };
    let first = module.definitions.iter().filter(|found| found.name == name && !found.is_async);
    // `min_by_key` returns the first of several definitions with equal depth.
    let found = first.min_by_key(|found| found.depth)?;
    let lines = module.lines.get(found.lines.clone())?;
    let lines = lines.iter().map(|line| match line.text.is_empty() {
        true => String::new(),
        false => format!("{}{}", "    ".repeat(line.indent.saturating_sub(found.indent)), line.text),
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// Returns the lines of the outermost definition with this name, without their common indentation.
fn cut_by_lines(text: &str, name: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let defines = |line: &&str| {
        let named = ["def ", "class "].into_iter().find_map(|word| line.trim_start().strip_prefix(word));
        let after = named.and_then(|named| named.trim_start().strip_prefix(name));
        after.is_some_and(|after| after.trim_start().starts_with(['(', ':']))
    };
    let first = lines.iter().filter(|line| defines(line)).map(|line| indent(line)).min()?;
    let start = lines.iter().position(|line| defines(line) && indent(line) == first)?;
    let body = lines.iter().skip(start + 1);
    let length = body.take_while(|line| line.trim().is_empty() || indent(line) > first).count();
    let cut = lines.get(start..=start + length)?.iter().map(|line| line.get(first..).unwrap_or_default());
    Some(cut.collect::<Vec<_>>().join("\n").trim_end().to_owned())
}

#[cfg(test)]
mod tests;
