//! Capacity units of a request, as AWS counts them.

use dynoxide::types::ConsumedCapacity;

use super::operations::{Request, Response};
use crate::service_response::ServiceResponse;

/// Read and write request units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Units {
    pub(crate) read: f64,
    pub(crate) write: f64,
}

impl Units {
    fn read(read: f64) -> Self {
        Self { read, write: 0.0 }
    }

    fn write(write: f64) -> Self {
        Self { read: 0.0, write }
    }
}

/// Returns true if a write was rejected because its condition failed. AWS charges for the attempt.
pub(crate) fn is_refused_write(answer: &ServiceResponse) -> bool {
    if answer.status != 400 {
        return false;
    }
    let body = String::from_utf8_lossy(&answer.body);
    let kind = body.split(['"', '#']).find(|word| word.ends_with("Exception"));
    matches!(kind, Some("ConditionalCheckFailedException" | "TransactionCanceledException"))
}

impl Request {
    /// Makes the response include the consumed units, including those of indexes.
    pub(crate) fn request_consumed_units(&mut self) {
        let option = match self {
            Self::PutItem(r) => &mut r.return_consumed_capacity,
            Self::GetItem(r) => &mut r.return_consumed_capacity,
            Self::UpdateItem(r) => &mut r.return_consumed_capacity,
            Self::DeleteItem(r) => &mut r.return_consumed_capacity,
            Self::Query(r) => &mut r.return_consumed_capacity,
            Self::BatchGetItem(r) => &mut r.return_consumed_capacity,
            Self::BatchWriteItem(r) => &mut r.return_consumed_capacity,
            Self::TransactWriteItems(r) => &mut r.return_consumed_capacity,
            Self::TransactGetItems(r) => &mut r.return_consumed_capacity,
            Self::CreateTable(_)
            | Self::DescribeTable(_)
            | Self::DeleteTable(_)
            | Self::ListTables(_)
            | Self::UpdateTimeToLive(_)
            | Self::DescribeTimeToLive(_) => return,
        };
        option.get_or_insert_with(|| "TOTAL".to_owned());
    }

    /// Returns the units that the request consumes if one of its conditions fails, for records of
    /// at most 1 KB.
    pub(crate) fn units_when_refused(&self) -> Units {
        match self {
            Self::PutItem(_) | Self::UpdateItem(_) | Self::DeleteItem(_) => Units::write(1.0),
            // Transactions count every record twice: prepare and commit.
            Self::TransactWriteItems(r) => Units::write(2.0 * r.transact_items.len() as f64),
            _ => Units::default(),
        }
    }
}

impl Response {
    /// Returns the consumed units; none if the request didn't ask for them.
    pub(crate) fn units(&self) -> Units {
        match self {
            Self::PutItem(r) => Units::write(table_units(r.consumed_capacity.as_ref())),
            Self::UpdateItem(r) => Units::write(table_units(r.consumed_capacity.as_ref())),
            Self::DeleteItem(r) => Units::write(table_units(r.consumed_capacity.as_ref())),
            Self::BatchWriteItem(r) => Units::write(total_units(r.consumed_capacity.as_deref())),
            Self::TransactWriteItems(r) => Units::write(total_units(r.consumed_capacity.as_deref())),
            Self::GetItem(r) => Units::read(table_units(r.consumed_capacity.as_ref())),
            Self::Query(r) => Units::read(table_units(r.consumed_capacity.as_ref())),
            Self::BatchGetItem(r) => Units::read(total_units(r.consumed_capacity.as_deref())),
            Self::TransactGetItems(r) => Units::read(total_units(r.consumed_capacity.as_deref())),
            Self::CreateTable(_)
            | Self::DescribeTable(_)
            | Self::DeleteTable(_)
            | Self::ListTables(_)
            | Self::UpdateTimeToLive(_)
            | Self::DescribeTimeToLive(_) => Units::default(),
        }
    }
}

fn table_units(consumed: Option<&ConsumedCapacity>) -> f64 {
    consumed.map(|consumed| consumed.capacity_units).unwrap_or_default()
}

fn total_units(consumed: Option<&[ConsumedCapacity]>) -> f64 {
    consumed.unwrap_or_default().iter().map(|consumed| consumed.capacity_units).sum()
}
