//! The demo: three instances of a small repository of ours, with an image that is built.

use bench_items::DemoFile;

use super::row::Instance;
use crate::scorers::instance::{BASE_DOCKERFILE, INSTANCE_DOCKERFILE, InstanceFile, PARSER, RUN_SCRIPT};

/// Rows of the instances.
pub(super) const ROWS: &str = include_str!("../../data/swe_bench_pro.jsonl");
/// Repository of the instances.
pub(super) const REPOSITORY: &str = "bench-demo/timesheet";

const HOURS: &str = "instance_bench-demo__timesheet-d3452bcdc4c79fb5b69fe850d6fa8ed8f6649a02";
const REPORT: &str = "instance_bench-demo__timesheet-f6a878a1c7370967398f06ef89ef7773790ba1f3";
const NAMES: &str = "instance_bench-demo__timesheet-16106c4e596ce21c30612d0323479480177af7f8";

/// Scripts of the instances, which are the same for each of them.
pub(super) const FILES: &[DemoFile] = &files();

const fn files() -> [DemoFile; 12] {
    let scripts = [
        (RUN_SCRIPT, include_str!("../../data/swe_bench_pro/run_script.sh")),
        (PARSER, include_str!("../../data/swe_bench_pro/parser.py")),
        (BASE_DOCKERFILE, include_str!("../../data/swe_bench_pro/base.Dockerfile")),
        (INSTANCE_DOCKERFILE, include_str!("../../data/swe_bench_pro/instance.Dockerfile")),
    ];
    let ids = [HOURS, REPORT, NAMES];
    let mut files = [DemoFile { id: "", name: "", text: "" }; 12];
    let mut at = 0;
    while at < files.len() {
        let (name, text) = scripts[at % scripts.len()];
        files[at] = DemoFile { id: ids[at / scripts.len()], name, text };
        at += 1;
    }
    files
}

/// Returns the files that the image of a demo instance is built from; `None` for other instances.
pub(super) fn image(instance: &Instance) -> Option<Vec<InstanceFile>> {
    let is_demo = instance.repo == REPOSITORY && instance.dockerhub_tag.trim().is_empty();
    is_demo.then(|| {
        vec![
            InstanceFile::new("Dockerfile", include_str!("../../data/swe_bench_pro/Dockerfile")),
            InstanceFile::new("make_repo.sh", include_str!("../../data/swe_bench_pro/make_repo.sh")),
        ]
    })
}
