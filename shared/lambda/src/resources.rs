//! Clients for a function's table, bucket, queues and keys.
//!
//! | variable | meaning |
//! | --- | --- |
//! | `BENCH_TABLE` | table of runs and samples |
//! | `BENCH_BUCKET` | bucket of bodies, datasets and exports |
//! | `BENCH_CREDENTIALS_TABLE` | table of callers' keys |
//! | `BENCH_KMS_KEY_ID` | id or ARN of the KMS key that protects callers' keys |
//! | `BENCH_MASTER_KEY` | base64 of 32 bytes that protect callers' keys if there is no KMS key |
//! | `BENCH_OWNER_KEY` | secret text of at least 32 characters that derives owners' ids; by default made from the master key |
//! | `BENCH_QUEUE_PLANS_URL`, `BENCH_QUEUE_ITEMS_URL`, `BENCH_QUEUE_TURNS_URL`, `BENCH_QUEUE_FINISHES_URL` | URLs of the queues |

use std::sync::Arc;

use anyhow::Context;
use base64::Engine;
#[cfg(feature = "blobs")]
use bench_blobs::Blobs;
use bench_queue::Queues;
use bench_state::State;
use bench_state::credentials::{Credentials, DeleteOnlyWrapper, KEY_BYTES, KeyWrapper, LocalKey, OwnerKey};

use crate::init::Init;
use crate::kms::KmsKey;
use crate::vars::Vars;

/// Leases end only with their time, since Lambda hosts start and stop independently.
const EPOCH: u64 = 0;

impl Init {
    /// Returns the state of all runs.
    pub fn state(&self) -> anyhow::Result<State> {
        Ok(State::new(&self.aws, self.vars.required("BENCH_TABLE")?, EPOCH))
    }

    /// Returns the bucket.
    #[cfg(feature = "blobs")]
    pub fn blobs(&self) -> anyhow::Result<Blobs> {
        Ok(Blobs::new(&self.aws, self.vars.required("BENCH_BUCKET")?))
    }

    /// Returns the queues whose URLs this function has.
    pub fn queues(&self) -> Queues {
        Queues::from_vars(&self.aws, self.vars.lookup())
    }

    /// Returns the table of callers' keys for functions that store or read them. Needs a KMS key or a master key.
    pub fn credentials(&self) -> anyhow::Result<Credentials> {
        let wrapper: Arc<dyn KeyWrapper> = match self.vars.get("BENCH_KMS_KEY_ID") {
            Some(key_id) => Arc::new(KmsKey::new(&self.aws, key_id.trim())),
            None => Arc::new(LocalKey::new(
                &master_key(&self.vars)?.context("BENCH_KMS_KEY_ID is not set, and no BENCH_MASTER_KEY")?,
            )?),
        };
        self.credentials_with(wrapper)
    }

    /// Returns the table of callers' keys for functions that only remove them. Needs no key.
    pub fn credentials_to_remove(&self) -> anyhow::Result<Credentials> {
        self.credentials_with(Arc::new(DeleteOnlyWrapper))
    }

    fn credentials_with(&self, wrapper: Arc<dyn KeyWrapper>) -> anyhow::Result<Credentials> {
        Ok(Credentials::new(&self.aws, self.vars.required("BENCH_CREDENTIALS_TABLE")?, wrapper))
    }

    /// Returns the key that derives owners' ids.
    pub fn owner_key(&self) -> anyhow::Result<Arc<OwnerKey>> {
        Ok(Arc::new(owner_key(&self.vars)?))
    }
}

fn owner_key(vars: &Vars) -> anyhow::Result<OwnerKey> {
    if let Some(text) = vars.get("BENCH_OWNER_KEY") {
        return OwnerKey::from_text(&text).context("BENCH_OWNER_KEY");
    }
    let master = master_key(vars)?.context("BENCH_OWNER_KEY is not set, and no BENCH_MASTER_KEY")?;
    Ok(OwnerKey::from_master_key(&master))
}

fn master_key(vars: &Vars) -> anyhow::Result<Option<[u8; KEY_BYTES]>> {
    let Some(text) = vars.get("BENCH_MASTER_KEY") else { return Ok(None) };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).ok();
    let key: Option<[u8; KEY_BYTES]> = bytes.and_then(|bytes| bytes.try_into().ok());
    key.map(Some).with_context(|| format!("BENCH_MASTER_KEY is not base64 of {KEY_BYTES} bytes"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bench_domain::Secret;

    use super::*;

    fn owner(pairs: &[(&str, &str)]) -> Result<String, String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let vars = Vars::from(pairs.collect::<BTreeMap<_, _>>());
        let key = owner_key(&vars).map_err(|error| format!("{error:#}"))?;
        Ok(key.owner_of(&Secret::new("sk-secret").unwrap()))
    }

    #[test]
    fn owners_come_from_their_own_key_else_from_the_master_key() {
        let master = base64::engine::general_purpose::STANDARD.encode([7; KEY_BYTES]);
        let text = "a-secret-of-more-than-thirty-two-characters";
        let from_master_key =
            OwnerKey::from_master_key(&[7; KEY_BYTES]).owner_of(&Secret::new("sk-secret").unwrap());
        assert_eq!(owner(&[("BENCH_MASTER_KEY", &master)]).unwrap(), from_master_key);
        let both = owner(&[("BENCH_MASTER_KEY", &master), ("BENCH_OWNER_KEY", text)]).unwrap();
        assert_eq!(both, owner(&[("BENCH_OWNER_KEY", text)]).unwrap());
        assert_ne!(both, from_master_key);
    }

    #[test]
    fn problems_of_a_key_name_its_variable_and_not_the_key() {
        assert!(owner(&[]).unwrap_err().contains("BENCH_OWNER_KEY is not set"));
        for (name, value) in [("BENCH_OWNER_KEY", "too-short"), ("BENCH_MASTER_KEY", "bm90IGxvbmc=")] {
            let error = owner(&[(name, value)]).unwrap_err();
            assert!(error.starts_with(name) && !error.contains(value), "{error}");
        }
    }
}
