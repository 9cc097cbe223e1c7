//! Limits of the machine that runs depend on: memory and open files.

use bench_http_server::{Limits, raise_open_files_limit};
use bench_stack::CONCURRENCY_DEFAULT;

use super::finding::{Check, Finding};
use crate::format;

/// Checks that the machine has enough memory for all sandboxes at their limits.
pub(super) fn memory(total_bytes: u64, slots: u64, sandbox_bytes: u64) -> Finding {
    let check = Check::new("memory", "memory");
    let (total, each) = (format::bytes(total_bytes), format::bytes(sandbox_bytes));
    let sandboxes = if slots == 1 { "sandbox" } else { "sandboxes" };
    let fact = format!("{total}; {} {sandboxes} of up to {each} at once", format::count(slots));
    if sandbox_bytes.saturating_mul(slots) <= total_bytes {
        return check.ok(fact);
    }
    let fix = "lower BENCH_SANDBOX_SLOTS or BENCH_SANDBOX_MEMORY_MIB (SciCode asks for 4096): all together may \
               use more memory than there is";
    check.warning(fact, fix)
}

/// Checks that `bench serve` may open as many connections as it accepts by default.
pub(super) fn open_files() -> Finding {
    // `bench serve` raises the limit, too. This changes it for this process only.
    open_files_of(raise_open_files_limit())
}

fn open_files_of(limit: u64) -> Finding {
    let check = Check::new("open-files", "open files");
    // A sample in progress has a connection to its provider, and may have one to a sandbox.
    let connections = |limit| Limits::for_open_files(None, limit, 2 * CONCURRENCY_DEFAULT).connections_max;
    let (allowed, wanted) = (connections(limit), connections(u64::MAX));
    let fact = format!("up to {}", format::count(limit));
    if allowed >= wanted {
        return check.ok(fact);
    }
    let fix = format!(
        "raise the hard limit (`ulimit -Hn 65536` as root): `bench serve` accepts {allowed} connections instead of {wanted}"
    );
    check.warning(fact, fix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn memory_is_compared_with_what_all_sandboxes_may_use() {
        assert_eq!(memory(8 << 30, 2, 4 << 30).status, Status::Ok);
        let small = memory((8 << 30) - 1, 2, 4 << 30);
        assert_eq!(small.status, Status::Warning);
        assert_eq!(small.fact, "8.6 GB; 2 sandboxes of up to 4.3 GB at once");
        assert_eq!(memory(8 << 30, u64::MAX, u64::MAX).status, Status::Warning);
    }

    #[test]
    fn few_open_files_are_a_warning() {
        assert_eq!(open_files_of(65_536).status, Status::Ok);
        let few = open_files_of(1_024);
        assert_eq!((few.status, few.fact.as_str()), (Status::Warning, "up to 1,024"));
        assert!(few.fix.unwrap().contains("connections instead of 1024"));
    }
}
