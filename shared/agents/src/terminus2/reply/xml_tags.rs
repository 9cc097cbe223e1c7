//! Tags in the content of a `<response>` element.

use std::collections::HashSet;

use crate::python::is_space;

/// Returns the names of tags that aren't inside others, each once, in the order of the text.
///
/// Every closing tag closes one level, whatever its name, and comments end at their first `>`.
pub(super) fn top_level_tags(content: &str) -> Vec<&str> {
    let (mut names, mut seen, mut depth) = (Vec::new(), HashSet::new(), 0_i64);
    let mut rest = content;
    while let Some((tag, after)) = next_tag(rest) {
        rest = after;
        match tag.chars().next() {
            Some('!' | '?') => continue,
            Some('/') => {
                depth -= 1;
                continue;
            }
            _ => {}
        }
        let name = tag_name(tag);
        if depth == 0 && seen.insert(name) {
            names.push(name);
        }
        depth += i64::from(!tag.ends_with('/'));
    }
    names
}

/// Returns the text between the next `<` and the `>` after it, and what follows.
fn next_tag(text: &str) -> Option<(&str, &str)> {
    text.split_once('<')?.1.split_once('>')
}

fn tag_name(tag: &str) -> &str {
    // Only a space separates the name from attributes; other blanks do so if there is a space, too.
    let name = match tag.contains(' ') {
        true => tag.split(is_space).find(|part| !part.is_empty()).unwrap_or_default(),
        false => tag,
    };
    name.strip_suffix('/').unwrap_or(name)
}

/// Counts opening and empty tags of a section.
pub(super) fn count_tags(content: &str, name: &str) -> usize {
    tags(content, name).count()
}

/// Returns the place of the first one.
pub(super) fn first_tag(content: &str, name: &str) -> Option<usize> {
    tags(content, name).next()
}

fn tags<'a>(content: &'a str, name: &str) -> impl Iterator<Item = usize> + 'a {
    let length = name.len() + 1;
    let is_end = |rest: &str| rest.starts_with(|c| c == '>' || is_space(c)) || rest.starts_with("/>");
    let places: Vec<_> = content.match_indices(&format!("<{name}")).map(|(at, _)| at).collect();
    places.into_iter().filter(move |at| content.get(at + length..).is_some_and(is_end))
}
