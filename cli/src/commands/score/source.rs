//! ResponseSource of responses, which is read once to find the items and once to grade.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use anyhow::Context;

use super::lines::Lines;
use crate::commands::check_exists;
use crate::exit::Problem;

/// Responses that can be read more than once.
pub(super) struct ResponseSource {
    name: String,
    file: File,
}

impl ResponseSource {
    /// Opens a file, or standard input for `-`. Copies input that can be read only once, such as a pipe, to an unnamed
    /// temporary file.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Self::copied("standard input".to_owned(), io::stdin().lock());
        }
        check_exists("--responses", path)?;
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("could not read `{name}`"))?;
        match file.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                Err(Problem::failure(format!("could not read `{name}`: it is a folder")).into())
            }
            Ok(metadata) if metadata.is_file() => Ok(Self { name, file }),
            _ => Self::copied(name, file),
        }
    }

    fn copied(name: String, mut input: impl Read) -> anyhow::Result<Self> {
        let mut file = tempfile::tempfile().context("could not create a temporary file")?;
        io::copy(&mut input, &mut file)
            .with_context(|| format!("could not copy `{name}` to a temporary file"))?;
        Ok(Self { name, file })
    }

    /// Returns the name of the input for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns all lines, starting with the first one.
    pub(super) fn lines(&mut self) -> anyhow::Result<Lines<BufReader<File>>> {
        let failed = || format!("could not read {}", self.name);
        self.file.rewind().with_context(failed)?;
        let file = self.file.try_clone().with_context(failed)?;
        Ok(Lines::new(self.name.clone(), file))
    }
}
