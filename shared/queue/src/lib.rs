//! Messages between the functions in SQS: batches and planned waits.
