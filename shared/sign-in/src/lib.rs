//! Sign-in with an OpenID provider, and the tokens that users grant to their sessions. No routes.
//!
//! | module | content |
//! | --- | --- |
//! | [`config`] | address of the provider, and this program's credentials with it |
//! | [`attempt`] | secrets of one attempt to sign in: state, PKCE verifier, nonce |
//! | [`provider`] | the provider's endpoints: code for tokens, renewal, revocation, facts about the user |
//! | [`id_token`] | checks of ID tokens |
//! | [`tokens`] | access tokens of sessions, renewed by one process at a time |
//! | [`error`] | reasons why a sign-in failed, each with a stable code |
//!
//! Nothing of a provider's responses is shown to users but the name: reasons for failures are sentences of this program.

pub mod attempt;
pub mod config;
mod discovery;
pub mod error;
pub mod id_token;
pub mod provider;
pub mod tokens;

pub use attempt::{ATTEMPT_SECONDS, Attempt};
pub use config::SignInConfig;
pub use error::SignInError;
pub use provider::{Provider, SignedIn, TokenSet};
pub use tokens::{SessionTokens, TokenError};
