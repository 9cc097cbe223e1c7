//! Variables of a function, from its environment and its secrets.
//!
//! `BENCH_SECRETS` names secrets in Secrets Manager, by id or ARN, separated by commas. Each secret is a JSON object
//! whose members are variables. They are read once, at init, and act like environment variables. The environment takes
//! precedence over secrets, and earlier secrets in the list over later ones. If a secret can't be read, the function
//! stops with an error that names the secret.

use std::collections::BTreeMap;

use anyhow::Context;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::{DisplayErrorContext, ProvideErrorMetadata};
use aws_types::SdkConfig;
use futures_util::future::try_join_all;
use serde_json::Value;

/// Variable with the names of the secrets.
const SECRETS: &str = "BENCH_SECRETS";
/// Maximum number of secrets of a function.
const SECRETS_MAX: usize = 16;

/// Variables of a function, read once. Their values are never shown.
#[derive(Clone, Default)]
pub struct Vars(BTreeMap<String, String>);

impl std::fmt::Debug for Vars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl From<BTreeMap<String, String>> for Vars {
    fn from(values: BTreeMap<String, String>) -> Self {
        Self(values)
    }
}

impl Vars {
    /// Returns the variables of this process, without secrets. Leaves out variables that aren't valid Unicode.
    pub fn from_env() -> Self {
        let all = std::env::vars_os();
        Self(
            all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
        )
    }

    /// Adds the variables from the secrets that `BENCH_SECRETS` names. Reads all secrets concurrently, and calls no
    /// service if no secret is named.
    ///
    /// # Errors
    /// Names the secret that is missing, refused or not a JSON object, with the message from Secrets Manager.
    pub async fn with_secrets(mut self, aws: &SdkConfig) -> anyhow::Result<Self> {
        let list = self.get(SECRETS).unwrap_or_default();
        let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return Ok(self);
        }
        anyhow::ensure!(names.len() <= SECRETS_MAX, "{SECRETS} names more than {SECRETS_MAX} secrets");
        let client = Client::new(aws);
        for members in try_join_all(names.into_iter().map(|name| read(&client, name))).await? {
            for (name, value) in members {
                // As elsewhere, an empty variable counts as not set.
                let is_set = self.get(&name).is_some();
                if !is_set {
                    self.0.insert(name, value);
                }
            }
        }
        Ok(self)
    }

    /// Returns a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|value| !value.trim().is_empty()).cloned()
    }

    /// Returns a variable that a function requires. The error names the variable.
    pub fn required(&self, name: &str) -> anyhow::Result<String> {
        self.get(name).with_context(|| format!("{name} is not set"))
    }

    /// Returns a variable that is true or false, by default false.
    ///
    /// # Errors
    /// Names the variable.
    pub fn flag(&self, name: &str) -> anyhow::Result<bool> {
        let value = self.get(name).map(|value| value.trim().to_lowercase());
        match value.as_deref() {
            None | Some("0" | "false" | "no" | "off") => Ok(false),
            Some("1" | "true" | "yes" | "on") => Ok(true),
            Some(other) => anyhow::bail!("{name}: `{other}` is neither true nor false"),
        }
    }

    /// Returns a lookup function for the `from_vars` constructors of settings.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + Copy + '_ {
        |name| self.get(name)
    }

    /// Returns all variables.
    pub fn all(&self) -> impl Iterator<Item = (String, String)> + '_ {
        self.0.iter().map(|(name, value)| (name.clone(), value.clone()))
    }
}

async fn read(client: &Client, name: &str) -> anyhow::Result<Vec<(String, String)>> {
    let got = client.get_secret_value().secret_id(name).send().await.map_err(|error| {
        let problem = match (error.code(), error.message()) {
            (Some(code), message) => format!("{code}: {}", message.unwrap_or("no more was said")),
            _ => DisplayErrorContext(&error).to_string(),
        };
        anyhow::anyhow!("secret `{name}` could not be read (secretsmanager:GetSecretValue): {problem}")
    })?;
    members(got.secret_string().unwrap_or_default()).with_context(|| format!("secret `{name}`"))
}

/// Parses the variables in a secret's text. Errors don't reveal the text.
fn members(text: &str) -> anyhow::Result<Vec<(String, String)>> {
    let Ok(Value::Object(object)) = serde_json::from_str(text) else {
        anyhow::bail!("its value is not a JSON object");
    };
    let members = object.into_iter().map(|(name, value)| match value {
        Value::String(value) => Ok((name, value)),
        Value::Number(value) => Ok((name, value.to_string())),
        Value::Bool(value) => Ok((name, value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(anyhow::anyhow!("its member `{name}` is neither text nor number nor true or false"))
        }
    });
    members.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(pairs: &[(&str, &str)]) -> Vars {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        pairs.collect::<BTreeMap<_, _>>().into()
    }

    #[test]
    fn a_missing_variable_is_named() {
        let vars = vars(&[("EMPTY", " "), ("SET", "x"), ("MAYBE", "perhaps"), ("ON", "Yes")]);
        assert_eq!(vars.required("SET").unwrap(), "x");
        for name in ["EMPTY", "MISSING"] {
            assert_eq!(vars.required(name).unwrap_err().to_string(), format!("{name} is not set"));
            assert!(!vars.flag(name).unwrap());
        }
        assert!(vars.flag("ON").unwrap());
        assert!(vars.flag("MAYBE").unwrap_err().to_string().starts_with("MAYBE: "));
    }

    #[test]
    fn variables_do_not_show_themselves() {
        assert_eq!(format!("{:?}", vars(&[("KEY", "sk-secret")])), r#"{"KEY"}"#);
    }

    #[test]
    fn members_are_texts_numbers_and_truths() {
        let read = members(r#"{"A":"x","B":30,"C":true}"#).unwrap();
        let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(read, [("A", "x"), ("B", "30"), ("C", "true")]);
        assert!(members("{}").unwrap().is_empty());
        for bad in ["", "sk-secret", "[\"sk-secret\"]", "{\"KEY\":[\"sk-secret\"]}", "{\"KEY\": sk-secret"] {
            let error = format!("{:#}", members(bad).unwrap_err());
            assert!(!error.contains("sk-secret"), "{error}");
        }
        assert!(members(r#"{"KEY":null}"#).unwrap_err().to_string().contains("`KEY`"));
    }
}
