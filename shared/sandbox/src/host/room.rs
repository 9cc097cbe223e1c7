//! Assigns slots to requests, and chooses which sandboxes to preempt.
//!
//! Makes decisions only: it knows neither time nor processes, and [`SandboxHost`](super::SandboxHost) carries the
//! decisions out.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::oneshot;

use super::Priority;

/// Identifies a request for a sandbox, and later the sandbox itself. Newer ones are larger.
pub(super) type Number = u64;

/// The slots, the sandboxes that hold them, and the requests that wait.
#[derive(Debug)]
pub(super) struct Room {
    slots: usize,
    sandboxes_max: usize,
    tenants: HashMap<Number, Tenant>,
    /// Waiting requests, in the order in which they are served.
    wishes: BTreeMap<(Priority, Number), Wish>,
    next: Number,
}

#[derive(Debug)]
struct Tenant {
    priority: Priority,
    preemptable: bool,
    has_slot: bool,
    /// True once the sandbox exists: it can be used, and preempted.
    made: bool,
    /// True if the sandbox is being ended and will soon release its slot.
    leaving: bool,
}

#[derive(Debug)]
enum Wish {
    /// A request to create a sandbox.
    Place { preemptable: bool, granted: oneshot::Sender<()> },
    /// A request for a slot for a sandbox that lent its own. Several commands may wait for it.
    Slot { granted: Vec<oneshot::Sender<()>> },
}

impl Wish {
    fn is_given_up(&mut self) -> bool {
        match self {
            Self::Place { granted, .. } => granted.is_closed(),
            Self::Slot { granted } => {
                granted.retain(|granted| !granted.is_closed());
                granted.is_empty()
            }
        }
    }
}

/// Result of a command's request for a slot of its sandbox.
#[derive(Debug)]
pub(super) enum SlotAnswer {
    /// The sandbox has a slot.
    Has,
    /// The receiver completes when the sandbox gets a slot.
    Wait(oneshot::Receiver<()>),
    /// The sandbox has ended.
    Gone,
}

impl Room {
    pub(super) fn new(slots: usize, sandboxes_max: usize) -> Self {
        Self {
            slots: slots.max(1),
            sandboxes_max: sandboxes_max.max(1),
            tenants: HashMap::new(),
            wishes: BTreeMap::new(),
            next: 0,
        }
    }

    /// Adds a request for another sandbox. [`Room::settle`] decides on it.
    pub(super) fn wish_place(
        &mut self,
        priority: Priority,
        preemptable: bool,
    ) -> (Number, oneshot::Receiver<()>) {
        let number = self.next;
        self.next += 1;
        let (granted, hears) = oneshot::channel();
        self.wishes.insert((priority, number), Wish::Place { preemptable, granted });
        (number, hears)
    }

    /// Requests a slot for a sandbox that may have lent its own. [`Room::settle`] decides on it.
    pub(super) fn wish_slot(&mut self, number: Number) -> SlotAnswer {
        let Some(tenant) = self.tenants.get(&number).filter(|tenant| !tenant.leaving) else {
            return SlotAnswer::Gone;
        };
        if tenant.has_slot {
            return SlotAnswer::Has;
        }
        let (granted, hears) = oneshot::channel();
        let wish = self.wishes.entry((tenant.priority, number));
        match wish.or_insert_with(|| Wish::Slot { granted: Vec::new() }) {
            Wish::Slot { granted: all } => all.push(granted),
            // Unreachable: ids are unique, and a sandbox's request for creation was granted when it became a holder.
            Wish::Place { .. } => return SlotAnswer::Gone,
        }
        SlotAnswer::Wait(hears)
    }

    /// Marks a sandbox as usable.
    pub(super) fn made(&mut self, number: Number) {
        if let Some(tenant) = self.tenants.get_mut(&number) {
            tenant.made = true;
        }
    }

    /// Takes the slot from an idle sandbox.
    pub(super) fn lend(&mut self, number: Number) {
        if let Some(tenant) = self.tenants.get_mut(&number).filter(|tenant| tenant.made && !tenant.leaving) {
            tenant.has_slot = false;
        }
    }

    /// Marks a sandbox as ending, so that no other one is preempted for the slot that it will release.
    pub(super) fn leaving(&mut self, number: Number) {
        if let Some(tenant) = self.tenants.get_mut(&number) {
            tenant.leaving = true;
        }
        self.wishes.retain(|(_, wisher), wish| *wisher != number || matches!(wish, Wish::Place { .. }));
    }

    /// Removes a sandbox that is gone, or a request that was withdrawn.
    pub(super) fn gone(&mut self, number: Number) {
        self.tenants.remove(&number);
        self.wishes.retain(|(_, wisher), _| *wisher != number);
    }

