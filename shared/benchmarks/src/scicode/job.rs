//! The job that runs the programs of a problem: files for a Python driver, which assembles the programs.

use std::collections::BTreeMap;
use std::time::Duration;

use bench_domain::{FileContent, JobFile, JobReport, JobSpec, ResultFile, SampleBody, StoredFile, Verdict};
use bench_items::Item;
use serde_json::json;

use super::problem::Problem;
use super::seal::{RESULTS, ROUNDS_MAX, secret};
use super::{SciCode, TARGETS, extract, texts, verdict};
use crate::item_problem::ItemProblem;
use crate::scorers::sandbox::{
    GradingMode, JobMaterial, Round, SandboxGrader, SandboxMetadata, UnreadableReport,
};

/// Time limit for a step's program in seconds, as in the official program.
const STEP_SECONDS: u64 = 1800;
/// Maximum time for starting Python, checking modules and cleaning up, in seconds.
const MARGIN_SECONDS: u64 = 900;
/// Maximum time limit of a job. The longest problem has 15 steps.
const TIME_LIMIT_MAX: Duration = Duration::from_hours(24);
/// Memory for the more demanding steps, in bytes.
const MEMORY_BYTES: u64 = 4 << 30;
/// Maximum size of the results in bytes.
const RESULTS_BYTES_MAX: u64 = 1 << 20;
/// Number of characters of a file's digest to display.
const DIGEST_CHARS: usize = 12;
/// Modules that every step's tests import.
const MODULES: [&str; 4] = ["numpy", "scipy", "sympy", "h5py"];
/// Module that some problems import.
const PLOTS: &str = "matplotlib";

/// First versions that lack functions used by problems of the dataset.
const TOO_NEW: [(&str, &[u32]); 2] = [("numpy", &[2]), ("scipy", &[1, 14])];

/// Checks that Python and the packages exist.
const PROBE: &str = "python3 -I -c 'import importlib.util as u, sys\n\
                     lacks = [m for m in (\"numpy\", \"scipy\", \"sympy\", \"h5py\") if u.find_spec(m) is None]\n\
                     lacks and sys.exit(print(\"run `bench sandy setup`: the sandbox has no \" + \", \".join(lacks)) or 1)'";

static METADATA: SandboxMetadata = SandboxMetadata {
    needs: "numpy < 2, scipy < 1.14, sympy, h5py, matplotlib; 4096 MiB of memory",
    packages: &MODULES,
    grader: "scicode-bench/SciCode 588b4069, parse.py and cmp.py",
    rounds_max: ROUNDS_MAX,
    verdict: "A problem is right when the program of each of its steps, with the model's code for all steps before, ends with code 0.",
};

