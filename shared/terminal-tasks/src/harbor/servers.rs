//! MCP servers of an environment.

use crate::model::{McpServer, McpTransport};
use crate::node::Fields;
use crate::refusal::Refusal;

/// Reads `[[environment.mcp_servers]]`.
pub(super) fn read(environment: &Fields<'_>) -> Result<Vec<McpServer>, Refusal> {
    environment.tables("mcp_servers")?.iter().map(read_server).collect()
}

fn read_server(server: &Fields<'_>) -> Result<McpServer, Refusal> {
    let headers = server.text_map("headers")?;
    for (name, value) in &headers {
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+.^_`|~-".contains(&byte));
        if !is_name || value.contains(['\r', '\n', '\0']) {
            return Err(server.invalid("headers", name, "a table of HTTP header fields, each on one line"));
        }
    }
    let url = || server.required_text("url").map(str::to_owned);
    let transport = match server.text("transport")?.unwrap_or("sse") {
        "sse" => McpTransport::Sse { url: url()?, headers },
        "streamable-http" | "http" => McpTransport::StreamableHttp { url: url()?, headers },
        "stdio" if !headers.is_empty() => return Err(server.conflict("headers", "transport")),
        "stdio" => McpTransport::Stdio {
            command: server.required_text("command")?.to_owned(),
            args: server.texts("args")?.unwrap_or_default(),
        },
        other => return Err(server.invalid("transport", other, "`stdio`, `sse` or `streamable-http`")),
    };
    Ok(McpServer { name: server.required_text("name")?.to_owned(), transport })
}
