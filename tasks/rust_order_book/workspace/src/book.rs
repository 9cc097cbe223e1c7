//! Storage of resting orders.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::order::{Order, Side};

/// Place of an order in the book's storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot(usize);

/// Orders at a price, in the order of priority.
#[derive(Debug, Default)]
struct Level {
    /// Slots of orders. Those of removed orders stay behind, so that a removal needn't search, and are skipped.
    queue: VecDeque<Slot>,
    visible: u64,
    count: usize,
}

/// Summary of a level.
#[derive(Debug, PartialEq, Eq)]
pub struct LevelView {
    pub side: Side,
    pub price: u64,
    pub visible: u64,
    pub count: usize,
}

#[derive(Debug, Default)]
pub struct Book {
    slots: Vec<Option<Order>>,
    free: Vec<Slot>,
    by_id: HashMap<u64, Slot>,
    buys: BTreeMap<u64, Level>,
    sells: BTreeMap<u64, Level>,
}

impl Book {
    pub fn get(&self, id: u64) -> Option<&Order> {
        self.by_id.get(&id).and_then(|slot| self.slots[slot.0].as_ref())
    }

    /// Adds an order behind all others at its price.
    pub fn add(&mut self, order: Order) {
        let price = order.price.expect("only orders with a limit rest");
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            Slot(self.slots.len() - 1)
        });
        let level = self.levels(order.side).entry(price).or_default();
        level.visible += order.visible;
        level.count += 1;
        level.queue.push_back(slot);
        self.by_id.insert(order.id, slot);
        self.slots[slot.0] = Some(order);
    }

    /// Removes an order.
    pub fn remove(&mut self, id: u64) -> Option<Order> {
        let slot = self.by_id.remove(&id)?;
        let order = self.slots[slot.0].take()?;
        self.free.push(slot);
        let price = order.price?;
        let levels = self.levels(order.side);
        if let Some(level) = levels.get_mut(&price) {
            level.visible -= order.visible;
            level.count -= 1;
            if level.count == 0 {
                levels.remove(&price);
            }
        }
        Some(order)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Order> {
        self.by_id.get(&id).and_then(|slot| self.slots[slot.0].as_mut())
    }

    /// Records a trade of an order. Returns its open quantity after it.
    pub fn fill(&mut self, id: u64, quantity: u64) -> Option<u64> {
        let order = self.get_mut(id)?;
        let before = order.visible;
        order.fill(quantity);
        if order.visible == 0 {
            order.show();
        }
        let (side, price, after, open) = (order.side, order.price?, order.visible, order.open());
        if let Some(level) = self.levels(side).get_mut(&price) {
            level.visible = level.visible - before + after;
        }
        Some(open)
    }

    /// Moves an order behind all others at its price.
    pub fn move_back(&mut self, id: u64) {
        let Some(order) = self.remove(id) else { return };
        self.add(order);
    }

    /// Returns the best price of a side.
    pub fn best_price(&self, side: Side) -> Option<u64> {
        match side {
            Side::Buy => self.buys.last_key_value().map(|(price, _)| *price),
            Side::Sell => self.sells.first_key_value().map(|(price, _)| *price),
        }
    }

    /// Returns the order of a side that trades first.
    pub fn best(&self, side: Side) -> Option<&Order> {
        self.orders(side).next()
    }

    /// Returns the orders of a side, first by price, then by priority.
    pub fn orders(&self, side: Side) -> impl Iterator<Item = &Order> {
        self.sorted(side).flat_map(|(_, level)| level.queue.iter()).filter_map(|slot| self.slots[slot.0].as_ref())
    }

    /// Returns summaries of a side's levels, best price first.
    pub fn views(&self, side: Side) -> impl Iterator<Item = LevelView> {
        self.sorted(side).map(move |(price, level)| LevelView {
            side,
            price: *price,
            visible: level.visible,
            count: level.count,
        })
    }

    fn sorted(&self, side: Side) -> Box<dyn Iterator<Item = (&u64, &Level)> + '_> {
        match side {
            Side::Buy => Box::new(self.buys.iter().rev()),
            Side::Sell => Box::new(self.sells.iter()),
        }
    }

    fn levels(&mut self, side: Side) -> &mut BTreeMap<u64, Level> {
        match side {
            Side::Buy => &mut self.buys,
            Side::Sell => &mut self.sells,
        }
    }
}
