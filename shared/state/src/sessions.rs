//! Sessions of signed-in users, and attempts to sign in.
//!
//! Neither a session's cookie nor the state of an attempt is stored, only digests of them. The tokens that a user
//! granted to a session are in the table of credentials ([`crate::credentials`]).

use aws_sdk_dynamodb::types::{Delete, Put, ReturnValue, TransactWriteItem};
use bench_domain::{SessionId, Timestamp};

use crate::attributes::{Reader, Record, number, text, time};
use crate::client::expires_at;
use crate::credentials::SealedKey;
use crate::keys::key;
use crate::{State, StateError};

/// Maximum number of a user's sessions that are listed: the newest ones.
pub const SESSIONS_LISTED_MAX: i32 = 100;
/// Seconds that a record is kept after its end, so that clocks of hosts may differ.
const FORGET_AFTER_S: i64 = 3_600;

/// Session of a signed-in user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Id: the digest of the cookie's value.
    pub id: SessionId,
    /// The provider's name for the user, which never changes.
    pub subject: String,
    /// Name to show to the user. It may change at the provider, and two users may have the same.
    pub name: String,
    /// True if the user allowed the session to call models on the user's account.
    pub has_invoke_scope: bool,
    /// Time of the sign-in.
    pub created_at: Timestamp,
    /// End of the session. Use doesn't extend it.
    pub ends_at: Timestamp,
}

impl SessionRecord {
    /// Returns true if the session is valid at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        now < self.ends_at
    }

    fn key(id: &SessionId) -> Record {
        key(format!("SESSION#{id}"), "SESSION")
    }

    fn user_key(&self) -> Record {
        let sort = format!("{:020}#{}", self.created_at.as_micros(), self.id);
        key(user_partition(&self.subject), sort)
    }

    fn read(record: &Record) -> Result<Self, StateError> {
        let reader = Reader::new(record);
        let id = reader.text("session")?.parse();
        Ok(Self {
            id: id.map_err(|error| StateError::damaged(reader.key(), error))?,
            subject: reader.text("subject")?.to_owned(),
            name: reader.text("name")?.to_owned(),
            has_invoke_scope: reader.number_or::<u8>("invoke", 0)? == 1,
            created_at: reader.time("created_at")?,
            ends_at: reader.time("ends_at")?,
        })
    }

    /// Adds the attributes to a key: the session's own, or the one in the user's list.
    fn record(&self, mut record: Record) -> Record {
        record.insert("session".into(), text(self.id.as_str()));
        record.insert("subject".into(), text(&self.subject));
        record.insert("name".into(), text(&self.name));
        record.insert("invoke".into(), number(u8::from(self.has_invoke_scope)));
        record.insert("created_at".into(), time(self.created_at));
        record.insert("ends_at".into(), time(self.ends_at));
        record.insert("expires_at".into(), number(expires_at(self.ends_at, FORGET_AFTER_S)));
        record
    }
}

fn user_partition(subject: &str) -> String {
    format!("USER#{subject}")
}

/// Attempt to sign in, between the redirect to the provider and the user's return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInRecord {
    /// Digest of the state that the provider returns, in hex.
    pub state_digest: String,
    /// Digest of the secret that only the user's browser has, in hex.
    pub browser_digest: String,
    /// Path on this site to show after the sign-in.
    pub return_to: String,
    /// End of the time for the attempt.
    pub ends_at: Timestamp,
}

impl SignInRecord {
    fn key(state_digest: &str) -> Record {
        key(format!("SIGNIN#{state_digest}"), "SIGNIN")
    }
}

impl State {
    /// Stores a session, together with the tokens that its user granted. It's found by its id and in its user's list.
    pub async fn create_session(
        &self,
        session: &SessionRecord,
        grant: Option<&SealedKey>,
    ) -> Result<(), StateError> {
        let put = |key: Record| {
            let put = Put::builder().table_name(&self.table).set_item(Some(session.record(key))).build();
            let put = put.map_err(|error| StateError::damaged("session", error))?;
            Ok::<_, StateError>(TransactWriteItem::builder().put(put).build())
        };
        let mut items = vec![put(SessionRecord::key(&session.id))?, put(session.user_key())?];
        items.extend(grant.into_iter().flat_map(|grant| grant.0.clone()));
        // No write has a condition, so none can fail.
        self.transact("store the session", items).await.map(drop)
    }

