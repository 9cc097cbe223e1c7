//! Parsing of manifests, which are untrusted input.

use serde_json::{Map, Value};

use crate::canonical::{self, CanonicalError};
use crate::reason::{Reason, Refusal, quote_short};
use crate::{SCHEMA_VERSION, SIGNATURE_ALGORITHM};

/// A manifest: a JSON object without repeated keys.
#[derive(Debug)]
pub(super) struct Manifest(Map<String, Value>);

impl Manifest {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let not_json = || Refusal::new(Reason::ManifestNotJson, "Manifest JSON is invalid");
        let value: Value = serde_json::from_slice(bytes).map_err(|_| not_json())?;
        let Value::Object(fields) = value else {
            return Err(Refusal::new(Reason::ManifestWrongTypes, "Manifest JSON is not an object"));
        };
        // Programs disagree on which of two equal keys applies.
        let text = std::str::from_utf8(bytes).map_err(|_| not_json())?;
        match canonical::canonicalize(text) {
            Err(CanonicalError::DuplicateKey(key)) => {
                let text = format!("Manifest JSON repeats the key {}", quote_short(&key));
                Err(Refusal::new(Reason::ManifestWrongTypes, text))
            }
            Err(_) => Err(not_json()),
            Ok(_) => Ok(Self(fields)),
        }
    }

    pub(super) fn into_fields(self) -> Map<String, Value> {
        self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn fingerprint(&self) -> Option<&str> {
        self.text("public_key_fingerprint")
    }

    pub(super) fn results_sha256(&self) -> Option<&str> {
        self.text("results_sha256")
    }

    pub(super) fn generated_at(&self) -> Option<&str> {
        self.text("generated_at")
    }

    pub(super) fn run_id(&self) -> Option<&str> {
        self.text("run_id")
    }

    /// Checks the fields that a manifest must have. A missing hash or fingerprint matches nothing and needs no error of
    /// its own.
    pub(super) fn check_fields(&self) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        for field in ["run_id", "generated_at"] {
            if self.text(field).is_none() {
                let text = format!("Manifest field {field} is not a string");
                refusals.push(Refusal::new(Reason::ManifestWrongTypes, text));
            }
        }
        for (field, known, reason) in [
            ("schema_version", SCHEMA_VERSION, Reason::UnsupportedSchema),
            ("signature_algorithm", SIGNATURE_ALGORITHM, Reason::UnsupportedAlgorithm),
        ] {
            let found = self.0.get(field);
            if found.and_then(Value::as_str) != Some(known) {
                let found =
                    found.map_or_else(|| "nothing".to_owned(), |value| quote_short(&value.to_string()));
                let text = format!("Manifest {field} must be \"{known}\" but is {found}");
                refusals.push(Refusal::new(reason, text));
            }
        }
        refusals
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).and_then(Value::as_str)
    }
}
