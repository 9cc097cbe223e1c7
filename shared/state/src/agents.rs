//! Uploaded custom agents. Each owner of the same files has a record; the files are stored once.

use bench_domain::Timestamp;
use bench_domain::run::Owner;
use serde::{Deserialize, Serialize};

use crate::attributes::{Reader, Record, json, text};
use crate::keys::{AGENTS, key};
use crate::{State, StateError};

/// Custom agent of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRecord {
    /// Content hash, 64 hexadecimal digits.
    pub content_hash: String,
    /// Name, as in its `agent.toml`.
    pub name: String,
    /// Version, if it states one.
    pub version: Option<String>,
    /// Names of the order's variables that have no default.
    pub required_variables: Vec<String>,
    /// Number of files.
    pub files: u64,
    /// Size of the files in bytes.
    pub expanded_bytes: u64,
    /// Size of the archive in bytes.
    pub archive_bytes: u64,
    /// Owner, who may see, order and remove the agent.
    pub owner: Owner,
    /// Time of the upload.
    pub created_at: Timestamp,
}

impl AgentRecord {
    /// Returns the name with the version, if there is one: `NAME` or `NAME@VERSION`.
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.name),
            None => self.name.clone(),
        }
    }
}

fn agent_key(content_hash: &str, owner: &Owner) -> Record {
    let owner = match owner {
        Owner::Local => "LOCAL".to_owned(),
        Owner::Key(key) => format!("KEY#{key}"),
        Owner::User(subject) => format!("USER#{subject}"),
    };
    key(AGENTS, format!("{content_hash}#{owner}"))
}

impl State {
    /// Writes the record of an agent, replacing an earlier one of the same owner and content.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn put_agent(&self, agent: &AgentRecord) -> Result<(), StateError> {
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(agent_key(&agent.content_hash, &agent.owner)))
            .item("agent", json("agent", agent)?)
            .send()
            .await;
        put.map(drop).map_err(|error| StateError::sdk("store the agent", error))
    }

    /// Removes the record of an agent. Safe to repeat.
    ///
    /// # Errors
    /// If the table can't be written.
    pub async fn remove_agent(&self, content_hash: &str, owner: &Owner) -> Result<(), StateError> {
        let key = agent_key(content_hash, owner);
        let removed = self.client.delete_item().table_name(&self.table).set_key(Some(key)).send().await;
        removed.map(drop).map_err(|error| StateError::sdk("remove the agent", error))
    }

    /// Lists the agents of all owners, newest first.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn list_agents(&self) -> Result<Vec<AgentRecord>, StateError> {
        self.agents_with("").await
    }

    /// Returns the records of all owners of a content, newest first.
    ///
    /// # Errors
    /// If the table can't be read.
    pub async fn agents_of_content(&self, content_hash: &str) -> Result<Vec<AgentRecord>, StateError> {
        self.agents_with(&format!("{content_hash}#")).await
    }

    async fn agents_with(&self, prefix: &str) -> Result<Vec<AgentRecord>, StateError> {
        let query = self.client.query().table_name(&self.table).consistent_read(true);
        let query = query.expression_attribute_values(":agents", text(AGENTS));
        let query = match prefix {
            "" => query.key_condition_expression("pk = :agents"),
            prefix => query
                .key_condition_expression("pk = :agents AND begins_with(sk, :prefix)")
                .expression_attribute_values(":prefix", text(prefix)),
        };
        let mut pages = query.into_paginator().items().send();
        let mut agents: Vec<AgentRecord> = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("list the agents", error))?;
            agents.push(Reader::new(&record).json("agent")?);
        }
        agents.sort_by(|a, b| {
            b.created_at.cmp(&a.created_at).then_with(|| a.content_hash.cmp(&b.content_hash))
        });
        Ok(agents)
    }
}
