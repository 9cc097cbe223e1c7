//! Orders and their quantities.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Buy,
    Sell,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Buy => "buy",
            Self::Sell => "sell",
        }
    }

    pub fn opposite(self) -> Self {
        match self {
            Self::Buy => Self::Sell,
            Self::Sell => Self::Buy,
        }
    }
}

/// Mode of self-trade prevention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelfTrade {
    Newest,
    Oldest,
    Both,
    Decrement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Open,
    Filled,
    Canceled,
}

impl State {
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Filled => "filled",
            Self::Canceled => "canceled",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Order {
    pub id: u64,
    pub owner: String,
    pub side: Side,
    /// Limit; `None` for a market order.
    pub price: Option<u64>,
    pub total: u64,
    pub filled: u64,
    /// Part of the open quantity that the book shows.
    pub visible: u64,
    pub peak: Option<u64>,
    pub is_post: bool,
    pub self_trade: SelfTrade,
}

impl Order {
    pub fn open(&self) -> u64 {
        self.total - self.filled
    }

    pub fn is_done(&self) -> bool {
        self.open() == 0
    }

    /// Returns true if the limit allows a trade at this price.
    pub fn accepts(&self, price: u64) -> bool {
        match (self.side, self.price) {
            (_, None) => true,
            (Side::Buy, Some(limit)) => price <= limit,
            (Side::Sell, Some(limit)) => price >= limit,
        }
    }

    /// Shows as much of the open quantity as the peak allows.
    pub fn show(&mut self) {
        self.visible = self.open().min(self.peak.unwrap_or(u64::MAX));
    }

    /// Records a trade of a resting order.
    pub fn fill(&mut self, quantity: u64) {
        self.filled += quantity;
        self.visible -= quantity;
    }

    /// Lowers the total, hidden quantity first.
    pub fn reduce(&mut self, quantity: u64) {
        self.total -= quantity;
        self.visible = self.visible.min(self.open());
    }
}
