//! Names of the embedded services' region, account and endpoint.

/// Region of the embedded services.
pub const REGION: &str = "us-east-1";

/// Account that owns all resources, as in queue URLs and ARNs.
pub const ACCOUNT_ID: &str = "000000000000";

/// Endpoint of every service. It is never resolved or connected to.
pub(crate) const ENDPOINT: &str = "http://local.invalid";
