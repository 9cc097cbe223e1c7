//! Variants of a response for loose checks, which accept a response if any of eight texts follows an instruction.

use std::borrow::Cow;

use crate::python;

/// Returns a response without its first line, its last line or both, each with and without asterisks. Leaves out
/// variants that are blank or equal to another variant, and the response itself.
pub(super) fn variants(response: &str) -> Vec<Cow<'_, str>> {
    let after_first = response.split_once('\n').map_or("", |(_, after)| after);
    let before_last = response.rsplit_once('\n').map_or("", |(before, _)| before);
    let between = after_first.rsplit_once('\n').map_or("", |(before, _)| before);
    // Parts are trimmed before asterisks are removed, so whitespace that this exposes at the ends stays.
    let parts = [response, python::strip(after_first), python::strip(before_last), python::strip(between)];
    let mut variants: Vec<Cow<'_, str>> = Vec::with_capacity(7);
    for part in parts {
        let remove_marks = part.contains('*').then(|| Cow::Owned(part.replace('*', "")));
        for variant in std::iter::once(Cow::Borrowed(part)).chain(remove_marks) {
            let is_new = variant != response && !variants.contains(&variant);
            if is_new && !python::strip(&variant).is_empty() {
                variants.push(variant);
            }
        }
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_asterisks_are_left_out() {
        for (response, expected) in [
            ("", &[][..]),
            ("one", &[]),
            ("*one*", &["one"]),
            ("a\nb", &["b", "a"]),
            ("a\n\n b \nc", &["b \nc", "a\n\n b", "b"]),
            ("x\n* y *\nz", &["x\n y \nz", "* y *\nz", " y \nz", "x\n* y *", "x\n y ", "* y *", " y "]),
            ("a\r\nb", &["b", "a"]),
            ("a\n**", &["a\n", "**", "a"]),
            (" \n ", &[]),
        ] {
            assert_eq!(variants(response), expected, "{response:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn variants_match_the_definition(response in "[a* \n\r]{0,12}") {
            let lines: Vec<&str> = response.split('\n').collect();
            let join = |lines: &[&str]| python::strip(&lines.join("\n")).to_owned();
            let inner = lines.get(1..lines.len() - 1).map(join).unwrap_or_default();
            let plain = [response.clone(), join(&lines[1..]), join(&lines[..lines.len() - 1]), inner];
            let all = plain.iter().flat_map(|text| [text.clone(), text.replace('*', "")]);
            let expected: std::collections::BTreeSet<String> =
                all.filter(|text| *text != response && !python::strip(text).is_empty()).collect();
            let found: Vec<String> = variants(&response).into_iter().map(Cow::into_owned).collect();
            proptest::prop_assert_eq!(found.len(), expected.len());
            proptest::prop_assert_eq!(found.into_iter().collect::<std::collections::BTreeSet<_>>(), expected);
        }
    }
}