impl SandboxGrader for SciCode {
    fn metadata(&self) -> &'static SandboxMetadata {
        &METADATA
    }

    /// Returns the code of all answered steps, which is the last program without imports and given steps.
    fn code(&self, body: &SampleBody) -> Option<String> {
        let codes = body.steps.iter().map(|step| extract::code(&step.answer.text));
        Some(codes.collect::<Vec<_>>().join("\n\n")).filter(|code| !code.is_empty())
    }

    fn job(
        &self,
        item: &Item,
        body: &SampleBody,
        material: &JobMaterial<'_>,
    ) -> Result<JobSpec, ItemProblem> {
        let problem = Problem::from_row(&item.row)?;
        let asked = problem.asked_steps().count();
        if body.steps.len() != asked {
            let problem = format!("{} of {asked} steps were answered", body.steps.len());
            return Err(ItemProblem::Content(problem));
        }
        let named = problem.targets.and_then(|name| material.attachments.get(name));
        let targets = named.or_else(|| material.attachments.get(TARGETS)).ok_or_else(|| {
            let problem = "the file with the expected values (test_data.h5) is missing";
            ItemProblem::Content(problem.into())
        })?;
        let codes = self.codes(&problem, material.templates, &body.steps)?;
        let programs = texts::programs(material.templates);

        let package: BTreeMap<&str, &str> = BTreeMap::from([
            ("package/datasets/__init__.py", include_str!("job/datasets.py")),
            ("package/scicode/__init__.py", ""),
            ("package/scicode/compare/__init__.py", ""),
            ("package/scicode/compare/cmp.py", programs.compare),
            ("package/scicode/parse/__init__.py", include_str!("job/mark_tests.py")),
            ("package/scicode/parse/end.py", include_str!("job/mark_end.py")),
            ("package/scicode/parse/parse.py", programs.parse),
            ("package/scicode/parse/send.py", include_str!("job/send.py")),
        ]);
        let texts = problem.steps.iter().flat_map(|step| step.tests.iter().copied());
        let plots = texts.chain([problem.dependencies]).any(|text| text.contains(PLOTS));
        let modules: Vec<&str> = MODULES.into_iter().chain(plots.then_some(PLOTS)).collect();
        let steps: Vec<_> = problem
            .steps
            .iter()
            .map(|step| {
                json!({
                    "name": step.name,
                    "code": code_path(step.name),
                    "asked": !step.is_given,
                    "header": step.header,
                    "tests": step.tests,
                })
            })
            .collect();
        let job = json!({
            "dependencies": problem.dependencies,
            "steps": steps,
            "package": package.keys().collect::<Vec<_>>(),
            "targets": "targets.h5",
            "targets_name": display_name(targets, problem.targets.filter(|_| named.is_some())),
            "modules": modules,
            "below": TOO_NEW.into_iter().collect::<BTreeMap<_, _>>(),
            "seconds": STEP_SECONDS,
            "grader": programs.source.as_str(),
            "grading": self.grading.as_str(),
        });

        let mut files = vec![
            file("driver.py", include_str!("job/driver.py")),
            file("job.json", job.to_string()),
            file("seal", secret(item, &body.steps, material.nonce)),
            JobFile { path: "targets.h5".into(), content: FileContent::Stored(targets.clone()) },
        ];
        if self.grading == GradingMode::Isolated {
            files.push(file("split.py", include_str!("job/split.py")));
            files.push(file("grade.py", include_str!("job/grade.py")));
        }
        files.extend(package.into_iter().map(|(path, text)| file(path, text)));
        let codes = problem.steps.iter().zip(codes);
        files.extend(codes.map(|(step, code)| file(code_path(step.name), code)));
        Ok(JobSpec {
            files,
            // Isolated mode (`-I`), so that no file in the folder can be imported as a module by the driver.
            script: "exec python3 -I -B driver.py\n".into(),
            time_limit: Duration::from_secs(STEP_SECONDS * asked as u64 + MARGIN_SECONDS).min(TIME_LIMIT_MAX),
            memory_bytes: MEMORY_BYTES,
            probe: Some(PROBE.to_owned()),
            // The driver uses Landlock to hide the file with the expected values, and denies it to the programs that it
            // starts.
            needs_landlock: true,
            results: vec![ResultFile { path: RESULTS.into(), bytes_max: RESULTS_BYTES_MAX }],
        })
    }

    fn read(
        &self,
        item: &Item,
        body: &SampleBody,
        report: &JobReport,
        round: Round<'_>,
    ) -> Result<Verdict, UnreadableReport> {
        verdict::read(*self, item, body, report, round)
    }
}

/// Returns a display name of the file with the expected values.
fn display_name(targets: &StoredFile, named: Option<&str>) -> String {
    let hub_name = targets.url.as_deref().and_then(|url| url.rsplit('/').next());
    let name = named.or(hub_name).unwrap_or("the .h5 file with the right values");
    let digest = targets.sha256.get(..DIGEST_CHARS).unwrap_or(&targets.sha256);
    format!("{name} (SHA-256 {digest}…)")
}

/// Returns the path of a step's code.
fn code_path(step: &str) -> String {
    format!("code/{step}.py")
}

fn file(path: impl Into<String>, text: impl Into<String>) -> JobFile {
    JobFile { path: path.into(), content: FileContent::Bytes(text.into().into_bytes()) }
}
