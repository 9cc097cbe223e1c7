//! Names under which the embedded services are found.

/// The region the embedded services say they are in.
pub const REGION: &str = "us-east-1";

/// The account that owns everything here, as in queue URLs and ARNs.
pub const ACCOUNT_ID: &str = "000000000000";

/// The endpoint of every service. Nothing is ever resolved or connected.
pub(crate) const ENDPOINT: &str = "http://local.invalid";
