//! The AWS services and the Lambda host in one process.
