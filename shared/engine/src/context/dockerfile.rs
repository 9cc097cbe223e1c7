//! Checks of a Dockerfile: images, remote sources, and flags that ask the builder for more than the sandbox has.
//!
//! Each line is checked as if an instruction began there, joined with its continuation lines. Builders differ in which
//! lines they join, so this refuses more than necessary, but nothing that any builder takes as an instruction passes
//! unchecked.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::refusal::Refusal;
use crate::rules::full_name;

/// Builder that reads a Dockerfile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builder {
    /// The classic builder of dockerd, which refuses flags of `RUN` itself.
    Classic,
    /// Podman's builder, which obeys them.
    Buildah,
}

/// Maximum length of all instructions with their continuation lines, in bytes. Each line is joined with those that continue it.
const JOINED_BYTES_MAX: usize = 8 << 20;
/// Maximum length of an image's name after its variables are replaced, in bytes.
const NAME_BYTES_MAX: usize = 512;
/// Maximum number of images and of stages. Each image is looked up before the build.
const IMAGES_MAX: usize = 100;

/// State of a check.
struct Check<'a> {
    file: &'a str,
    builder: Builder,
    /// Values of arguments before the first `FROM`; `None` if it isn't certain.
    arguments: BTreeMap<String, Option<String>>,
    given: &'a Map<String, Value>,
    /// Names of the stages before the current one, empty for those without.
    stages: Vec<String>,
    /// Name of the current stage, which it can't use itself.
    stage: Option<String>,
    /// Images by name, and whether their use is certain.
    images: BTreeMap<String, bool>,
    line: usize,
    /// The line could be the continuation of another one, so that it declares nothing.
    is_continuation: bool,
    /// A `FROM` was seen. Arguments after it don't apply to the next one.
    is_in_stage: bool,
    /// Something was seen that may be a `FROM`.
    may_be_in_stage: bool,
}

/// Checks a Dockerfile and returns the names of the images that it builds on or copies from. The value is true if
/// the use is certain; otherwise, its line may be text of another instruction.
pub(crate) fn check_dockerfile(
    file: &str,
    text: &str,
    given: &Map<String, Value>,
    builder: Builder,
) -> Result<BTreeMap<String, bool>, Refusal> {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').split('\n').collect();
    let mut check = Check {
        file,
        builder,
        arguments: BTreeMap::new(),
        given,
        stages: Vec::new(),
        stage: None,
        images: BTreeMap::new(),
        line: 0,
        is_continuation: false,
        is_in_stage: false,
        may_be_in_stage: false,
    };
    let mut joined_bytes_left = JOINED_BYTES_MAX;
    for (number, line) in lines.iter().enumerate() {
        check.line = number + 1;
        let line = line.trim();
        if let Some(comment) = line.strip_prefix('#') {
            check.directive(comment)?;
        } else if !line.is_empty() {
            let text = joined(&lines[number..], &mut joined_bytes_left);
            let Some(text) = text else { return check.refuse("too many lines continue others") };
            check.instruction(&text)?;
            check.is_continuation = line.ends_with(['\\', '`']);
        }
    }
    Ok(check.images)
}

/// Joins a line with its continuation lines, skipping comments and empty lines between them; `None` if they are longer than
/// the bytes that are left. As in all builders, white space at the beginning of a continuation line separates words.
fn joined(lines: &[&str], bytes_left: &mut usize) -> Option<String> {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        *bytes_left = bytes_left.checked_sub(line.len() + 1)?;
        let trimmed = line.trim();
        if number > 0 && (trimmed.is_empty() || trimmed.starts_with('#')) {
            continue;
        }
        let line = if number > 0 { line.trim_end() } else { trimmed };
        match line.strip_suffix('\\') {
            Some(start) => text.push_str(start),
            None => return Some(text + line),
        }
    }
    Some(text)
}

