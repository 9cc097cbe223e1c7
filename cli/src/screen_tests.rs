//! Snapshots of tables and pages on terminals of several widths: `tests/data/screens/NAME.txt`.
//!
//! `BENCH_WRITE_MESSAGES=1 cargo test -p bench-cli --lib screen` writes them. Read the difference as a user would.

use std::path::Path;

use crate::layout::Layout;
use crate::table::wrap::{Breaks, widest_part};

/// Variable that makes the tests write the snapshots instead of comparing them.
const WRITE_VARIABLE: &str = "BENCH_WRITE_MESSAGES";
/// Widths of the terminals.
const WIDTHS: [usize; 4] = [20, 80, 120, 200];

/// Compares what `render` shows with the stored snapshot.
pub(crate) fn check(name: &str, render: impl Fn(Layout) -> String) {
    console::set_colors_enabled(false);
    let mut found = String::new();
    for width in WIDTHS {
        let text = render(Layout { width, is_terminal: true, has_unicode: true });
        for line in text.lines() {
            // Only long words and commands to copy may exceed the terminal.
            let longest = widest_part(line, Breaks::Sentences);
            let fits = console::measure_text_width(line) <= width;
            assert!(fits || longest * 2 > width, "{name}, {width} columns: {line}");
        }
        found.push_str(&format!("# {width} columns\n{text}\n\n"));
    }
    let ascii = render(Layout { width: 80, is_terminal: true, has_unicode: false });
    assert!(ascii.is_ascii(), "{name}: {ascii}");
    found.push_str(&format!("# 80 columns, ASCII\n{ascii}\n\n"));
    let file = render(Layout::FILE);
    assert!(!file.contains("Not shown"), "{name}: {file}");
    found.push_str(&format!("# a file\n{file}\n"));
    compare(name, &found);
}

/// Compares screens with the stored snapshot.
pub(crate) fn compare(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/screens").join(format!("{name}.txt"));
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        stored == *found,
        "{} differs (after a wanted change, run the tests with {WRITE_VARIABLE}=1); it is now\n{found}",
        path.display()
    );
}
