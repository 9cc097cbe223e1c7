//! Run state in DynamoDB: keys, claims, commits, queries.
