//! Descriptions of prompts and judges, as the command line words them, and texts without markup.

use bench_benchmarks::NO_TEXT_DIGEST;

/// Judge without a model, which compares texts.
const ORACLE: &str = "oracle";

/// Description of a prompt without any text around the item.
const ITEM_TEXT_ALONE: &str = "the item's text alone";

/// Describes the origin of a prompt's texts, and returns their digest unless there are none.
pub(crate) fn prompt<'a>(source: &'a str, digest: &'a str) -> (&'a str, Option<&'a str>) {
    match digest {
        NO_TEXT_DIGEST => (ITEM_TEXT_ALONE, None),
        "" => (source, None),
        digest => (source, Some(digest)),
    }
}

/// Returns what is to be known about a judge that isn't a model.
pub(crate) fn judge_note(model: &str) -> Option<&'static str> {
    (model == ORACLE).then_some("text comparison with the gold answer, no model")
}

/// Returns a text in which code has quotation marks instead of backticks.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    let mut is_open = false;
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`') {
        quoted.push_str(before);
        rest = after.trim_start_matches('`');
        // A mark without a partner is left out.
        if is_open || rest.contains('`') {
            quoted.push(if is_open { '”' } else { '“' });
            is_open = !is_open;
        }
    }
    quoted.push_str(rest);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_quoted() {
        assert_eq!(quoted("`COPY . .` and `ifbench`"), "“COPY . .” and “ifbench”");
        assert_eq!(quoted("``` x ``` a ` b"), "“ x ” a  b");
        assert_eq!(quoted("plain"), "plain");
    }

    #[test]
    fn a_prompt_without_texts_has_no_digest() {
        assert_eq!(prompt("official", NO_TEXT_DIGEST), ("the item's text alone", None));
        assert_eq!(prompt("official", "ab12"), ("official", Some("ab12")));
        assert_eq!(prompt("own", ""), ("own", None));
    }

    #[test]
    fn only_the_oracle_judges_without_a_model() {
        assert_eq!(judge_note("oracle"), Some("text comparison with the gold answer, no model"));
        assert_eq!(judge_note("openrouter/acme/oracle"), None);
    }
}