/// Flags of an instruction as `(name, value)`, and what follows them.
type Flags<'t> = (Vec<(&'t str, &'t str)>, &'t str);

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
        match keyword.to_ascii_uppercase().as_str() {
            "ONBUILD" => {
                let rest = rest.trim();
                if rest
                    .split(char::is_whitespace)
                    .next()
                    .is_some_and(|word| word.eq_ignore_ascii_case(keyword))
                {
                    return self.refuse("`ONBUILD` of `ONBUILD` is not allowed");
                }
                self.instruction(rest)
            }
            "FROM" => self.from(rest),
            "ARG" => self.arg(rest.trim()),
            "RUN" => self.run(rest),
            "COPY" | "ADD" => self.copy(keyword, rest),
            _ => Ok(()),
        }
    }

    /// Splits the flags off an instruction.
    ///
    /// Builders read quotes, escapes and other white space in flags in their own ways, so none of them is allowed there.
    fn flags<'t>(&self, keyword: &str, rest: &'t str) -> Result<Flags<'t>, Refusal> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-=/:._,@+${}".contains(c);
        let (mut flags, mut rest) = (Vec::new(), rest.trim_start_matches([' ', '\t']));
        while rest.starts_with("--") {
            let (flag, behind) = rest.split_at(rest.find([' ', '\t']).unwrap_or(rest.len()));
            if !flag.chars().all(is_plain) {
                return self.refuse(format!("a flag of `{keyword}` has quotes or other unusual characters"));
            }
            flags.push(flag.split_once('=').unwrap_or((flag, "")));
            rest = behind.trim_start_matches([' ', '\t']);
        }
        if rest.starts_with(|first: char| first.is_whitespace() || first.is_control()) {
            return self.refuse(format!("unusual white space in `{keyword}` is not allowed"));
        }
        Ok((flags, rest))
    }

    fn from(&mut self, rest: &str) -> Result<(), Refusal> {
        let (flags, rest) = self.flags("FROM", rest)?;
        if let Some((name, _)) = flags.iter().find(|(name, _)| *name != "--platform") {
            return self.refuse(format!("the flag `{name}` of `FROM` is not allowed"));
        }
        let words: Vec<_> = rest.split_whitespace().collect();
        let Some(image) = words.first() else { return Ok(()) };
        let is_certain = !self.is_continuation;
        self.is_in_stage |= is_certain;
        self.may_be_in_stage = true;
        if is_certain {
            self.stages.extend(self.stage.take());
        }
        let Some(name) = self.expand(image) else {
            return self.refuse(format!(
                "the image `{}` can't be determined; use `ARG` with a plain value before `FROM`",
                shortened(image)
            ));
        };
        if name != "scratch" && !self.stages.contains(&name) {
            self.add_image(name, is_certain)?;
        }
        if is_certain {
            if self.stages.len() >= IMAGES_MAX {
                return self.refuse(format!("it has more than {IMAGES_MAX} stages"));
            }
            self.stage = Some(self.stage_name(&words)?);
        }
        Ok(())
    }

    /// Returns the name that a `FROM` gives to its stage; empty if it gives none.
    ///
    /// Builders compare other names in their own ways: some ignore case, some replace variables. A name that only one of them
    /// takes for a stage would be an image that nobody has checked.
    fn stage_name(&self, words: &[&str]) -> Result<String, Refusal> {
        let [_, word, stage] = words[..] else { return Ok(String::new()) };
        let is_plain = stage.starts_with(|first: char| first.is_ascii_lowercase())
            && stage.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c));
        match word.eq_ignore_ascii_case("as") {
            true if is_plain => Ok(stage.to_owned()),
            true => self.refuse(format!(
                "the name `{stage}` of a stage is not allowed: write lower-case letters, digits, `_` and `-`"
            )),
            false => Ok(String::new()),
        }
    }

    /// Reads arguments before the first `FROM`. Those whose value isn't certain have none.
    fn arg(&mut self, rest: &str) -> Result<(), Refusal> {
        if self.is_in_stage {
            return Ok(());
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@+=,~".contains(c);
        for word in rest.split([' ', '\t']).filter(|word| !word.is_empty()) {
            let (name, default) = word.split_once('=').unwrap_or((word, ""));
            let quoted = ['"', '\''].iter().find_map(|quote| {
                default.strip_prefix(*quote)?.strip_suffix(*quote).filter(|text| text.chars().all(is_plain))
            });
            let value = quoted.or_else(|| default.chars().all(is_plain).then_some(default));
            let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if self.is_continuation || self.may_be_in_stage {
                // It may be text of another instruction or an argument of a stage, or declare an argument.
                self.arguments.insert(name.to_owned(), None);
                continue;
            }
            // A variable in the value is allowed, as long as no image depends on it.
            let has_variable =
                default.contains('$') && default.chars().all(|c| is_plain(c) || "${}".contains(c));
            if !is_name || (value.is_none() && !has_variable) {
                return self.refuse(
                    "an `ARG` before `FROM` needs a plain value: write `ARG NAME=VALUE` without spaces and escapes",
                );
            }
            let given = self.given.get(name).and_then(Value::as_str);
            self.arguments.insert(name.to_owned(), given.or(value).map(str::to_owned));
        }
        Ok(())
    }

    fn run(&self, rest: &str) -> Result<(), Refusal> {
        let (flags, rest) = self.flags("RUN", rest)?;
        self.no_heredoc("RUN", rest)?;
        for (name, _) in flags {
            // Podman's builder would give these the machine's network and files.
            if self.builder == Builder::Buildah || name != "--mount" {
                return self.refuse(format!("the flag `{name}` of `RUN` is not allowed"));
            }
        }
        Ok(())
    }

    /// Refuses here-documents, whose lines only some builders take as instructions.
    fn no_heredoc(&self, keyword: &str, rest: &str) -> Result<(), Refusal> {
        if has_heredoc(rest) {
            let advice = "write the lines with `printf`, or copy a file";
            return self.refuse(format!("here-documents in `{keyword}` are not allowed; {advice}"));
        }
        Ok(())
    }

    fn copy(&mut self, keyword: &str, rest: &str) -> Result<(), Refusal> {
        let (flags, rest) = self.flags(keyword, rest)?;
        self.no_heredoc(keyword, rest)?;
        for (name, value) in flags {
            match name {
                "--from" => self.copy_source(value)?,
                "--chown" | "--chmod" => {}
                _ => return self.refuse(format!("the flag `{name}` of `{keyword}` is not allowed")),
            }
        }
        if keyword.eq_ignore_ascii_case("ADD") {
            self.no_address(rest)?;
        }
        Ok(())
    }

    /// Checks what an instruction copies from: an earlier stage, by its name or its number, or an image.
    fn copy_source(&mut self, source: &str) -> Result<(), Refusal> {
        if source.contains('$') {
            return self
                .refuse("variables in `--from` are not allowed: write the name of the stage or the image");
        }
        if is_number(source) {
            // Podman's builder ends at the number of a stage that doesn't exist.
            return match source.parse::<usize>().is_ok_and(|number| number < self.stages.len()) {
                true => Ok(()),
                false => {
                    self.refuse(format!("`--from={source}` is not the number of an earlier stage, from 0"))
                }
            };
        }
        match self.stages.iter().any(|stage| stage == source) {
            true => Ok(()),
            false => self.add_image(source.to_owned(), !self.is_continuation),
        }
    }

    /// Checks the sources of `ADD`. The engine would fetch an address from its own network, which has the machine's
    /// services.
    fn no_address(&self, rest: &str) -> Result<(), Refusal> {
        let sources: Vec<String> = match serde_json::from_str(rest) {
            Ok(sources) => sources,
            Err(_) if rest.contains(['"', '\'', '\\']) => {
                return self.refuse("quotes and escapes in `ADD` are not allowed; use `COPY`");
            }
            Err(_) => rest.split_whitespace().map(str::to_owned).collect(),
        };
        let is_address = |source: &String| {
            let source = source.trim().to_ascii_lowercase();
            source.contains("://")
                || source.contains('$')
                || ["git@", "github.com/"].iter().any(|start| source.starts_with(start))
        };
        if sources.iter().any(is_address) {
            return self.refuse("`ADD` of addresses and of variables is not allowed; use `RUN` to download");
        }
        Ok(())
    }

    /// Adds an image.
    fn add_image(&mut self, image: String, is_certain: bool) -> Result<(), Refusal> {
        if image.len() > NAME_BYTES_MAX || full_name(&image).is_none() || is_number(&image) {
            return self.refuse(format!("`{}` is not the name of an image", shortened(&image)));
        }
        if self.images.len() >= IMAGES_MAX {
            return self.refuse(format!("it uses more than {IMAGES_MAX} images"));
        }
        let known = self.images.entry(image).or_default();
        *known |= is_certain;
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
            expanded.push_str(self.arguments.get(name)?.as_deref()?);
            if expanded.len() > NAME_BYTES_MAX {
                return None;
            }
        }
        expanded.push_str(rest);
        let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-/:@".contains(character);
        (!expanded.is_empty() && expanded.chars().all(is_plain)).then_some(expanded)
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns true if a builder may find the beginning of a here-document.
///
/// Builders look for words that are digits, `<<` and a name, outside quotes, after they have replaced variables. What
/// follows another character in the same word is left to the shell, such as `$((1<<A))`.
fn has_heredoc(text: &str) -> bool {
    let (mut quote, mut word) = (None, String::new());
    let mut rest = text.char_indices();
    while let Some((at, character)) = rest.next() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some('"') | None, '\\') => {
                word.push(character);
                rest.next();
            }
            (Some(_), _) => {}
            (None, '"' | '\'') => {
                quote = Some(character);
                word.push(character);
            }
            (None, _) if character.is_whitespace() => word.clear(),
            (None, '<') => {
                let name = text.split_at(at).1.strip_prefix("<<").map(|name| name.trim_start_matches('-'));
                let is_named = name.is_some_and(|name| {
                    name.starts_with(|first: char| !first.is_whitespace() && first != '<')
                });
                let is_start = word.chars().all(|c| c.is_ascii_digit()) || word.contains(['{', '}']);
                if is_named && is_start {
                    return true;
                }
                word.push(character);
            }
            (None, _) => word.push(character),
        }
    }
    // Builders disagree on a quote that doesn't end.
    quote.is_some() && text.contains("<<")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, builder: Builder) -> Result<Vec<String>, String> {
        let given = Map::from_iter([("GIVEN".to_owned(), "given:1".into())]);
        let checked = check_dockerfile("Dockerfile", text, &given, builder);
        checked.map(|images| images.into_keys().collect()).map_err(|refusal| refusal.to_string())
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
    fn only_earlier_stages_with_plain_names_are_no_images() {
        for text in [
            "FROM a AS localhost/victim:1\nCOPY --from=localhost/victim:1 /s /x",
            "FROM a AS LOCALHOST/VICTIM:1\nFROM a\nCOPY --from=localhost/victim:1 /s /x",
            "FROM a AS LOCALHOST/VICTIM:1\nFROM localhost/victim:1",
            "ARG A=localhost/victim:1\nFROM a AS $A\nFROM a\nARG A=localhost/victim:1\nCOPY --from=$A /s /x",
            "FROM a AS DOCKER-ARCHIVE:/TMP/V.TAR\nFROM docker-archive:/tmp/v.tar",
            "FROM a AS b:1\nFROM b:1",
            "FROM a AS Build\nFROM build",
            "FROM a\nCOPY --from=0 /a /b",
            "FROM a\nCOPY --from=4 /a /b",
            "FROM a\nFROM a\nCOPY --from=1 /a /b\nFROM a",
            "ARG A=0\nFROM a\nFROM a\nCOPY --from=$A /a /b",
            "FROM 0",
            "FROM dir:/etc",
            "FROM oci:x/y",
            "FROM containers-storage:victim",
            "FROM a\nCOPY --from=docker-daemon:victim:1 /a /b",
            "FROM a\nCOPY --from=docker://127.0.0.1:5917/x:1 /a /b",
        ] {
            for builder in [Builder::Classic, Builder::Buildah] {
                assert!(check(text, builder).is_err(), "{text}");
            }
        }
        // A stage's own name, and that of a later one, are names of images.
        let own = "FROM a AS own\nCOPY --from=own /s /x\nCOPY --from=later /s /x\nFROM own AS later\n";
        assert_eq!(check(own, Builder::Buildah).unwrap(), ["a", "later", "own"]);
        let two = "FROM a AS one\nFROM b\nCOPY --from=one /s /x\nFROM c\nCOPY --from=1 /s /x\nFROM one\n";
        assert_eq!(check(two, Builder::Buildah).unwrap(), ["a", "b", "c"]);
    }

    #[test]
    fn a_check_takes_no_more_than_its_limits() {
        let nested = format!("FROM a\n{}RUN a\n", "ONBUILD ".repeat(10_000));
        let continued = format!("FROM a\n{}RUN --x a\n", "RUN a\\\n".repeat(30_000));
        let empty = format!("FROM a\nRUN a\\\n{}RUN b\n", "\\\n".repeat(100_000));
        let expanded = format!("ARG A={}\nFROM {}\n", "a".repeat(50_000), "$A".repeat(20_000));
        let images: String = (0..200).map(|number| format!("FROM a{number}\n")).collect();
        let stages = "FROM a AS b\n".repeat(200);
        for (text, reason) in [
            (nested, "`ONBUILD` of `ONBUILD`"),
            (continued, "too many lines continue others"),
            (empty, "too many lines continue others"),
            (expanded, "can't be determined"),
            (images, "more than 100 images"),
            (stages, "more than 100 stages"),
        ] {
            let refused = check(&text, Builder::Buildah).unwrap_err();
            assert!(refused.contains(reason) && refused.len() < 600, "{refused}");
        }
        assert!(check("FROM a\nONBUILD RUN true\n", Builder::Buildah).is_ok());
    }

    #[test]
    fn hidden_lines_declare_nothing() {
        for text in [
            "ARG A=evil\nFROM fine\nARG A=fine\nFROM $A",
            "FROM fine\nRUN x \\\nFROM fine AS evil\nFROM evil",
        ] {
            assert!(check(text, Builder::Buildah).unwrap().contains(&"evil".to_owned()), "{text}");
        }
        // It isn't certain what the image is.
        for text in [
            "ARG A=evil\nRUN x \\\nARG A=fine\nFROM $A",
            "ARG A=fine\nARG X=a\\\nFROM b\nARG A=evil\nFROM $A",
            "ARG A=fine\nARG X=a`\nARG A=evil\nFROM $A",
        ] {
            assert!(check(text, Builder::Buildah).is_err(), "{text}");
        }
        assert!(check("FROM a\nRUN <<EOF\nFROM b AS evil\nEOF", Builder::Buildah).is_err());
        assert!(check("FROM a\nCOPY <<-\"EOF\" /x", Builder::Classic).is_err());
        for text in [
            "<<A",
            "0<<A",
            "a 12<<'A'",
            "a <<\\A",
            "a $(cat <<A)",
            "a ${B:-<<A}",
            "<<1",
            "a <<.x",
            "'<<A",
            "$(( 1<<A ))",
        ] {
            assert!(check(&format!("FROM a\nRUN {text}\n"), Builder::Buildah).is_err(), "{text}");
        }
        for text in [
            "echo $((1<<A))",
            "echo $((A<<B))",
            "a <<< b",
            "a <<<b",
            "a << 1",
            "a x<<A",
            "echo \"$((1<<x))\"",
            "printf 'cout << \"hi\"<<x'",
            "echo \"usage: prog <<INPUT\"",
        ] {
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

    #[test]
    fn flags_and_arguments_that_builders_read_in_their_own_ways_are_refused() {
        for text in [
            "FROM a\nCOPY --chown=\"a b\" --chown=0:0 --from=localhost/victim:1 /s /x",
            "FROM a\nCOPY --chown=\u{e0}--from=localhost/victim:1 --chown=0:0 /s /x",
            "FROM a\nCOPY \u{a0}--from=localhost/victim:1 /s /x",
            "FROM a\nCOPY --chown=0:0 \u{b}--from=localhost/victim:1 /s /x",
            "FROM a\nCOPY --chown=\\ --from=localhost/victim:1 /s /x",
            "FROM --platform=\"x scratch\" --platform=linux/amd64 localhost/victim:1 AS v",
            "FROM --other=x scratch",
            "ARG B=localhost/victim:1\nARG A=\"x B=scratch\"\nFROM $B",
            "ARG B=localhost/victim:1\nARG A=x\\ B=scratch\nFROM $B",
            "ARG B=localhost/victim:1\nARG A='x B=scratch'\nFROM $B",
            "ARG B=oci:/tmp/x\nARG A=\"x\tB=scratch\"\nFROM $B",
            "FROM a\nADD http:/\\/127.0.0.1:8/ /x",
            "FROM a\nADD [\"http:\\u002f/127.0.0.1:8/\",\"/x\"]",
            "FROM a\nADD http:/\"/\"127.0.0.1:8/ /x",
            "FROM a\nADD HTTP://127.0.0.1/ /x",
            "FROM a\nADD github.com/a/b /x",
            "FROM a\nONBUILD ADD http:/\\/127.0.0.1:8/ /x",
            "FROM a\nRUN \u{a0}--network=host id",
        ] {
            for builder in [Builder::Classic, Builder::Buildah] {
                assert!(check(text, builder).is_err(), "{text}");
            }
        }
        for text in [
            "ARG V=\"3.11\"\nARG A='x' B=$V\nFROM debian:$V",
            "FROM --platform=$BUILDPLATFORM debian:3.11 AS b\nCOPY --chown=${U:-0}:0 --from=b a /x",
            "FROM debian:3.11\nADD .gitignore my.github.conf /app/\nADD [\"a b.tar\", \"/x/\"]",
            "FROM debian:3.11\nCOPY \"a b\" '/x y'\nRUN echo 'a' \"$B\" \\\n  from x import y",
        ] {
            let images = check(text, Builder::Buildah).unwrap();
            assert!(images.contains(&"debian:3.11".to_owned()), "{text}");
        }
        // What may be text of another instruction is no certain base.
        let given = Map::new();
        let text = "FROM a\nRUN python -c \"x \\\nfrom b import c\"\nCOPY --from=c /x /x\n";
        let images = check_dockerfile("Dockerfile", text, &given, Builder::Buildah).unwrap();
        assert_eq!(
            images,
            BTreeMap::from([("a".to_owned(), true), ("b".to_owned(), false), ("c".to_owned(), true)])
        );
    }
}
