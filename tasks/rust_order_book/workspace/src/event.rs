//! Events and their text.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reject {
    Duplicate,
    Invalid,
    Unknown,
    WouldTrade,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancel {
    Request,
    Market,
    Ioc,
    Fok,
    SelfTrade,
    Replaced,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Accepted { id: u64 },
    Rejected { id: u64, reason: Reject },
    Trade { resting: u64, incoming: u64, price: u64, quantity: u64 },
    Reduced { id: u64, quantity: u64 },
    Canceled { id: u64, open: u64, reason: Cancel },
    Replaced { id: u64, total: u64, price: u64 },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { id } => write!(f, "accepted {id}"),
            Self::Rejected { id, reason } => write!(f, "rejected {id} {reason}"),
            Self::Trade { resting, incoming, price, quantity } => write!(f, "trade {resting} {incoming} {price} {quantity}"),
            Self::Reduced { id, quantity } => write!(f, "reduced {id} {quantity}"),
            Self::Canceled { id, open, reason } => write!(f, "canceled {id} {open} {reason}"),
            Self::Replaced { id, total, price } => write!(f, "replaced {id} {total} {price}"),
        }
    }
}

impl fmt::Display for Reject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duplicate => "duplicate",
            Self::Invalid => "invalid",
            Self::Unknown => "unknown",
            Self::WouldTrade => "would_trade",
        })
    }
}

impl fmt::Display for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Request => "request",
            Self::Market => "market",
            Self::Ioc => "ioc",
            Self::Fok => "fok",
            Self::SelfTrade => "self_trade",
            Self::Replaced => "replaced",
        })
    }
}
