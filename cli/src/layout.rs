//! Width and character set of standard output.

use std::borrow::Cow;
use std::io::{self, IsTerminal};

use crate::characters::{ascii, escape_controls, escape_foreign};

/// Number of columns of output that isn't a terminal, unless the variable `COLUMNS` has another: tables are as wide as
/// their content.
const COLUMNS_UNLIMITED: usize = usize::MAX;
/// Indent of the lines of a message after its first.
pub(crate) const HANG: usize = 2;

/// Space and characters for tables and texts.
///
/// On a terminal, tables and texts have its width, and columns may be dropped. Elsewhere nothing is dropped and texts
/// aren't wrapped, since programs read them; tables are as wide as their content, or have `COLUMNS` columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Number of columns for tables.
    pub(crate) width: usize,
    /// True for a terminal.
    pub(crate) is_terminal: bool,
    /// False if only ASCII characters can be shown.
    pub(crate) has_unicode: bool,
}

impl Layout {
    /// Layout of files and pipes.
    #[cfg(test)]
    pub(crate) const FILE: Self = Self { width: COLUMNS_UNLIMITED, is_terminal: false, has_unicode: true };

    /// Returns the layout of standard output.
    pub(crate) fn stdout() -> Self {
        let is_terminal = io::stdout().is_terminal();
        let size = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        let width = match size.filter(|columns| is_terminal && *columns > 0) {
            Some(columns) => columns,
            None => columns_variable(variable("COLUMNS").as_deref()),
        };
        Self { width, is_terminal, has_unicode: has_unicode() }
    }

    /// Returns the number of columns for texts, or `None` if texts aren't wrapped.
    pub(crate) fn text_width(self) -> Option<usize> {
        self.is_terminal.then_some(self.width)
    }

    /// Replaces characters that can't be shown, and on terminals those that would control it.
    pub(crate) fn showable(self, text: &str) -> Cow<'_, str> {
        let text = if self.has_unicode { text.into() } else { ascii(text) };
        match (self.is_terminal, self.has_unicode) {
            (true, true) => escape_controls(&text).into_owned().into(),
            (true, false) => escape_foreign(&escape_controls(&text)).into_owned().into(),
            (false, _) => text,
        }
    }
}

fn columns_variable(value: Option<&str>) -> usize {
    value
        .and_then(|value| value.trim().parse().ok())
        .filter(|columns| *columns > 0)
        .unwrap_or(COLUMNS_UNLIMITED)
}

/// Returns true if the locale's character set is UTF-8 and the terminal isn't a dumb one.
pub(crate) fn has_unicode() -> bool {
    !is_dumb() && is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(variable))
}

/// Returns true for a terminal that can't move its cursor.
pub(crate) fn is_dumb() -> bool {
    variable("TERM").as_deref() == Some("dumb")
}

/// Checks the locale: the first of these variables that is set decides. Without one, the locale is `C`.
fn is_utf8(variables: [Option<String>; 3]) -> bool {
    let locale = variables.into_iter().flatten().next().unwrap_or_default().to_ascii_lowercase();
    let charset = locale.split_once('.').map_or(locale.as_str(), |(_, charset)| charset);
    let charset = charset.split('@').next().unwrap_or_default();
    matches!(charset, "utf-8" | "utf8")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_locale_that_is_set_decides() {
        let utf8 = |all: &str, ctype: &str, lang: &str| {
            is_utf8([all, ctype, lang].map(|value| Some(value.to_owned()).filter(|value| !value.is_empty())))
        };
        assert!(utf8("", "", "de_DE.UTF-8") && utf8("C.utf8", "C", "C") && utf8("", "UTF-8", "C"));
        assert!(utf8("", "", "ca_ES.UTF-8@valencia"));
        assert!(!utf8("C", "", "en_US.UTF-8") && !utf8("", "de_DE.ISO-8859-1", "") && !utf8("", "", ""));
        assert!(!utf8("POSIX", "", "") && !utf8("", "", "en_US"));
    }

    #[test]
    fn output_that_is_no_terminal_has_the_columns_of_the_variable() {
        assert_eq!(columns_variable(Some("80")), 80);
        for unusable in [None, Some("0"), Some("wide"), Some("-1")] {
            assert_eq!(columns_variable(unusable), COLUMNS_UNLIMITED);
        }
    }
}
