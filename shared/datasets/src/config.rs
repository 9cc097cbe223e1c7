//! Settings of the dataset library: sources and the folder for downloads.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Address of the hub unless `HF_ENDPOINT` sets another one.
const HUB_URL_DEFAULT: &str = "https://huggingface.co";
/// Base address of files on GitHub unless `BENCH_GITHUB_RAW_URL` sets another one.
const GITHUB_RAW_URL_DEFAULT: &str = "https://raw.githubusercontent.com";
/// Base address of the Python package index unless `BENCH_PYPI_URL` sets another one.
const PYPI_URL_DEFAULT: &str = "https://pypi.org";
/// Prefix of the variables that pin a revision.
const PIN_PREFIX: &str = "BENCH_DATASET_REVISION_";

/// Default of [`LibraryConfig::kept_bytes_max`].
const KEPT_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Secret that is sent to the hub and never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token; `None` if the text is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Settings of a [`Library`](crate::Library).
#[derive(Debug, Clone)]
pub struct LibraryConfig {
    /// Address of the hub (`HF_ENDPOINT`).
    pub hub_url: String,
    /// Token for the hub (`HF_TOKEN`).
    pub token: Option<Token>,
    /// Base address of files on GitHub, followed by `OWNER/NAME/COMMIT/PATH` (`BENCH_GITHUB_RAW_URL`). The token is
    /// never sent there.
    pub github_raw_url: String,
    /// Base address of the Python package index, followed by `simple/PACKAGE/` (`BENCH_PYPI_URL`). The token is never sent
    /// there.
    pub pypi_url: String,
    /// If true (`HF_HUB_OFFLINE`), no request is sent: cached data is used, otherwise demo data and the program's own
    /// wording.
    pub offline: bool,
    /// Folder for downloads until they are in the blob store. Created when needed.
    pub cache_dir: PathBuf,
    /// Commit, tag or branch to use instead of `main`, by the benchmark's name
    /// (`BENCH_DATASET_REVISION_NAME`, the name in capitals).
    pub revisions: BTreeMap<String, String>,
    /// Wait before the first retry of a failed request; doubles with each further retry.
    pub backoff: Duration,
    /// Bytes of downloaded files that may stay in `cache_dir` until their dataset is finished. Above this limit, files
    /// are removed as soon as their rows are stored, so the disk space needed is this plus the largest file.
    pub kept_bytes_max: u64,
    /// Time without any data from the hub after which a request counts as failed.
    pub read_timeout: Duration,
}

impl LibraryConfig {
    /// Returns the defaults, with downloads kept in `cache_dir`.
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self {
            hub_url: HUB_URL_DEFAULT.to_owned(),
            github_raw_url: GITHUB_RAW_URL_DEFAULT.to_owned(),
            pypi_url: PYPI_URL_DEFAULT.to_owned(),
            token: None,
            offline: false,
            cache_dir: cache_dir.into(),
            revisions: BTreeMap::new(),
            backoff: Duration::from_millis(500),
            kept_bytes_max: KEPT_BYTES_MAX,
            read_timeout: Duration::from_secs(30),
        }
    }

    /// Reads the settings from variables, usually `std::env::vars()`. A variable that isn't set keeps the default.
    /// `is_benchmark` returns true for names of benchmarks; a revision for any other name would have no effect and is
    /// an error.
    ///
    /// # Errors
    /// A sentence that names the invalid variable.
    pub fn from_vars(
        cache_dir: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (String, String)>,
        is_benchmark: impl Fn(&str) -> bool,
    ) -> Result<Self, String> {
        let mut config = Self::new(cache_dir);
        for (name, value) in variables {
            let value = value.trim();
            match name.as_str() {
                _ if value.is_empty() => {}
                "HF_ENDPOINT" => config.hub_url = parse_address(&name, value)?,
                "BENCH_GITHUB_RAW_URL" => config.github_raw_url = parse_address(&name, value)?,
                "BENCH_PYPI_URL" => config.pypi_url = parse_address(&name, value)?,
                "HF_TOKEN" => {
                    if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
                        return Err(format!("{name}: a token has visible ASCII characters only"));
                    }
                    config.token = Token::new(value);
                }
                "HF_HUB_OFFLINE" => {
                    config.offline = match value.to_lowercase().as_str() {
                        "1" | "true" | "yes" | "on" => true,
                        "0" | "false" | "no" | "off" => false,
                        _ => return Err(format!("{name}: `{value}` is neither true nor false")),
                    };
                }
                _ => {
                    if let Some(benchmark) = name.strip_prefix(PIN_PREFIX) {
                        let benchmark = benchmark.to_lowercase();
                        if !is_benchmark(&benchmark) {
                            return Err(format!("{name}: unknown benchmark `{benchmark}`"));
                        }
                        config.revisions.insert(benchmark, value.to_owned());
                    }
                }
            }
        }
        Ok(config)
    }

    /// Returns the revision of a benchmark's dataset to use: the operator's choice, otherwise the protocol's.
    pub(crate) fn revision_for<'a>(&'a self, benchmark: &str, pinned: Option<&'a str>) -> &'a str {
        self.revisions.get(benchmark).map_or(pinned.unwrap_or("main"), String::as_str)
    }
}

