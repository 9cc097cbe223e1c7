//! Names of jobs.

use std::fmt;
use std::str::FromStr;

use super::JobError;

/// Maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 100;

/// Name of a job within its sandbox: letters, digits and `-`, at most 100, not beginning with `-`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobName(String);

impl JobName {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for JobName {
    type Err = JobError;

    fn from_str(name: &str) -> Result<Self, JobError> {
        let is_name = !name.is_empty()
            && name.len() <= NAME_CHARS_MAX
            && !name.starts_with('-')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if is_name {
            Ok(Self(name.to_owned()))
        } else {
            Err(JobError::Spec("its name is invalid".to_owned()))
        }
    }
}

impl Default for JobName {
    /// Returns the name for the only job of a sandbox.
    fn default() -> Self {
        Self("job".to_owned())
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        assert_eq!(JobName::default().as_str().parse(), Ok(JobName::default()));
        for name in ["a", "Job-1", "0123", &"a".repeat(NAME_CHARS_MAX)] {
            assert_eq!(name.parse::<JobName>().unwrap().to_string(), *name);
        }
        for name in ["", "-a", "a/b", "..", "a b", "a'b", "$(x)", "ä", "a\n", &"a".repeat(NAME_CHARS_MAX + 1)]
        {
            assert!(name.parse::<JobName>().is_err(), "{name}");
        }
    }
}
