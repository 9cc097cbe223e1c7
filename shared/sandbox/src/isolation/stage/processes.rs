//! Process trees and the usage of processes, read from `/proc`.

use std::collections::BTreeSet;

/// Maximum number of processes to visit: more than any sandbox may have.
const PROCESSES_MAX: usize = 65_536;

/// Kernel memory of a thread, in bytes: its stack and descriptors.
const THREAD_BYTES: u64 = 32 << 10;

/// Usage of a set of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ProcessUsage {
    /// CPU time in seconds, including that of reaped children.
    pub(crate) cpu_seconds: f64,
    /// Private memory in use, in bytes.
    pub(crate) memory_bytes: u64,
}

/// Returns the children, grandchildren and so on of a process. Processes that start or exit meanwhile may be missing.
pub(crate) fn descendants(root: u32) -> BTreeSet<u32> {
    descendants_up_to(root, PROCESSES_MAX)
}

/// Returns at most `max` descendants, which takes less time than all.
pub(crate) fn descendants_up_to(root: u32, max: usize) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut left = vec![root];
    while let Some(parent) = left.pop().filter(|_| found.len() < max) {
        for child in children(parent) {
            if found.len() < max && found.insert(child) {
                left.push(child);
            }
        }
    }
    found
}

/// Returns true if these processes are in more than `max` sessions.
pub(crate) fn are_in_more_sessions_than(processes: &BTreeSet<u32>, max: usize) -> bool {
    if processes.len() <= max {
        return false;
    }
    let mut sessions = BTreeSet::new();
    processes.iter().any(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        sessions.extend(session(&stat));
        sessions.len() > max
    })
}

/// Returns the children of all threads of a process.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    use std::os::unix::fs::MetadataExt;
    // A folder has two links besides those of its subfolders.
    let threads = std::fs::metadata(format!("/proc/{parent}/task")).map_or(0, |metadata| metadata.nlink());
    if threads == 3 {
        // A shortcut for the common case of one thread, since scans of many processes must be quick.
        let list =
            std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        return list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect();
    }
    let Ok(threads) = std::fs::read_dir(format!("/proc/{parent}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// Returns the total usage of these processes.
pub(crate) fn total_usage(processes: impl IntoIterator<Item = u32>) -> ProcessUsage {
    let mut sum = ProcessUsage::default();
    for pid in processes {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        sum.cpu_seconds += cpu_seconds(&stat).unwrap_or_default();
        let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        sum.memory_bytes = sum.memory_bytes.saturating_add(own_memory_bytes(&statm).unwrap_or_default());
    }
    sum
}

/// Returns the private memory of a process, in bytes: its pages, including those in swap, and the kernel's memory for
/// it and its threads.
pub(crate) fn memory_bytes(pid: u32) -> u64 {
    memory_in(&std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default())
}

fn memory_in(status: &str) -> u64 {
    let number = |name: &str| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
    };
    let pages = ["RssAnon", "VmSwap", "VmPTE"].into_iter().map(number).sum::<u64>();
    pages.saturating_mul(1 << 10).saturating_add(number("Threads").saturating_mul(THREAD_BYTES))
}

/// Returns true if one of its threads is in uninterruptible sleep, such as a parent that waits for the `exec` of its
/// child.
pub(crate) fn is_in_deep_sleep(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    threads.flatten().any(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        after_name(&stat).is_some_and(|fields| fields.trim_start().starts_with('D'))
    })
}

/// Returns the number of open files of a process; 0 if the kernel doesn't report it.
pub(crate) fn open_files(pid: u32) -> u64 {
    std::fs::metadata(format!("/proc/{pid}/fd")).map_or(0, |metadata| metadata.len())
}

/// Returns the resident private memory of a process, in bytes: a part of [`memory_bytes`] that is quick to read.
pub(crate) fn resident_bytes(pid: u32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    own_memory_bytes(&statm).unwrap_or_default()
}

/// Returns the number of threads of these processes, at least one for each.
pub(crate) fn threads(processes: impl IntoIterator<Item = u32>) -> u64 {
    let count =
        |pid| std::fs::read_dir(format!("/proc/{pid}/task")).map_or(1, |threads| threads.count() as u64);
    processes.into_iter().map(count).sum()
}

/// Returns the number of processes and threads of a user, as the kernel counts them for its limit.
pub(crate) fn threads_of_user(uid: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir("/proc") else { return 0 };
    entries
        .flatten()
        .filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.uid() == uid))
        .filter_map(|entry| std::fs::read_dir(entry.path().join("task")).ok())
        .map(|threads| threads.count() as u64)
        .sum()
}

/// Returns the fields after the name in `/proc/PID/stat`. The name is in parentheses and may contain any character.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, fields)| fields)
}

/// Parses the session of a process from `/proc/PID/stat`.
fn session(stat: &str) -> Option<u32> {
    after_name(stat)?.split_whitespace().nth(3)?.parse().ok()
}

/// Parses the user and system time of a process and of its reaped children from `/proc/PID/stat`.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let fields: Vec<&str> = after_name(stat)?.split_whitespace().collect();
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Parses the size of resident pages that belong to no file from `/proc/PID/statm`.
fn own_memory_bytes(statm: &str) -> Option<u64> {
    let fields: Vec<u64> = statm.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let (resident, shared) = (fields.get(1)?, fields.get(2)?);
    Some(resident.saturating_sub(*shared) * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_after_any_name() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194304 100 0 0 0 250 50 30 20 20 0 1 0 100 0 0";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(cpu_seconds(stat), Some(350.0 / ticks));
        assert_eq!(cpu_seconds(""), None);
        assert_eq!(cpu_seconds("1 (x"), None);
    }

    #[test]
    fn sessions_are_counted() {
        assert_eq!(session("12 (a) b (c)) S 1 12 13 0 -1"), Some(13));
        assert_eq!(session("12 (a) S 1"), None);
        let own = BTreeSet::from([std::process::id()]);
        assert!(are_in_more_sessions_than(&own, 0) && !are_in_more_sessions_than(&own, 1));
    }

    #[test]
    fn resident_memory_excludes_files() {
        assert_eq!(own_memory_bytes("900 500 200 1 0 1 0"), Some(300 * rustix::param::page_size() as u64));
        assert_eq!(own_memory_bytes("x"), None);
    }

    #[test]
    fn memory_includes_swap_and_kernel_memory() {
        let status =
            "Name:\tRssAnon: 9\nVmPTE:\t     4 kB\nRssAnon:\t   100 kB\nVmSwap:\t    6 kB\nThreads:\t2\n";
        assert_eq!(memory_in(status), (110 << 10) + 2 * THREAD_BYTES);
        assert_eq!(memory_in(""), 0);
    }

    #[test]
    fn a_child_is_found_and_its_memory_counted() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        assert!(descendants(std::process::id()).contains(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(total_usage([std::process::id()]).memory_bytes > 0);
    }
}
