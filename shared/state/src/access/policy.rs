//! The access policy of a server.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use bench_domain::run::Owner;

/// Row of the access policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessRow {
    /// Holders of the admin secret, and users who are admins.
    Admin,
    /// Holders of an access token.
    Token,
    /// Holders of a key that its provider confirmed.
    ProviderKey,
    /// Signed-in users.
    Session,
}

impl AccessRow {
    const ALL: [Self; 4] = [Self::Admin, Self::Token, Self::ProviderKey, Self::Session];

    /// Returns the name in `BENCH_ACCESS`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Token => "token",
            Self::ProviderKey => "provider-key",
            Self::Session => "session",
        }
    }
}

impl FromStr for AccessRow {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        let row = Self::ALL.into_iter().find(|row| row.as_str() == name);
        row.ok_or_else(|| format!("unknown row `{name}` of the access policy; known rows: {}", known()))
    }
}

/// Access policy of a server: the callers that may order runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessPolicy {
    /// True if the server is bound to loopback. Its only caller is the user of this machine, who may do everything.
    pub local: bool,
    /// True if the operator's keys pay for orders of signed-in users that their own account can't pay for.
    pub operator_pays_for_users: bool,
    /// Subjects of users who are admins.
    pub admin_subjects: BTreeSet<String>,
    rows: BTreeSet<AccessRow>,
}

impl AccessPolicy {
    /// Reads the policy:
    ///
    /// | variable | default | meaning |
    /// | --- | --- | --- |
    /// | `BENCH_ACCESS` | every row; `session` only with a client id | comma-separated rows; no effect on loopback |
    /// | `ADMIN_SUBJECTS` | none | subjects of users who are admins, comma-separated |
    /// | `BENCH_SESSION_PAYER` | `user` | `operator-allowed` if the operator's keys pay for what a user's account can't |
    /// | `CHUTES_CLIENT_ID` | none | without it, users can't sign in |
    ///
    /// # Errors
    /// One sentence that names the variable and the unknown value; also if `session` is the only row and users can't
    /// sign in, since then no caller could order.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>, local: bool) -> Result<Self, String> {
        let var = |name: &str| var(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let list = var("BENCH_ACCESS").unwrap_or_default();
        let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
        let rows: BTreeSet<AccessRow> = names
            .map(str::parse)
            .collect::<Result<_, String>>()
            .map_err(|error| format!("BENCH_ACCESS: {error}"))?;
        let has_sign_in = var("CHUTES_CLIENT_ID").is_some();
        let is_offered = |row: &AccessRow| *row != AccessRow::Session || has_sign_in;
        if !local && !rows.is_empty() && !rows.iter().any(is_offered) {
            return Err(
                "BENCH_ACCESS: `session` is the only row, but users can't sign in; set CHUTES_CLIENT_ID, \
                        or add another row"
                    .to_owned(),
            );
        }
        let rows = match rows.is_empty() {
            true => AccessRow::ALL.into_iter().filter(is_offered).collect(),
            false => rows,
        };
        let operator_pays_for_users = match var("BENCH_SESSION_PAYER").as_deref() {
            None | Some("user") => false,
            Some("operator-allowed") => true,
            Some(other) => {
                return Err(format!(
                    "BENCH_SESSION_PAYER: `{other}` is neither `user` nor `operator-allowed`"
                ));
            }
        };
        Ok(Self { local, operator_pays_for_users, admin_subjects: admin_subjects(var), rows })
    }

    /// Returns true if callers of this row may order.
    pub fn has(&self, row: AccessRow) -> bool {
        self.rows.contains(&row)
    }

    /// Returns true if this owner is a user who is an admin.
    pub fn is_admin(&self, owner: &Owner) -> bool {
        matches!(owner, Owner::User(subject) if self.admin_subjects.contains(subject))
    }
}

impl fmt::Display for AccessPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.local {
            return f.write_str("local");
        }
        let names: Vec<&str> = self.rows.iter().map(|row| row.as_str()).collect();
        f.write_str(&names.join(", "))
    }
}

/// Reads `ADMIN_SUBJECTS`, a comma-separated list of the subjects of users who are admins.
pub fn admin_subjects(var: impl Fn(&str) -> Option<String>) -> BTreeSet<String> {
    let list = var("ADMIN_SUBJECTS").unwrap_or_default();
    list.split(',').map(str::trim).filter(|subject| !subject.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)], local: bool) -> Result<AccessPolicy, String> {
        let var = |wanted: &str| {
            vars.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        };
        AccessPolicy::from_vars(var, local)
    }

    #[test]
    fn policies_are_lists_of_known_rows() {
        assert_eq!(read(&[("BENCH_ACCESS", " ")], false).unwrap().to_string(), "admin, token, provider-key");
        let tokens = read(&[("BENCH_ACCESS", "admin,token")], false).unwrap();
        assert!(tokens.has(AccessRow::Token) && !tokens.has(AccessRow::ProviderKey));
        let error = read(&[("BENCH_ACCESS", "everybody")], false).unwrap_err();
        assert!(error.starts_with("BENCH_ACCESS") && error.contains("known rows: admin"), "{error}");
    }

    #[test]
    fn the_row_of_users_needs_a_sign_in() {
        let id = ("CHUTES_CLIENT_ID", "cid");
        assert!(read(&[id], false).unwrap().has(AccessRow::Session));
        assert!(!read(&[], false).unwrap().has(AccessRow::Session));
        assert!(read(&[("BENCH_ACCESS", "session"), id], false).unwrap().has(AccessRow::Session));
        let error = read(&[("BENCH_ACCESS", "session")], false).unwrap_err();
        assert!(error.contains("CHUTES_CLIENT_ID"), "{error}");
        assert!(read(&[("BENCH_ACCESS", "session")], true).is_ok(), "the list has no effect on loopback");
        assert!(read(&[("BENCH_ACCESS", "session,token")], false).is_ok());
    }

    #[test]
    fn admins_and_payers_are_read_from_variables() {
        let policy =
            read(&[("ADMIN_SUBJECTS", " u-1, ,u|2"), ("BENCH_SESSION_PAYER", "operator-allowed")], true);
        let policy = policy.unwrap();
        let user = |subject: &str| Owner::User(subject.to_owned());
        assert!(
            policy.is_admin(&user("u-1")) && policy.is_admin(&user("u|2")) && policy.operator_pays_for_users
        );
        assert!(!policy.is_admin(&user("")) && !policy.is_admin(&Owner::Key("u-1".into())));
        assert!(!read(&[], true).unwrap().operator_pays_for_users);
        let error = read(&[("BENCH_SESSION_PAYER", "nobody")], true).unwrap_err();
        assert!(error.starts_with("BENCH_SESSION_PAYER: `nobody`"), "{error}");
    }
}
