//! Formats of an export, and their filenames.

use bench_domain::{RunId, Timestamp};

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Table with one row per sample.
    Csv,
    /// One JSON object per line and sample.
    Jsonl,
    /// Signed archive.
    Zip,
}

impl ExportFormat {
    /// Accepted format names in requests, as a pattern for error messages.
    pub const PATTERN: &str = "^(csv|jsonl|zip)$";

    /// Parses a format name; `None` for an unknown one.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "jsonl" => Some(Self::Jsonl),
            "zip" => Some(Self::Zip),
            _ => None,
        }
    }

    /// Returns the name, which is also the file extension.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Zip => "zip",
        }
    }

    /// Returns the media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Jsonl => "application/x-ndjson",
            Self::Zip => "application/zip",
        }
    }

    /// Returns the filename: the run and the completion time of this version of it.
    pub fn filename(self, run: RunId, completed_at: Timestamp) -> String {
        let stem = match self {
            Self::Csv => "benchmark_run",
            Self::Jsonl => "benchmark_samples",
            Self::Zip => "benchmark_results",
        };
        format!("{stem}_{run}_{}.{}", completed_at.compact(), self.as_str())
    }
}

/// Returns the `Content-Disposition` of a download (RFC 6266), with the filename quoted. Filenames are
/// generated here and are ASCII; any other character is replaced so that it can't break the header.
pub(crate) fn content_disposition(filename: &str) -> String {
    let plain = |c: char| if c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '%' | '/') { c } else { '_' };
    format!("attachment; filename=\"{}\"", filename.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_compatible_system() {
        let run = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90".parse().unwrap();
        let time = "2026-01-02T03:04:05.999999Z".parse().unwrap();
        let name = ExportFormat::Zip.filename(run, time);
        assert_eq!(name, "benchmark_results_3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90_20260102_030405.zip");
        let name = ExportFormat::Csv.filename(run, time);
        assert_eq!(name, "benchmark_run_3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90_20260102_030405.csv");
        for format in [ExportFormat::Csv, ExportFormat::Jsonl, ExportFormat::Zip] {
            assert_eq!(ExportFormat::from_name(format.as_str()), Some(format));
        }
        assert_eq!(ExportFormat::from_name("pdf"), None);
    }

    #[test]
    fn a_file_name_cannot_leave_its_quotes() {
        let header = content_disposition("a\"; x=\r\n\\ü.zip");
        assert_eq!(header, "attachment; filename=\"a_;_x=____.zip\"");
    }
}
