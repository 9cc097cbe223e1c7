//! One definition of a Python text, written the way `ast.unparse` of Python 3.11 writes it: without comments, with its own
//! blanks, quotes and parentheses.
//!
//! There is no tree: an expression is read straight into the text that it becomes, with the strength of its outermost
//! operator, which tells whoever holds it whether it takes parentheses.

mod brackets;
mod expression;
mod literal;
mod reader;
mod simple;
mod statement;
mod token;

use reader::Reader;

/// What the official program takes from a text: of the functions and classes of that name the one that a walk over the tree
/// meets first, level by level. `None` when there is none.
///
/// Formatted text literals are left as they stand. A text that is not understood here, such as one with `match`, is cut by
/// its lines and left as it stands; one that holds no such line comes back whole, as the official program gives what is not
/// Python.
pub(super) fn definition(text: &str, name: &str) -> Option<String> {
    let tokens = token::tokens(text);
    let Some(module) = tokens.as_deref().and_then(Reader::module) else {
        return Some(by_lines(text, name).unwrap_or_else(|| text.to_owned()));
    };
    let first = module.definitions.iter().filter(|found| found.name == name && !found.is_async);
    // Of equal depth, the first in the text; `min_by_key` keeps that.
    let found = first.min_by_key(|found| found.depth)?;
    let lines = module.lines.get(found.lines.clone())?;
    let lines = lines.iter().map(|line| match line.text.is_empty() {
        true => String::new(),
        false => format!("{}{}", "    ".repeat(line.indent.saturating_sub(found.indent)), line.text),
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// The lines of the outermost definition of that name, moved to the left.
fn by_lines(text: &str, name: &str) -> Option<String> {
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
