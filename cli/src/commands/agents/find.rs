//! Uploaded agents as named on the command line.

use crate::client::StoredAgent;
use crate::exit::Problem;

/// Minimum number of digits of a content hash that name an agent.
const DIGITS_MIN: usize = 4;
/// Number of digits of a content hash in messages, if they tell the agents apart.
const DIGITS: usize = 12;

/// Finds the agent with this name, NAME@VERSION or beginning of the content hash. Names go before digits, unless they are as many
/// digits as lists show: such a name could have been given to an agent in order to be taken for another one.
///
/// # Errors
/// If there is no such agent, or several have the name or the digits.
pub(super) fn find<'a>(given: &str, agents: &'a [StoredAgent]) -> anyhow::Result<&'a StoredAgent> {
    let given = given.trim();
    let digits = given.to_ascii_lowercase();
    let by = |matches: &dyn Fn(&StoredAgent) -> bool| -> Vec<&'a StoredAgent> {
        let mut found: Vec<&StoredAgent> = Vec::new();
        for agent in agents.iter().filter(|agent| matches(agent)) {
            // An admin sees the agents of all owners, who may have the same files.
            if !found.iter().any(|other| other.id == agent.id) {
                found.push(agent);
            }
        }
        found
    };
    let is_shown = |agent: &StoredAgent| digits.len() >= DIGITS && agent.id.starts_with(&digits);
    let candidates = [
        by(&|agent| agent.id == digits),
        by(&|agent| agent.title() == given || agent.model == given || is_shown(agent)),
        by(&|agent| agent.name == given),
        by(&|agent| digits.len() >= DIGITS_MIN && agent.id.starts_with(&digits)),
    ];
    let shown: String = given.chars().take(80).collect();
    match candidates.into_iter().find(|found| !found.is_empty()).as_deref() {
        None => Err(Problem::failure(format!("no uploaded agent has the name or content hash `{shown}`"))
            .hint("`bench agents` lists the uploaded agents; a hash needs at least its first 4 digits")
            .into()),
        Some(&[only]) => Ok(only),
        Some(several) => {
            let listed: Vec<String> = several
                .iter()
                .map(|agent| {
                    let short = agent.id.get(..DIGITS.max(given.len() + 1)).unwrap_or(&agent.id);
                    format!("{short} ({})", agent.title())
                })
                .collect();
            Err(Problem::usage(format!("`{shown}` means {} uploaded agents", several.len()))
                .hint(format!("give the content hash of one: {}", listed.join(", ")))
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(id: &str, name: &str, version: Option<&str>) -> StoredAgent {
        let title = version.map_or_else(|| name.to_owned(), |version| format!("{name}@{version}"));
        serde_json::from_value(serde_json::json!({
            "id": format!("{id:0<64}"), "name": name, "version": version, "model": format!("custom/{title}"),
            "required_variables": [], "files": 1, "expanded_bytes": 1, "archive_bytes": 1,
            "created_at": "2026-01-02T03:04:05Z",
        }))
        .unwrap()
    }

    #[test]
    fn agents_are_named_by_hash_name_and_version() {
        let all = [
            agent("aaaa1", "told", Some("1")),
            agent("aaaa2", "told", Some("2")),
            agent("aaaa2", "told", Some("2")),
            agent("bbbb1", "bare", None),
            agent("bbbb2", "bare", Some("1")),
            agent("cccc1", "bbbb1", None),
            agent("dddd1", "real", None),
            agent("eeee1", "dddd10000000", None),
        ];
        let found = |given: &str| {
            find(given, &all).map(|agent| agent.id[..5].to_owned()).map_err(|error| error.to_string())
        };
        assert_eq!(found("told@1").as_deref(), Ok("aaaa1"));
        assert_eq!(found("custom/told@2").as_deref(), Ok("aaaa2"), "two owners have it");
        assert_eq!(found(" AAAA2").as_deref(), Ok("aaaa2"));
        assert_eq!(found(&all[0].id).as_deref(), Ok("aaaa1"));
        assert_eq!(found("bare").as_deref(), Ok("bbbb1"), "the whole name of one");
        assert_eq!(found("bbbb1").as_deref(), Ok("cccc1"), "a name goes before digits");
        assert_eq!(
            found("dddd10000000").unwrap_err(),
            "`dddd10000000` means 2 uploaded agents",
            "as it is shown"
        );
        assert_eq!(found("told").unwrap_err(), "`told` means 2 uploaded agents");
        assert_eq!(found("aaaa").unwrap_err(), "`aaaa` means 2 uploaded agents");
        for missing in ["aaa", "none", "told@3", ""] {
            assert!(found(missing).unwrap_err().starts_with("no uploaded agent has"), "{missing}");
        }
        let error = find("told", &all).unwrap_err();
        let hint = error.downcast_ref::<Problem>().and_then(Problem::advice);
        assert_eq!(hint, Some("give the content hash of one: aaaa10000000 (told@1), aaaa20000000 (told@2)"));
    }
}
