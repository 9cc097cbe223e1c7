//! A label for every layer of a build.

/// Adds a label at the beginning of each stage of a Dockerfile, so that all its layers have it. Lines that may be part of
/// another instruction begin no stage.
pub(crate) fn with_label(dockerfile: &str, label: &str) -> String {
    let mut labelled = String::with_capacity(dockerfile.len() + 256);
    // Inside an instruction, and inside a `FROM`.
    let (mut continues, mut is_from) = (false, false);
    for line in dockerfile.split_inclusive('\n') {
        labelled.push_str(line);
        let text = line.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        if !continues {
            let text = text.trim_start_matches('\u{feff}');
            let keyword = text.split(char::is_whitespace).next().unwrap_or_default();
            is_from = keyword.eq_ignore_ascii_case("FROM");
        }
        continues = text.ends_with(['\\', '`']);
        if is_from && !continues {
            if !line.ends_with('\n') {
                labelled.push('\n');
            }
            labelled.push_str("LABEL ");
            labelled.push_str(label);
            labelled.push('\n');
            is_from = false;
        }
    }
    labelled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stage_begins_with_the_label() {
        for (text, expected) in [
            ("FROM a", "FROM a\nLABEL k=1\n"),
            (
                "# FROM x\nfrom a AS b\nRUN x \\\n  FROM y\n",
                "# FROM x\nfrom a AS b\nLABEL k=1\nRUN x \\\n  FROM y\n",
            ),
            ("FROM a \\\n# comment\n\n AS b\nRUN x\n", "FROM a \\\n# comment\n\n AS b\nLABEL k=1\nRUN x\n"),
            (
                "ARG V=1\r\nFROM a:$V\r\nFROM b\r\n",
                "ARG V=1\r\nFROM a:$V\r\nLABEL k=1\nFROM b\r\nLABEL k=1\n",
            ),
            ("\u{feff}FROM a\n", "\u{feff}FROM a\nLABEL k=1\n"),
            ("ONBUILD RUN FROM\nFROMAGE a\n", "ONBUILD RUN FROM\nFROMAGE a\n"),
            ("FROM a \\", "FROM a \\"),
        ] {
            assert_eq!(with_label(text, "k=1"), expected, "{text:?}");
        }
    }
}
