//! Checks of a Dockerfile: images, remote sources, and flags that ask the builder for more than the sandbox has.
//!
//! Each line is checked as if an instruction began there, joined with its continuation lines. Builders differ in which
//! lines they join, so this refuses more than necessary, but nothing that any builder takes as an instruction passes
//! unchecked.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::refusal::Refusal;

/// Builder that reads a Dockerfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builder {
    /// The classic builder of dockerd, which refuses flags of `RUN` itself.
    Classic,
    /// Podman's builder, which obeys them.
    Buildah,
}

/// State of a check.
struct Check<'a> {
    file: &'a str,
    builder: Builder,
    /// Values of arguments before the first `FROM`.
    arguments: BTreeMap<String, String>,
    given: &'a Map<String, Value>,
    stages: BTreeSet<String>,
    images: BTreeSet<String>,
    line: usize,
    /// The line could be the continuation of another one, so that it declares nothing.
    is_continuation: bool,
    /// A `FROM` was seen. Arguments after it don't apply to the next one.
    is_in_stage: bool,
}

/// Checks a Dockerfile and returns the images that it builds on or copies from.
pub(crate) fn check_dockerfile(
    file: &str,
    text: &str,
    given: &Map<String, Value>,
    builder: Builder,
) -> Result<BTreeSet<String>, Refusal> {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').split('\n').collect();
    let mut check = Check {
        file,
        builder,
        arguments: BTreeMap::new(),
        given,
        stages: BTreeSet::new(),
        images: BTreeSet::new(),
        line: 0,
        is_continuation: false,
        is_in_stage: false,
    };
    for (number, line) in lines.iter().enumerate() {
        check.line = number + 1;
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            check.directive(comment)?;
        } else if !line.is_empty() {
            check.instruction(&joined(&lines[number..]))?;
            check.is_continuation = line.ends_with(['\\', '`']);
        }
    }
    Ok(check.images)
}

/// Joins a line with its continuation lines, skipping comments and empty lines between them. As in all builders, white
/// space at the beginning of a continuation line separates words.
fn joined(lines: &[&str]) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        if number > 0 && (trimmed.is_empty() || trimmed.starts_with('#')) {
            continue;
        }
        let line = if number > 0 { line.trim_end() } else { trimmed };
        match line.strip_suffix('\\') {
            Some(start) => text.push_str(start),
            None => return text + line,
        }
    }
    text
}

