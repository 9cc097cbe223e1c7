//! Fields that several tables have.

use std::time::Duration;

use crate::model::{AgentPhase, HealthCheck, User};
use crate::network::{AllowedHost, NetworkPolicy};
use crate::node::{Fields, Value};
use crate::refusal::{FormatProblem, Refusal};
use crate::variables::{Template, Variables};

/// Maximum number of hosts of an allowlist.
const ALLOWED_HOSTS_MAX: usize = 1000;

/// Reads a table of variables.
pub(super) fn variables(fields: &Fields<'_>, key: &str) -> Result<Variables, Refusal> {
    let mut variables = Variables::default();
    for (name, value) in fields.text_map(key)? {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(fields.invalid(key, name, "a table of names without `=`"));
        }
        if value.contains('\0') {
            return Err(fields.invalid(key, value, "a table of values without NUL characters"));
        }
        variables.0.insert(name, Template::parse(&value));
    }
    Ok(variables)
}

/// Reads a user: a name or a number.
pub(super) fn user(fields: &Fields<'_>) -> Result<Option<User>, Refusal> {
    const KEY: &str = "user";
    const EXPECTED: &str = "the name or the number of a user";
    match fields.value(KEY) {
        None => Ok(None),
        Some(Value::Integer(id)) => match u32::try_from(*id) {
            Ok(id) => Ok(Some(User::Id(id))),
            Err(_) => Err(fields.invalid(KEY, id.to_string(), EXPECTED)),
        },
        Some(Value::Text(name)) => {
            let is_name = |name: &str| {
                matches!(name.len(), 1..=64)
                    && !name.starts_with('-')
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-$:".contains(&byte))
            };
            if is_name(name) {
                Ok(Some(User::Name(name.clone())))
            } else {
                Err(fields.invalid(KEY, name, EXPECTED))
            }
        }
        Some(other) => {
            let problem = FormatProblem::WrongType {
                key: fields.key(KEY),
                expected: EXPECTED.into(),
                found: other.kind().into(),
            };
            Err(fields.refuse(KEY, problem))
        }
    }
}

/// Reads the network access of a phase; `None` if it has none of its own.
pub(super) fn network(fields: &Fields<'_>) -> Result<Option<NetworkPolicy>, Refusal> {
    const MODE: &str = "network_mode";
    const HOSTS: &str = "allowed_hosts";
    let hosts = fields.texts(HOSTS)?;
    let mode = fields.text(MODE)?;
    if mode != Some("allowlist") && hosts.as_ref().is_some_and(|hosts| mode.is_none() || !hosts.is_empty()) {
        return Err(fields.conflict(HOSTS, MODE));
    }
    Ok(match mode {
        None => None,
        Some("public") => Some(NetworkPolicy::Public),
        Some("no-network") => Some(NetworkPolicy::NoNetwork),
        Some("allowlist") => {
            let hosts = hosts.unwrap_or_default();
            if hosts.len() > ALLOWED_HOSTS_MAX {
                return Err(fields.invalid(HOSTS, hosts.len().to_string(), "a list of at most 1000 hosts"));
            }
            let hosts = hosts.iter().map(|host| {
                const EXPECTED: &str =
                    "host names, `*.SUFFIX`, addresses or ranges, without URLs, ports and paths";
                AllowedHost::parse(host).ok_or_else(|| fields.invalid(HOSTS, host, EXPECTED))
            });
            Some(NetworkPolicy::Allowlist(hosts.collect::<Result<_, _>>()?))
        }
        Some(other) => return Err(fields.invalid(MODE, other, "`public` or `no-network`")),
    })
}

/// Reads the table of an agent's phase.
pub(super) fn agent(fields: &Fields<'_>) -> Result<AgentPhase, Refusal> {
    let Some(agent) = fields.table("agent")? else { return Ok(AgentPhase::default()) };
    Ok(AgentPhase {
        timeout: agent.time_limit("timeout_sec")?,
        user: user(&agent)?,
        network: network(&agent)?,
    })
}

/// Reads a health check.
pub(super) fn healthcheck(fields: &Fields<'_>) -> Result<Option<HealthCheck>, Refusal> {
    let Some(check) = fields.table("healthcheck")? else { return Ok(None) };
    let retries = check.count("retries")?.unwrap_or(3);
    Ok(Some(HealthCheck {
        command: check.required_text("command")?.to_owned(),
        interval: check.seconds("interval_sec")?.unwrap_or(Duration::from_secs(5)),
        timeout: check.time_limit("timeout_sec")?.unwrap_or(Duration::from_secs(30)),
        start_period: check.seconds("start_period_sec")?.unwrap_or_default(),
        start_interval: check.seconds("start_interval_sec")?.unwrap_or(Duration::from_secs(5)),
        retries: u32::try_from(retries)
            .map_err(|_| check.invalid("retries", retries.to_string(), "a small integer"))?,
    }))
}
