//! Wheels at the Python package index: a page of links per package, and archives whose digest is pinned.

use std::io::{Cursor, Read};

use bench_items::WheelSpec;
use reqwest::Url;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

/// Maximum size of the page of a package, and of a wheel, in bytes.
pub(super) const PAGE_BYTES_MAX: usize = 16 << 20;
pub(super) const WHEEL_BYTES_MAX: usize = 64 << 20;

/// Finds the address of a wheel in the package's page, which may be relative to the page's own.
pub(super) fn find_link(page: &[u8], page_url: &str, wheel: &WheelSpec) -> Result<Url, String> {
    let page = String::from_utf8_lossy(page);
    let base = Url::parse(page_url).map_err(|error| error.to_string())?;
    let links = page.split("href=").skip(1).filter_map(|rest| {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        rest.get(1..)?.split_once(quote).map(|(link, _)| link.replace("&amp;", "&"))
    });
    let mut addresses = links.filter_map(|link| base.join(&link).ok());
    let found = addresses
        .find(|address| address.path_segments().and_then(|mut parts| parts.next_back()) == Some(wheel.file));
    let mut found = found.ok_or_else(|| format!("the package index has no `{}`", wheel.file))?;
    found.set_fragment(None);
    Ok(found)
}

/// Returns a file of a wheel, whose digest is checked first.
pub(super) fn file(
    wheel: &WheelSpec,
    archive: &[u8],
    path: &str,
    bytes_max: usize,
) -> Result<Vec<u8>, String> {
    let sha256 = hex::encode(Sha256::digest(archive));
    if sha256 != wheel.sha256 {
        return Err(format!("{}: its SHA-256 is {sha256} instead of {}", wheel.file, wheel.sha256));
    }
    let mut archive =
        ZipArchive::new(Cursor::new(archive)).map_err(|error| format!("{}: {error}", wheel.file))?;
    let file = archive.by_name(path).map_err(|error| format!("{}, `{path}`: {error}", wheel.file))?;
    let mut content = Vec::new();
    let read = file.take(bytes_max as u64 + 1).read_to_end(&mut content);
    read.map_err(|error| format!("{}, `{path}`: {error}", wheel.file))?;
    match content.len() <= bytes_max {
        true => Ok(content),
        false => Err(format!("{}, `{path}`: it has more than {bytes_max} bytes", wheel.file)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHEEL: WheelSpec =
        WheelSpec { package: "quiz", version: "1.0", file: "quiz-1.0-py3-none-any.whl", sha256: "0" };

    #[test]
    fn links_may_be_relative() {
        let find = |page: &str| {
            find_link(page.as_bytes(), "https://index.test/simple/quiz/", &WHEEL).map(|url| url.to_string())
        };
        let other = "<a href=\"quiz-0.9-py3-none-any.whl\">x</a>";
        assert_eq!(
            find(&format!("{other}<a href='../../f/quiz-1.0-py3-none-any.whl#sha256=12'>x</a>")).unwrap(),
            "https://index.test/f/quiz-1.0-py3-none-any.whl"
        );
        assert_eq!(
            find("<a rel=x href=\"https://files.test/a/quiz-1.0-py3-none-any.whl\">").unwrap(),
            "https://files.test/a/quiz-1.0-py3-none-any.whl"
        );
        assert!(find(other).unwrap_err().contains("has no `quiz-1.0-py3-none-any.whl`"));
        assert!(find("<a href=\"x").is_err());
    }

    #[test]
    fn another_archive_is_refused() {
        assert!(file(&WHEEL, b"PK", "a.txt", 10).unwrap_err().contains("instead of 0"));
    }
}