impl Check<'_> {
    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T, Refusal> {
        Err(Refusal::Dockerfile { file: self.file.to_owned(), line: self.line, reason: reason.into() })
    }

    /// Checks a comment. Directives change how the rest is read, or name another builder.
    fn directive(&self, comment: &str) -> Result<(), Refusal> {
        let name = comment.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "escape" if comment.contains('=') => self.refuse("the directive `escape` is not allowed"),
            _ => Ok(()),
        }
    }

    fn instruction(&mut self, text: &str) -> Result<(), Refusal> {
        let (keyword, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        match keyword.to_ascii_uppercase().as_str() {
            "ONBUILD" => self.instruction(rest),
            "FROM" => self.from(rest),
            "ARG" => {
                self.arg(rest);
                Ok(())
            }
            "RUN" => self.run(rest),
            "COPY" | "ADD" => self.copy(keyword, rest),
            _ => Ok(()),
        }
    }

    fn from(&mut self, rest: &str) -> Result<(), Refusal> {
        let words: Vec<_> = rest.split_whitespace().skip_while(|word| word.starts_with("--")).collect();
        let Some(image) = words.first() else { return Ok(()) };
        self.is_in_stage = true;
        self.add_image(image)?;
        if let [_, word, stage, ..] = words[..]
            && !self.is_continuation
            && word.eq_ignore_ascii_case("as")
        {
            self.stages.insert(stage.to_ascii_lowercase());
        }
        Ok(())
    }

    fn arg(&mut self, rest: &str) {
        if self.is_continuation || self.is_in_stage {
            return;
        }
        for pair in rest.split_whitespace() {
            let (name, default) = pair.split_once('=').unwrap_or((pair, ""));
            let value = self.given.get(name).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| default.trim_matches(['"', '\''])).to_owned();
            self.arguments.insert(name.to_owned(), value);
        }
    }

    fn run(&self, rest: &str) -> Result<(), Refusal> {
        self.no_heredoc("RUN", rest)?;
        let flags = rest.split_whitespace().take_while(|word| word.starts_with("--"));
        for flag in flags {
            let name = flag.split('=').next().unwrap_or_default();
            // Podman's builder would give these the machine's network and files.
            if self.builder == Builder::Buildah || name != "--mount" {
                return self.refuse(format!("the flag `{name}` of `RUN` is not allowed"));
            }
        }
        Ok(())
    }

    /// Refuses here-documents, whose lines only some builders take as instructions.
    fn no_heredoc(&self, keyword: &str, rest: &str) -> Result<(), Refusal> {
        if rest.match_indices("<<").any(|(at, _)| is_heredoc(rest.split_at(at))) {
            let advice = "write the lines with `printf`, or copy a file";
            return self.refuse(format!("here-documents in `{keyword}` are not allowed; {advice}"));
        }
        Ok(())
    }

    fn copy(&mut self, keyword: &str, rest: &str) -> Result<(), Refusal> {
        self.no_heredoc(keyword, rest)?;
        for flag in rest.split_whitespace().take_while(|word| word.starts_with("--")) {
            if let Some(image) = flag.strip_prefix("--from=") {
                let is_stage = self.stages.contains(&image.to_ascii_lowercase())
                    || image.bytes().all(|byte| byte.is_ascii_digit());
                if !is_stage {
                    self.add_image(image)?;
                }
            } else if !["--chown=", "--chmod="].iter().any(|known| flag.starts_with(known)) {
                let name = flag.split('=').next().unwrap_or_default();
                return self.refuse(format!("the flag `{name}` of `{keyword}` is not allowed"));
            }
        }
        // The engine would fetch these from its own network, which has the machine's services.
        let is_remote = rest.contains("://") || rest.contains("git@") || rest.contains(".git");
        if keyword.eq_ignore_ascii_case("ADD") && (is_remote || rest.contains('$')) {
            return self.refuse("`ADD` of addresses and of variables is not allowed; use `RUN` to download");
        }
        Ok(())
    }

    /// Adds an image by the name that it has after replacing variables.
    fn add_image(&mut self, name: &str) -> Result<(), Refusal> {
        let Some(image) = self.expand(name.trim_matches(['"', '\''])) else {
            return self.refuse(format!(
                "the image `{name}` can't be determined; use `ARG` with a plain value before `FROM`"
            ));
        };
        let is_stage = self.stages.contains(&image.to_ascii_lowercase());
        if image != "scratch" && !is_stage {
            self.images.insert(image);
        }
        Ok(())
    }

    /// Replaces `$NAME` and `${NAME}` by values of arguments; `None` for anything else with `$`.
    fn expand(&self, text: &str) -> Option<String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            expanded.push_str(before);
            let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
            let name;
            (name, rest) = match after.strip_prefix('{') {
                Some(inner) => inner.split_once('}')?,
                None => after.split_at(after.find(|character| !is_name(character)).unwrap_or(after.len())),
            };
            expanded.push_str(self.arguments.get(name)?);
        }
        expanded.push_str(rest);
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-/:@".contains(character);
        (!expanded.is_empty() && expanded.chars().all(is_plain)).then_some(expanded)
    }
}

