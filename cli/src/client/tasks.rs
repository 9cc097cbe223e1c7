//! Uploads of terminal tasks and custom agents.

use anyhow::Context;
use bench_domain::{Code, Timestamp};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

use super::files::{form, upload_headers};
use super::{Client, Payload, Transport, encode};
use crate::agent_archive::AgentArchive;
use crate::refusal::Refusal;
use crate::task_archive::TaskArchive;

/// Maximum size of an archive within a request to a server. API Gateway accepts 6 MB, and base64 takes up a third of
/// that.
const IN_REQUEST_BYTES_MAX: usize = 4 << 20;

/// A task at the API.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Task {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Id of the item in runs: `NAME@HASH12`.
    pub(crate) task: String,
    pub(crate) content_hash: String,
    pub(crate) status: String,
    pub(crate) created_at: String,
    pub(crate) total_runs: u64,
    pub(crate) passed_runs: u64,
    /// Id of an earlier task with the same files, if it was just uploaded.
    #[serde(default)]
    pub(crate) same_files_as: Option<u64>,
    /// Keys of its files that have no effect, if it was just uploaded.
    #[serde(default)]
    pub(crate) warnings: Vec<String>,
    #[serde(default)]
    pub(crate) failed_runs: u64,
    /// Episodes without a grade, among those that failed.
    #[serde(default)]
    pub(crate) error_runs: u64,
    /// Episodes of all its orders; `None` from a server of an older version.
    #[serde(default)]
    pub(crate) results: Option<TaskResults>,
    /// False if the task was only stored for a run.
    #[serde(default = "listed")]
    pub(crate) listed: bool,
}

/// Episodes of a task over all of its orders.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct TaskResults {
    /// `pending`, `running` or `completed`.
    pub(crate) status: String,
    /// Number of ordered episodes.
    pub(crate) episodes: u64,
    /// Episodes with the full reward.
    pub(crate) passed: u64,
    /// Episodes that were graded below it.
    pub(crate) failed: u64,
    /// Episodes that are over without a grade.
    pub(crate) errors: u64,
}

impl Task {
    /// Returns the results of all orders; those of the task's own routes from a server of an older version.
    pub(crate) fn results(&self) -> TaskResults {
        self.results.clone().unwrap_or_else(|| TaskResults {
            status: self.status.clone(),
            episodes: self.total_runs,
            passed: self.passed_runs,
            failed: self.failed_runs.saturating_sub(self.error_runs),
            errors: self.error_runs,
        })
    }
}

const fn listed() -> bool {
    true
}

/// An uploaded custom agent.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct StoredAgent {
    /// Content hash of its files.
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: Option<String>,
    /// Name in runs: `custom/NAME@VERSION`.
    pub(crate) model: String,
    /// Variables of the order that it needs, without a default.
    #[serde(default)]
    pub(crate) required_variables: Vec<String>,
    pub(crate) files: u64,
    pub(crate) expanded_bytes: u64,
    pub(crate) archive_bytes: u64,
    pub(crate) created_at: Timestamp,
}

impl StoredAgent {
    /// Returns the name with the version, if there is one: `NAME` or `NAME@VERSION`.
    pub(crate) fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Place of a task in lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listing {
    /// Lists show the task.
    Listed,
    /// The task is stored for a run.
    ForRun,
}

/// Address for an archive.
#[derive(Debug, Deserialize)]
struct Upload {
    upload_url: String,
    headers: BTreeMap<String, String>,
    key: String,
}

impl Client {
    /// Uploads a task under a name.
    pub(crate) async fn add_task(
        &self,
        archive: &TaskArchive,
        name: &str,
        listing: Listing,
    ) -> anyhow::Result<Task> {
        let is_listed = listing == Listing::Listed;
        if let Transport::Remote(_) = self.transport
            && archive.bytes.len() > IN_REQUEST_BYTES_MAX
        {
            match self.add_task_by_upload(archive, name, is_listed).await {
                Err(error)
                    if error
                        .downcast_ref::<Refusal>()
                        .is_some_and(|refused| refused.code() == Some(Code::UploadsNotOffered)) => {}
                other => return other,
            }
        }
        let path = format!("/api/tasks?name={}&agent=oracle&listed={is_listed}", encode(name));
        self.send_form(&path, &archive.bytes).await
    }

    /// Uploads a custom agent, and returns the server's description of it. The same files again are the same agent.
    pub(crate) async fn add_agent(&self, agent: &AgentArchive) -> anyhow::Result<Value> {
        let added: Value = self.send_form("/api/agents", &agent.bytes).await?;
        // The server computes it from what it received.
        anyhow::ensure!(
            added.get("id").and_then(Value::as_str) == Some(&agent.content_hash),
            "the server received other files of the agent than were sent"
        );
        Ok(added)
    }

    /// Uploads the files of the agent of an order, if it has any.
    pub(crate) async fn add_agent_of_order(&self, agent: Option<&AgentArchive>) -> anyhow::Result<()> {
        match agent {
            Some(agent) => self.add_agent(agent).await.map(drop).context("the agent was not accepted"),
            None => Ok(()),
        }
    }

    /// Checks a task without storing it.
    pub(crate) async fn check_task(&self, archive: &TaskArchive) -> anyhow::Result<Value> {
        self.send_form("/api/tasks/check", &archive.bytes).await
    }

    /// Sends an archive as the file of a form.
    async fn send_form<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        mut archive: &[u8],
    ) -> anyhow::Result<T> {
        let length = archive.len() as u64;
        let (boundary, body) = form(&mut archive, length).await?;
        let content_type = format!("multipart/form-data; boundary={boundary}");
        self.request(Method::POST, path, Payload::Bytes { content_type, bytes: body.into() }).await
    }

    /// Sends an archive directly to the server's file store.
    async fn add_task_by_upload(
        &self,
        archive: &TaskArchive,
        name: &str,
        is_listed: bool,
    ) -> anyhow::Result<Task> {
        let sha256 = hex::encode(Sha256::digest(&archive.bytes));
        let order = json!({ "bytes": archive.bytes.len(), "sha256": sha256 });
        let upload: Upload = self.post("/api/tasks/uploads", Some(&order)).await?;
        let headers = upload_headers(&upload.headers)?;
        if let Transport::Remote(remote) = &self.transport {
            remote.put_bytes(&upload.upload_url, headers, archive.bytes.clone()).await?;
        }
        let named = json!({ "upload": upload.key, "name": name, "agent": "oracle", "listed": is_listed });
        self.post("/api/tasks", Some(&named)).await
    }
}
