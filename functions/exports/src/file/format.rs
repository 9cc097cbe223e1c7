//! Formats of an export, and their filenames.

use bench_domain::{BenchmarkName, RunId, Timestamp};

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    /// Table with one row per sample.
    Csv,
    /// One JSON object per line and sample.
    Jsonl,
    /// Protocol in Markdown, of one benchmark or of all.
    Markdown,
    /// Report with a chart of the scores, without texts of samples.
    Pdf,
    /// Signed archive.
    Zip,
}

impl ExportFormat {
    /// Accepted format names in requests, as a pattern for error messages.
    pub const PATTERN: &str = "^(csv|jsonl|md|pdf|zip)$";

    /// Parses a format name; `None` for an unknown one.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "csv" => Some(Self::Csv),
            "jsonl" => Some(Self::Jsonl),
            "md" => Some(Self::Markdown),
            "pdf" => Some(Self::Pdf),
            "zip" => Some(Self::Zip),
            _ => None,
        }
    }

    /// Returns the name, which is also the file extension.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Jsonl => "jsonl",
            Self::Markdown => "md",
            Self::Pdf => "pdf",
            Self::Zip => "zip",
        }
    }

    /// Returns the media type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Jsonl => "application/x-ndjson",
            Self::Markdown => "text/markdown; charset=utf-8",
            Self::Pdf => "application/pdf",
            Self::Zip => "application/zip",
        }
    }

    /// Returns the filename without its extension: the run, and the completion time of this version of it.
    fn stem(self, run: RunId, completed_at: Timestamp) -> String {
        let kind = match self {
            Self::Csv => "benchmark_run",
            Self::Jsonl => "benchmark_samples",
            Self::Markdown => return format!("benchmark_protocol_{run}"),
            Self::Pdf => "benchmark_report",
            Self::Zip => "benchmark_results",
        };
        format!("{kind}_{run}_{}", completed_at.compact())
    }
}

/// A requested export: a format, for a protocol its benchmark and reader, and for an archive whether the table is built, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportOrder {
    /// Format of the file.
    pub format: ExportFormat,
    /// Benchmark of a protocol; `None` for all benchmarks. Other formats ignore it.
    pub benchmark: Option<BenchmarkName>,
    /// True if a protocol leaves out texts of private datasets. Other formats ignore it.
    pub hides: bool,
    /// True if the table is built together with an archive, while the samples are read anyway. Other formats ignore it.
    pub with_table: bool,
}

impl From<ExportFormat> for ExportOrder {
    /// Orders the whole run with all of its texts.
    fn from(format: ExportFormat) -> Self {
        Self { format, benchmark: None, hides: false, with_table: false }
    }
}

impl ExportOrder {
    /// Returns the filename: the run, and the completion time of this version of it or the benchmark.
    pub fn filename(&self, run: RunId, completed_at: Timestamp) -> String {
        let stem = self.format.stem(run, completed_at);
        match &self.benchmark {
            Some(benchmark) => format!("{stem}_{benchmark}.{}", self.format.as_str()),
            None => format!("{stem}.{}", self.format.as_str()),
        }
    }

    /// Returns the part of an object key that distinguishes protocols of a run; empty for other formats.
    pub(crate) fn variant(&self) -> String {
        let benchmark = self.benchmark.as_ref().map(|name| format!("-{name}")).unwrap_or_default();
        format!("{benchmark}{}", if self.hides { "-hidden" } else { "" })
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
        let filename = |format: ExportFormat| ExportOrder::from(format).filename(run, time);
        let name = filename(ExportFormat::Zip);
        assert_eq!(name, "benchmark_results_3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90_20260102_030405.zip");
        let name = filename(ExportFormat::Csv);
        assert_eq!(name, "benchmark_run_3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90_20260102_030405.csv");
        let order = ExportOrder { benchmark: "mmlu_pro".parse().ok(), ..ExportFormat::Markdown.into() };
        let name = order.filename(run, time);
        assert_eq!(name, "benchmark_protocol_3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90_mmlu_pro.md");
        assert_eq!(
            filename(ExportFormat::Markdown),
            "benchmark_protocol_3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90.md"
        );
        let name = filename(ExportFormat::Pdf);
        assert_eq!(name, "benchmark_report_3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90_20260102_030405.pdf");
        for format in [
            ExportFormat::Csv,
            ExportFormat::Jsonl,
            ExportFormat::Markdown,
            ExportFormat::Pdf,
            ExportFormat::Zip,
        ] {
            assert_eq!(ExportFormat::from_name(format.as_str()), Some(format));
        }
        assert_eq!(ExportFormat::from_name("docx"), None);
    }

    #[test]
    fn a_file_name_cannot_leave_its_quotes() {
        let header = content_disposition("a\"; x=\r\n\\ü.zip");
        assert_eq!(header, "attachment; filename=\"a_;_x=____.zip\"");
    }
}