    /// Drops all waiting requests.
    pub(super) fn close(&mut self) {
        self.wishes.clear();
    }

    /// Assigns free slots to the first requests. Returns the sandboxes that must end to make room for the remaining
    /// ones.
    #[must_use = "these sandboxes have to be ended"]
    pub(super) fn settle(&mut self) -> Vec<Number> {
        self.wishes.retain(|_, wish| !wish.is_given_up());
        self.grant();
        self.preempt()
    }

    fn grant(&mut self) {
        let keys: Vec<_> = self.wishes.keys().copied().collect();
        for key in keys {
            if self.slots_free() == 0 {
                return;
            }
            let (priority, number) = key;
            // At the limit of sandboxes, requests for a slot alone can still be served.
            let is_place = matches!(self.wishes.get(&key), Some(Wish::Place { .. }));
            if is_place && self.tenants.len() >= self.sandboxes_max {
                continue;
            }
            match self.wishes.remove(&key) {
                Some(Wish::Place { preemptable, granted }) => {
                    let tenant =
                        Tenant { priority, preemptable, has_slot: true, made: false, leaving: false };
                    if granted.send(()).is_ok() {
                        self.tenants.insert(number, tenant);
                    }
                }
                Some(Wish::Slot { granted }) => {
                    if let Some(tenant) = self.tenants.get_mut(&number) {
                        tenant.has_slot = true;
                    }
                    for granted in granted {
                        // A command that stopped waiting doesn't receive it; the sandbox lends its slot again.
                        let _ = granted.send(());
                    }
                }
                None => {}
            }
        }
    }

    fn preempt(&mut self) -> Vec<Number> {
        let leaving = self.tenants.values().filter(|tenant| tenant.leaving);
        // Slots and room that become free without further preemption; they go to the first requests.
        let mut slots = self.slots_free() + leaving.clone().filter(|tenant| tenant.has_slot).count();
        let mut places = self.places_free() + leaving.count();
        let mut victims = Vec::new();
        for (&(priority, _), wish) in &self.wishes {
            let wants_place = matches!(wish, Wish::Place { .. });
            if slots == 0 || (wants_place && places == 0) {
                let lacks_slot = slots == 0;
                let lower = self.tenants.iter().filter(|(_, tenant)| {
                    tenant.preemptable
                        && tenant.made
                        && !tenant.leaving
                        && tenant.priority > priority
                        && (tenant.has_slot || !lacks_slot)
                });
                let Some(victim) = lower.map(|(number, _)| *number).max() else { continue };
                if let Some(tenant) = self.tenants.get_mut(&victim) {
                    tenant.leaving = true;
                    slots += usize::from(tenant.has_slot);
                    places += 1;
                }
                victims.push(victim);
            }
            slots = slots.saturating_sub(1);
            places = places.saturating_sub(usize::from(wants_place));
        }
        victims
    }

    fn slots_free(&self) -> usize {
        let used = self.tenants.values().filter(|tenant| tenant.has_slot).count();
        self.slots.saturating_sub(used)
    }

    fn places_free(&self) -> usize {
        self.sandboxes_max.saturating_sub(self.tenants.len())
    }

    /// Returns the number of waiting requests.
    pub(super) fn waiting(&self) -> usize {
        self.wishes.len()
    }

    /// Returns the number of slots in use.
    pub(super) fn working(&self) -> usize {
        self.tenants.values().filter(|tenant| tenant.has_slot).count()
    }

    /// Returns true if the sandbox has a slot.
    pub(super) fn has_slot(&self, number: Number) -> bool {
        self.tenants.get(&number).is_some_and(|tenant| tenant.has_slot)
    }

    /// Returns the number of sandboxes by priority, including those that are being created and excluding those that are
    /// being ended.
    pub(super) fn by_priority(&self) -> BTreeMap<Priority, usize> {
        let mut counts: BTreeMap<_, _> = Priority::ALL.into_iter().map(|priority| (priority, 0)).collect();
        for tenant in self.tenants.values().filter(|tenant| !tenant.leaving) {
            *counts.entry(tenant.priority).or_default() += 1;
        }
        counts
    }

    /// Returns the reason for which another sandbox would have to wait; `None` if it wouldn't.
    pub(super) fn why_full(&self) -> Option<String> {
        if self.tenants.len() >= self.sandboxes_max {
            return Some(format!("All {} sandboxes are in use.", self.sandboxes_max));
        }
        if self.slots_free() <= self.wishes.len() {
            let waiting = match self.wishes.len() {
                0 => String::new(),
                waiting => format!("; {waiting} are already waiting for one"),
            };
            return Some(match self.slots {
                1 => format!("The only slot is in use{waiting}."),
                slots => format!("All {slots} slots are in use{waiting}."),
            });
        }
        None
    }
}
