#![doc = include_str!("step/README.md")]

use bench_domain::{FileContent, JobFile};

/// Name of the variable with the folder of the official package in a sandbox.
pub const PACKAGE_VARIABLE: &str = "SANDY_TAU2";
/// File in that folder that describes the package. Only a complete folder has it.
pub const PACKAGE_MARKER: &str = "bench-tau2.json";

const FILES: [(&str, &str); 3] = [
    ("step.py", include_str!("step/step.py")),
    ("telecom.py", include_str!("step/telecom.py")),
    ("demo.py", include_str!("step/demo.py")),
];

/// Returns the files of a step: the script, and its request as JSON.
#[must_use]
pub fn files(request: &str) -> Vec<JobFile> {
    let files = FILES.into_iter().chain([("request.json", request)]);
    let file = |(path, text): (&str, &str)| JobFile {
        path: path.to_owned(),
        content: FileContent::Bytes(text.as_bytes().to_vec()),
    };
    files.map(file).collect()
}

/// Returns the command that runs the script. Without the package, the script itself says that it's missing.
#[must_use]
pub const fn script() -> &'static str {
    "exec \"${SANDY_TAU2:+$SANDY_TAU2/bin/}python3\" -I -B step.py\n"
}

#[cfg(test)]
mod tests;
