//! Terminal tasks that were read, for all runs.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bench_episodes::TaskFiles;

/// Maximum size of all tasks in memory, in bytes of their files. One task is kept whatever its size.
const CACHE_BYTES_MAX: u64 = 96 << 20;

/// Tasks that were read, the most recently used one last.
#[derive(Debug, Default)]
pub(crate) struct TaskCache {
    tasks: Mutex<VecDeque<(String, Arc<TaskFiles>)>>,
}

impl TaskCache {
    /// Returns a task by its content hash.
    pub(crate) fn get(&self, hash: &str) -> Option<Arc<TaskFiles>> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let at = tasks.iter().position(|(known, _)| known == hash)?;
        let found = tasks.remove(at)?;
        let files = Arc::clone(&found.1);
        tasks.push_back(found);
        Some(files)
    }

    /// Adds a task, and drops the least recently used ones.
    pub(crate) fn add(&self, hash: String, files: Arc<TaskFiles>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|(known, _)| *known != hash);
        tasks.push_back((hash, files));
        let bytes = |tasks: &VecDeque<(String, Arc<TaskFiles>)>| -> u64 {
            tasks.iter().map(|(_, files)| files.admitted.tree.bytes()).sum()
        };
        while tasks.len() > 1 && bytes(&tasks) > CACHE_BYTES_MAX {
            tasks.pop_front();
        }
    }
}