/// Returns true if a builder may read a here-document's beginning in `<<`, the first characters of `rest`.
///
/// Builders look for words that are digits, `<<` and a name, after they have removed quotes and replaced variables. What
/// follows another character in the same word is left to the shell, such as `$((1<<A))`.
fn is_heredoc((before, rest): (&str, &str)) -> bool {
    let name = rest.trim_start_matches('<');
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || "_-\"'\\$".contains(first));
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = word.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let is_plain = |character: char| !"{}\"'\\".contains(character);
    rest.strip_prefix("<<").is_some_and(|rest| rest.len() == name.len())
        && is_name
        && (word.is_empty() || !word.chars().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, builder: Builder) -> Result<Vec<String>, String> {
        let given = Map::from_iter([("GIVEN".to_owned(), "given:1".into())]);
        let checked = check_dockerfile("Dockerfile", text, &given, builder);
        checked.map(|images| images.into_iter().collect()).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn images_are_collected_with_their_arguments() {
        let text = "\u{feff}ARG A=debian\nARG GIVEN=other\nFROM --platform=linux/amd64 ${A}:bookworm AS base\n\
                    from $GIVEN\nCOPY --from=base /a /b\nCOPY --from=third/image:2 /a /b\nCOPY --from=0 /a /b\n\
                    FROM scratch\nFROM base\nRUN echo FROM\n";
        let images = check(text, Builder::Buildah).unwrap();
        assert_eq!(images, ["debian:bookworm", "given:1", "third/image:2"]);
        let split = "FROM\\\n  debian:bookworm\\\n  AS base\nCOPY\\\n --from=other:1 /a /b\nFROM base\n";
        assert_eq!(check(split, Builder::Buildah).unwrap(), ["debian:bookworm", "other:1"]);
        for text in ["FROM $B", "ARG A=x\nFROM ${A:-evil}", "FROM a$", "ARG A\nFROM $A", "FROM a`b`"] {
            assert!(check(text, Builder::Classic).unwrap_err().contains("can't be determined"), "{text}");
        }
    }

    #[test]
    fn hidden_lines_declare_nothing() {
        for text in [
            "ARG A=evil\nRUN x \\\nARG A=fine\nFROM $A",
            "ARG A=evil\nFROM fine\nARG A=fine\nFROM $A",
            "FROM fine\nRUN x \\\nFROM fine AS evil\nFROM evil",
        ] {
            assert!(check(text, Builder::Buildah).unwrap().contains(&"evil".to_owned()), "{text}");
        }
        assert!(check("FROM a\nRUN <<EOF\nFROM b AS evil\nEOF", Builder::Buildah).is_err());
        assert!(check("FROM a\nCOPY <<-\"EOF\" /x", Builder::Classic).is_err());
        for text in
            ["<<A", "0<<A", "a 12<<'A'", "a <<\\A", "a $(cat <<A)", "a ${B:-<<A}", "a ''<<A", "$(( 1<<A ))"]
        {
            assert!(check(&format!("FROM a\nRUN {text}\n"), Builder::Buildah).is_err(), "{text}");
        }
        for text in ["echo $((1<<A))", "echo $((A<<B))", "a <<< b", "a <<<b", "a << 1", "a x<<A"] {
            assert_eq!(
                check(&format!("FROM a\nRUN {text}\n"), Builder::Buildah),
                Ok(vec!["a".to_owned()]),
                "{text}"
            );
        }
    }

    #[test]
    fn flags_and_remote_sources_are_refused_wherever_they_hide() {
        for text in [
            "FROM a\nRUN --network=host id",
            "FROM a\nrun --network=host id",
            "FROM a\n  RUN\t--network=host id",
            "FROM a\nRUN --security=insecure id",
            "FROM a\nRUN --device=/dev/sda id",
            "FROM a\nRUN --net\\\nwork=host id",
            "FROM a\nRUN \\\n# comment\n\n--network=host id",
            "FROM a\nRUN a \\\\\nRUN --network=host id",
            "FROM a\nRUN a `\nRUN --network=host id",
            "FROM a\nRUN\\\n --network=host id",
            "FROM a\nRUN\\\n\t--mount=type=bind,from=b,src=/..,dst=/x,rw id\nRUN --network=host id",
            "FROM a\nRUN\\\n\\\n# comment\n\n --network=host id",
            "FROM a\nRUN\\ \r\n --network=host id",
            "FROM a\nONBUILD\\\n RUN\\\n --network=host id",
            "FROM a\nADD\\\n http://127.0.0.1/ /x",
            "FROM a\nADD\\\n\\\n $U /x",
            "FROM a\nCOPY\\\n --parents a /x",
            "FROM a\nONBUILD RUN --network=host id",
            "FROM a\nONBUILD ONBUILD ADD http://127.0.0.1/ /x",
            "FROM a\nADD http://169.254.169.254/latest /x",
            "FROM a\nADD [\"http://127.0.0.1/\", \"/x\"]",
            "FROM a\nARG U\nADD $U /x",
            "FROM a\nADD ht\\\ntp://127.0.0.1/ /x",
            "FROM a\nADD git@host:x.git /x",
            "FROM a\nCOPY --parents a /x",
            "# escape=`\nFROM a",
            "#Escape = \\\nFROM a",
            "FROM a\r\nRUN --network=host id\r\n",
        ] {
            assert!(check(text, Builder::Classic).is_err(), "{text}");
        }
        for text in
            ["FROM a\nRUN\\\n --mount=type=bind,from=b,src=/lnk,dst=/x,rw id", "FROM a\nRUN --mo\\\nunt=x id"]
        {
            assert!(check(text, Builder::Buildah).unwrap_err().contains("`--mount` of `RUN`"), "{text}");
        }
        let mount = "FROM a\nRUN --mount=type=bind,from=b,src=/..,dst=/x id";
        let refusal = check(mount, Builder::Buildah).unwrap_err();
        assert_eq!(refusal, "Dockerfile:2: the flag `--mount` of `RUN` is not allowed");
        // dockerd's classic builder refuses it itself.
        assert!(check(mount, Builder::Classic).is_ok());
    }
}
