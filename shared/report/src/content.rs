//! Content of a report: plain texts and numbers, without layout.

/// Report of one run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Title of the document.
    pub title: String,
    /// Name of the model, under the title.
    pub model: String,
    /// Id of the run, in the footer of every page and in the document's metadata.
    pub run_id: String,
    /// Notice above everything else, such as for demo data.
    pub warning: Option<String>,
    /// The most important figures, at most four.
    pub figures: Vec<Figure>,
    /// Facts about the run.
    pub facts: Vec<Fact>,
    /// Meaning of the marks of the chart.
    pub chart_legend: String,
    /// The benchmarks, in the order of the run.
    pub benchmarks: Vec<Benchmark>,
    /// Notes on the first page or pages.
    pub notes: Vec<String>,
    /// Facts about programs, settings and prices, on the last page.
    pub environment: Vec<Fact>,
    /// Paragraphs about the signed archive and its verification.
    pub verification: Vec<String>,
    /// Key that signs the archives of the run.
    pub signature: Vec<Fact>,
    /// URL of the page that verifies archives, for the QR code; `None` if there is none.
    pub verify_url: Option<String>,
    /// Time of the run's completion, for the document's metadata.
    pub created: Date,
    /// Name and version of the program.
    pub producer: String,
}

/// Time in UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Date {
    /// Year.
    pub year: u16,
    /// Month, from 1.
    pub month: u8,
    /// Day, from 1.
    pub day: u8,
    /// Hour.
    pub hour: u8,
    /// Minute.
    pub minute: u8,
    /// Second.
    pub second: u8,
}

/// Figure in large type.
#[derive(Debug, Clone, Default)]
pub struct Figure {
    /// Name, such as `Overall score`.
    pub label: String,
    /// Value, such as `66.67%`.
    pub value: String,
    /// Smaller text below it.
    pub detail: String,
}

/// Name and value.
#[derive(Debug, Clone, Default)]
pub struct Fact {
    /// Name.
    pub label: String,
    /// Value.
    pub value: String,
    /// True for digests and ids, which are set in a font of equal widths.
    pub is_code: bool,
}

impl Fact {
    /// Creates a fact in prose.
    pub fn new(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { label: label.into(), value: value.into(), is_code: false }
    }

    /// Creates a fact whose value is a digest or an id.
    pub fn code(label: impl Into<String>, value: impl Into<String>) -> Self {
        Self { is_code: true, ..Self::new(label, value) }
    }
}

/// Range of a score, as shares of 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    /// The score.
    pub value: f64,
    /// 95% interval.
    pub interval: Option<(f64, f64)>,
}

/// Benchmark of the run.
#[derive(Debug, Clone, Default)]
pub struct Benchmark {
    /// Name.
    pub name: String,
    /// Heading of its page, such as the display name.
    pub heading: String,
    /// Sentence below the heading.
    pub description: String,
    /// State, such as `succeeded`.
    pub status: String,
    /// Score; `None` without one.
    pub score: Option<Score>,
    /// Reason for the missing score, or of the failure.
    pub problem: Option<String>,
    /// Cells after name, status and score in the table of the summary: items, coverage.
    pub items: String,
    /// Cell after the items; the column is there if any benchmark has one.
    pub samples: Option<String>,
    /// Graded share of the samples.
    pub coverage: String,
    /// Figures at the top of its page, at most four.
    pub figures: Vec<Figure>,
    /// Named groups of facts, such as protocol and dataset.
    pub facts: Vec<(String, Vec<Fact>)>,
    /// Number of samples by outcome, without zero counts.
    pub outcomes: Vec<(String, u64)>,
    /// Further tables, such as the scores by group.
    pub tables: Vec<Table>,
    /// Lists of sentences with a heading, such as the protocol's deviations.
    pub lists: Vec<(String, Vec<String>)>,
}

/// Table with a heading.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// Heading.
    pub heading: String,
    /// Names of the columns. The first is aligned to the left, the others to the right.
    pub columns: Vec<String>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<String>>,
}
