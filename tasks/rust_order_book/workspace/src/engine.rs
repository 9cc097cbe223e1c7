//! Rules of the market: acceptance, matching, self-trade prevention and replacement.

use std::collections::HashMap;

use crate::book::Book;
use crate::command::NewOrder;
use crate::event::{Cancel, Event, Reject};
use crate::order::{Order, SelfTrade, Side, State};

/// An order that has left the book, or never rested.
#[derive(Debug)]
struct Closed {
    state: State,
    total: u64,
    filled: u64,
}

/// Findings about an order.
#[derive(Debug, PartialEq, Eq)]
pub struct OrderView {
    pub state: State,
    pub total: u64,
    pub filled: u64,
}

#[derive(Debug, Default)]
pub struct Engine {
    pub book: Book,
    closed: HashMap<u64, Closed>,
    events: Vec<Event>,
}

impl Engine {
    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    pub fn view(&self, id: u64) -> Option<OrderView> {
        if let Some(order) = self.book.get(id) {
            return Some(OrderView { state: State::Open, total: order.total, filled: order.filled });
        }
        let closed = self.closed.get(&id)?;
        Some(OrderView { state: closed.state, total: closed.total, filled: closed.filled })
    }

    /// Enters an order.
    pub fn enter(&mut self, new: NewOrder) {
        let id = new.id;
        if self.book.get(id).is_some() {
            return self.reject(id, Reject::Duplicate);
        }
        let is_immediate = new.is_ioc || new.is_fok || new.price.is_none();
        if (new.is_ioc && new.is_fok) || (is_immediate && (new.is_post || new.peak.is_some())) {
            return self.reject(id, Reject::Invalid);
        }
        let order = Order {
            id,
            owner: new.owner,
            side: new.side,
            price: new.price,
            total: new.quantity,
            filled: 0,
            visible: 0,
            peak: new.peak,
            is_post: new.is_post,
            self_trade: new.self_trade,
        };
        if order.is_post && self.would_trade(&order) {
            return self.reject(id, Reject::WouldTrade);
        }
        self.events.push(Event::Accepted { id });
        if new.is_fok && !self.can_fill(&order) {
            return self.close_canceled(order, Cancel::Fok);
        }
        let rest = if new.price.is_none() {
            Some(Cancel::Market)
        } else if new.is_ioc {
            Some(Cancel::Ioc)
        } else {
            None
        };
        self.come_in(order, rest);
    }

    /// Cancels an order.
    pub fn cancel(&mut self, id: u64) {
        match self.book.remove(id) {
            Some(order) => self.close_canceled(order, Cancel::Request),
            None => self.reject(id, Reject::Unknown),
        }
    }

    /// Changes an order's total and price.
    pub fn replace(&mut self, id: u64, total: u64, price: u64) {
        let Some(order) = self.book.get(id) else {
            return self.reject(id, Reject::Unknown);
        };
        if total <= order.filled {
            if let Some(order) = self.book.remove(id) {
                self.close_canceled(order, Cancel::Replaced);
            }
            return;
        }
        if order.price == Some(price) && total <= order.open() {
            if let Some(order) = self.book.get_mut(id) {
                order.reduce(order.open() - total);
            }
            self.events.push(Event::Replaced { id, total, price });
            return;
        }
        if let Some(mut order) = self.book.remove(id) {
            order.total = order.filled + total;
            order.price = Some(price);
            order.show();
            self.events.push(Event::Replaced { id, total, price });
            self.book.add(order);
        }
    }

    /// Matches an incoming order. What is left rests in the book, or is canceled for the reason `rest`.
    fn come_in(&mut self, mut order: Order, rest: Option<Cancel>) {
        let other_side = order.side.opposite();
        while !order.is_done() {
            let Some(resting) = self.book.best(other_side) else { break };
            let price = resting.price.unwrap_or_default();
            if !order.accepts(price) {
                break;
            }
            if resting.owner == order.owner {
                if !self.prevent(&mut order, other_side) {
                    return self.close_canceled(order, Cancel::SelfTrade);
                }
                continue;
            }
            let quantity = order.open().min(resting.visible);
            let id = resting.id;
            order.filled += quantity;
            self.events.push(Event::Trade { resting: id, incoming: order.id, price, quantity });
            self.fill_resting(id, quantity);
        }
        if order.is_done() {
            self.close(&order, State::Filled);
        } else if let Some(reason) = rest {
            self.close_canceled(order, reason);
        } else {
            order.show();
            self.book.add(order);
        }
    }

    /// Prevents a trade with the best resting order. Returns false if the incoming order must be canceled.
    fn prevent(&mut self, order: &mut Order, other_side: Side) -> bool {
        let Some(resting) = self.book.best(other_side) else { return true };
        let (id, open) = (resting.id, resting.visible);
        match resting.self_trade {
            SelfTrade::Newest => false,
            SelfTrade::Oldest | SelfTrade::Both => {
                self.cancel_resting(id);
                true
            }
            SelfTrade::Decrement => {
                let quantity = order.open().min(open);
                if let Some(resting) = self.book.get_mut(id) {
                    resting.reduce(quantity);
                }
                order.total -= quantity;
                self.events.push(Event::Reduced { id, quantity });
                self.events.push(Event::Reduced { id: order.id, quantity });
                if quantity == open {
                    self.cancel_resting(id);
                }
                !order.is_done()
            }
        }
    }

    fn cancel_resting(&mut self, id: u64) {
        if let Some(order) = self.book.remove(id) {
            self.close_canceled(order, Cancel::SelfTrade);
        }
    }

    fn fill_resting(&mut self, id: u64, quantity: u64) {
        let is_used_up = self.book.get(id).is_some_and(|order| order.visible == quantity);
        match self.book.fill(id, quantity) {
            Some(0) => {
                if let Some(order) = self.book.remove(id) {
                    self.close(&order, State::Filled);
                }
            }
            Some(_) if is_used_up => self.book.move_back(id),
            _ => {}
        }
    }

    fn would_trade(&self, order: &Order) -> bool {
        self.book.best_price(order.side.opposite()).is_some_and(|price| order.accepts(price))
    }

    /// Returns true if matching would fill all of an order.
    fn can_fill(&self, order: &Order) -> bool {
        let mut left = order.open();
        for resting in self.book.orders(order.side.opposite()) {
            if !resting.price.is_some_and(|price| order.accepts(price)) {
                break;
            }
            left = left.saturating_sub(resting.open());
        }
        left == 0
    }

    fn reject(&mut self, id: u64, reason: Reject) {
        self.events.push(Event::Rejected { id, reason });
    }

    fn close_canceled(&mut self, order: Order, reason: Cancel) {
        self.events.push(Event::Canceled { id: order.id, open: order.open(), reason });
        self.close(&order, State::Canceled);
    }

    fn close(&mut self, order: &Order, state: State) {
        self.closed.insert(order.id, Closed { state, total: order.total, filled: order.filled });
    }
}
