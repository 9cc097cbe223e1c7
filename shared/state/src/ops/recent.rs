//! First and last runs of a status, without counting the others.

use bench_domain::{RunId, RunStatus};

use crate::attributes::Reader;
use crate::keys::{self, BY_STATUS, status_partition};
use crate::{RunRecord, State, StateError};

/// End of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListEnd {
    Oldest,
    Newest,
}

impl State {
    /// Lists the oldest runs of this status, oldest first; at most `limit`, up to 100.
    pub async fn oldest_runs(&self, status: RunStatus, limit: u32) -> Result<Vec<RunRecord>, StateError> {
        self.end_of_list(status, ListEnd::Oldest, limit).await
    }

    /// Lists the newest runs of this status, newest first; at most `limit`, up to 100.
    pub async fn newest_runs(&self, status: RunStatus, limit: u32) -> Result<Vec<RunRecord>, StateError> {
        self.end_of_list(status, ListEnd::Newest, limit).await
    }

    async fn end_of_list(
        &self,
        status: RunStatus,
        end: ListEnd,
        limit: u32,
    ) -> Result<Vec<RunRecord>, StateError> {
        let limit = limit.clamp(1, 100);
        let page = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(BY_STATUS)
            .key_condition_expression("index_status = :status")
            .expression_attribute_values(":status", status_partition(status.as_str()))
            .scan_index_forward(end == ListEnd::Oldest)
            .limit(i32::try_from(limit).unwrap_or(100))
            .send()
            .await
            .map_err(|error| StateError::sdk("list runs", error))?;
        let mut ids: Vec<RunId> = Vec::with_capacity(page.items().len());
        for record in page.items() {
            let sort = Reader::new(record).text("index_sort")?;
            let id = sort.rsplit('#').next().and_then(|id| id.parse().ok());
            ids.push(id.ok_or_else(|| StateError::damaged(sort, "it names no run"))?);
        }
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let records = self.read_batch(ids.iter().map(|id| keys::run(*id)).collect()).await?;
        let mut runs: Vec<RunRecord> = records.iter().map(RunRecord::read).collect::<Result<_, _>>()?;
        // The index lags slightly behind the records.
        runs.retain(|run| run.state.status() == status && !run.deleted);
        runs.sort_by_key(|run| ids.iter().position(|id| *id == run.spec.id));
        Ok(runs)
    }
}
