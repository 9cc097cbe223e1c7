//! Environments: the container of the agent or of a separate verifier.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::network::NetworkPolicy;
use crate::variables::Variables;

/// Environment in which commands run.
///
/// At least one of `image`, `dockerfile` and `compose_file` is set. An image is used as it is unless a build is forced.
#[derive(Debug, Clone, PartialEq)]
pub struct Environment {
    /// Folder of the task with the build's files; empty for the task's own folder.
    pub folder: String,
    /// Name of a prebuilt image.
    pub image: Option<String>,
    /// Path of the Dockerfile in the task.
    pub dockerfile: Option<String>,
    /// Path of the compose file in the task.
    pub compose_file: Option<String>,
    /// Service of the compose file in which commands run.
    pub service: String,
    /// Time limit of build and start.
    pub build_timeout: Duration,
    /// Operating system.
    pub os: OperatingSystem,
    /// Number of processors; `None` for the runner's default.
    pub cpus: Option<f64>,
    /// Memory in mebibytes; `None` for the runner's default.
    pub memory_mb: Option<u64>,
    /// Disk space in mebibytes; `None` for the runner's default.
    pub storage_mb: Option<u64>,
    /// Number of GPUs.
    pub gpus: u64,
    /// Acceptable types of GPUs; empty for any.
    pub gpu_types: Vec<String>,
    /// Slice of a TPU.
    pub tpu: Option<Tpu>,
    /// Network access, unless a phase has its own.
    pub network: NetworkPolicy,
    /// Variables of all commands.
    pub env: Variables,
    /// Working directory of all commands; `None` for the image's.
    pub workdir: Option<String>,
    /// Folder with skills in the container.
    pub skills_dir: Option<String>,
    /// MCP servers for agents that can use them.
    pub mcp_servers: Vec<McpServer>,
    /// Check after the start.
    pub healthcheck: Option<HealthCheck>,
}

/// Operating system of an environment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OperatingSystem {
    /// Linux.
    #[default]
    Linux,
    /// Windows.
    Windows,
}

/// Slice of a TPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tpu {
    /// Type of accelerator.
    pub kind: String,
    /// Sizes of the dimensions with `x` between them.
    pub topology: String,
}

/// Command that checks whether an environment is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// Shell command; it succeeds with exit code 0.
    pub command: String,
    /// Time between two checks.
    pub interval: Duration,
    /// Time limit of one check.
    pub timeout: Duration,
    /// Time after the start during which failures don't count.
    pub start_period: Duration,
    /// Time between two checks during the start period.
    pub start_interval: Duration,
    /// Number of consecutive failures after which the environment has failed.
    pub retries: u32,
}

/// MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Name.
    pub name: String,
    /// Way to reach it.
    pub transport: McpTransport,
}

/// Way to reach an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpTransport {
    /// A command in the environment.
    Stdio {
        /// Program.
        command: String,
        /// Arguments.
        args: Vec<String>,
    },
    /// Server-sent events.
    Sse {
        /// Address.
        url: String,
        /// Header fields; values may contain templates.
        headers: BTreeMap<String, String>,
    },
    /// Streamable HTTP.
    StreamableHttp {
        /// Address.
        url: String,
        /// Header fields; values may contain templates.
        headers: BTreeMap<String, String>,
    },
}