/// Checks the address in a variable. The error doesn't repeat the value, since it may contain a password.
fn parse_address(name: &str, value: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(value).ok();
    let usable = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match usable {
        Some(_) => Ok(value.to_owned()),
        None => Err(format!("{name}: it must be an address such as https://host")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<LibraryConfig, String> {
        let pairs = pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        LibraryConfig::from_vars("cache", pairs, |name| name == "mmlu_pro")
    }

    fn vars(pairs: &[(&str, &str)]) -> LibraryConfig {
        read(pairs).unwrap()
    }

    #[test]
    fn invalid_variables_are_named() {
        for (name, value, problem) in [
            ("HF_ENDPOINT", "hub.example", "it must be an address such as https://host"),
            ("HF_ENDPOINT", "ftp://hub.example", "it must be an address such as https://host"),
            ("BENCH_GITHUB_RAW_URL", "nonsense", "it must be an address such as https://host"),
            ("HF_TOKEN", "two words", "a token has visible ASCII characters only"),
            ("HF_HUB_OFFLINE", "maybe", "`maybe` is neither true nor false"),
            ("BENCH_DATASET_REVISION_MMLU", "abc", "unknown benchmark `mmlu`"),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap_err(), format!("{name}: {problem}"));
        }
    }

    #[test]
    fn variables_set_the_config() {
        let config = vars(&[
            ("HF_ENDPOINT", "http://127.0.0.1:1/"),
            ("BENCH_GITHUB_RAW_URL", "http://127.0.0.1:2"),
            ("HF_TOKEN", " hf_x \n"),
            ("HF_HUB_OFFLINE", "1"),
            ("BENCH_DATASET_REVISION_MMLU_PRO", "abc"),
            ("OTHER", "x"),
        ]);
        assert_eq!(config.hub_url, "http://127.0.0.1:1/");
        assert_eq!(config.github_raw_url, "http://127.0.0.1:2");
        assert_eq!(config.token, Token::new("hf_x"));
        assert!(config.offline);
        assert_eq!(config.revision_for("mmlu_pro", Some("def")), "abc");
        assert_eq!(config.revision_for("aime_2025", None), "main");
        assert_eq!(config.revision_for("aime_2025", Some("def")), "def");
    }

    #[test]
    fn empty_variables_change_nothing() {
        let config = vars(&[("HF_ENDPOINT", ""), ("HF_TOKEN", "  "), ("HF_HUB_OFFLINE", "0")]);
        assert_eq!(config.hub_url, HUB_URL_DEFAULT);
        assert_eq!(config.token, None);
        assert!(!config.offline);
    }

    #[test]
    fn a_token_is_not_displayed() {
        assert!(!format!("{:?}", vars(&[("HF_TOKEN", "hf_secret")])).contains("hf_secret"));
    }
}