    /// Returns the session with this id; `None` if there is none, or if it's over at `now`.
    pub async fn session(&self, id: &SessionId, now: Timestamp) -> Result<Option<SessionRecord>, StateError> {
        Ok(self.stored_session(id).await?.filter(|session| session.is_valid(now)))
    }

    async fn stored_session(&self, id: &SessionId) -> Result<Option<SessionRecord>, StateError> {
        let got = self
            .client
            .get_item()
            .table_name(&self.table)
            .set_key(Some(SessionRecord::key(id)))
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| StateError::sdk("read the session", error))?;
        got.item().map(SessionRecord::read).transpose()
    }

    /// Ends a session: its cookie is no longer accepted. Returns false if there was none. Safe to repeat.
    pub async fn end_session(&self, id: &SessionId) -> Result<bool, StateError> {
        let Some(session) = self.stored_session(id).await? else { return Ok(false) };
        let delete = |key: Record| {
            let delete = Delete::builder().table_name(&self.table).set_key(Some(key)).build();
            let delete = delete.map_err(|error| StateError::damaged("session", error))?;
            Ok::<_, StateError>(TransactWriteItem::builder().delete(delete).build())
        };
        let items = vec![delete(SessionRecord::key(id))?, delete(session.user_key())?];
        self.transact("end the session", items).await.map(|_| true)
    }

    /// Returns a user's sessions that are valid at `now`, newest first, up to [`SESSIONS_LISTED_MAX`].
    pub async fn sessions_of(&self, subject: &str, now: Timestamp) -> Result<Vec<SessionRecord>, StateError> {
        let page = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :user")
            .expression_attribute_values(":user", text(user_partition(subject)))
            .scan_index_forward(false)
            .consistent_read(true)
            .limit(SESSIONS_LISTED_MAX)
            .send()
            .await
            .map_err(|error| StateError::sdk("list the user's sessions", error))?;
        let sessions: Vec<_> =
            page.items().iter().map(SessionRecord::read).collect::<Result<_, StateError>>()?;
        Ok(sessions.into_iter().filter(|session| session.is_valid(now)).collect())
    }

    /// Stores an attempt to sign in.
    pub async fn begin_sign_in(&self, attempt: &SignInRecord) -> Result<(), StateError> {
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(SignInRecord::key(&attempt.state_digest)))
            .item("browser", text(&attempt.browser_digest))
            .item("return_to", text(&attempt.return_to))
            .item("ends_at", time(attempt.ends_at))
            .item("expires_at", number(expires_at(attempt.ends_at, FORGET_AFTER_S)))
            .send()
            .await
            .map(drop)
            .map_err(|error| StateError::sdk("store the attempt to sign in", error))
    }

    /// Takes an attempt to sign in, which succeeds once. Returns `None` if there is none, if it was taken before, if it's
    /// void at `now`, or if it was begun by another browser, which still can take it.
    pub async fn take_sign_in(
        &self,
        state_digest: &str,
        browser_digest: &str,
        now: Timestamp,
    ) -> Result<Option<SignInRecord>, StateError> {
        let taken = self
            .client
            .delete_item()
            .table_name(&self.table)
            .set_key(Some(SignInRecord::key(state_digest)))
            .condition_expression("browser = :browser")
            .expression_attribute_values(":browser", text(browser_digest))
            .return_values(ReturnValue::AllOld)
            .send()
            .await;
        let taken = match taken {
            Ok(taken) => taken,
            Err(error)
                if error
                    .as_service_error()
                    .is_some_and(|error| error.is_conditional_check_failed_exception()) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(StateError::sdk("take the attempt to sign in", error)),
        };
        let Some(record) = taken.attributes() else { return Ok(None) };
        let reader = Reader::new(record);
        let attempt = SignInRecord {
            state_digest: state_digest.to_owned(),
            browser_digest: browser_digest.to_owned(),
            return_to: reader.text("return_to")?.to_owned(),
            ends_at: reader.time("ends_at")?,
        };
        Ok(Some(attempt).filter(|attempt| now < attempt.ends_at))
    }
}
