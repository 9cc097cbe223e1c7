//! Names of the embedded services' region, account and endpoint.

/// Region of the embedded services.
pub const REGION: &str = "us-east-1";

/// Account that owns all resources, as in queue URLs and ARNs.
pub const ACCOUNT_ID: &str = "000000000000";

/// Host of [`ENDPOINT`], which distinguishes calls of the SDK from other requests on a socket.
pub const HOST: &str = "local.invalid";

/// Endpoint of every service. It is never resolved or connected to.
pub const ENDPOINT: &str = "http://local.invalid";
