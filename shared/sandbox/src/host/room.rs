//! Who gets a place, in which order, and who has to leave for it.
//!
//! No clock and no processes: what is decided here is carried out elsewhere.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::oneshot;

use super::Priority;

/// Number of a creation, and of the sandbox that comes of it. Later ones are larger.
pub(super) type Number = u64;

/// Places and who has them, wishes and who has them.
#[derive(Debug)]
pub(super) struct Room {
    slots: usize,
    sandboxes_max: usize,
    tenants: HashMap<Number, Tenant>,
    /// In the order in which they are served.
    wishes: BTreeMap<(Priority, Number), Wish>,
    next: Number,
}

#[derive(Debug)]
struct Tenant {
    priority: Priority,
    preemptable: bool,
    has_slot: bool,
    /// It can be used, hence preempted: it is not being made any more.
    made: bool,
    /// It is being ended; its slot comes free soon.
    leaving: bool,
}

#[derive(Debug)]
enum Wish {
    /// Another sandbox.
    Place { preemptable: bool, granted: oneshot::Sender<()> },
    /// A slot for a sandbox that lent its own. Several commands may wait for it.
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

/// What a command finds that asks for its sandbox's slot.
#[derive(Debug)]
pub(super) enum SlotAnswer {
    /// The sandbox has one.
    Has,
    /// It will hear of one.
    Wait(oneshot::Receiver<()>),
    /// The sandbox is no more.
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

    /// Wishes for another sandbox. [`Room::settle`] decides.
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

    /// Wishes for a slot for a sandbox that may have lent its own. [`Room::settle`] decides.
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
            // Numbers are given once: a tenant's wish for a place was granted when it became one.
            Wish::Place { .. } => return SlotAnswer::Gone,
        }
        SlotAnswer::Wait(hears)
    }

    /// The sandbox can be used from now on.
    pub(super) fn made(&mut self, number: Number) {
        if let Some(tenant) = self.tenants.get_mut(&number) {
            tenant.made = true;
        }
    }

    /// The sandbox is idle: it lends its slot.
    pub(super) fn lend(&mut self, number: Number) {
        if let Some(tenant) = self.tenants.get_mut(&number).filter(|tenant| tenant.made && !tenant.leaving) {
            tenant.has_slot = false;
        }
    }

    /// The sandbox is being ended: nobody else has to leave for who waits for its place.
    pub(super) fn leaving(&mut self, number: Number) {
        if let Some(tenant) = self.tenants.get_mut(&number) {
            tenant.leaving = true;
        }
        self.wishes.retain(|(_, wisher), wish| *wisher != number || matches!(wish, Wish::Place { .. }));
    }

    /// The sandbox is no more, or its creation was given up.
    pub(super) fn gone(&mut self, number: Number) {
        self.tenants.remove(&number);
        self.wishes.retain(|(_, wisher), _| *wisher != number);
    }

    /// Nobody is served any more.
    pub(super) fn close(&mut self) {
        self.wishes.clear();
    }

    /// Gives what is free to who comes first. Returns the sandboxes that have to leave for those who still wait.
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
            // Who wants another sandbox may have to wait for room where a slot alone is to be had.
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
                        // Who gave up meanwhile does not want to know; the sandbox lends it again.
                        let _ = granted.send(());
                    }
                }
                None => {}
            }
        }
    }

    fn preempt(&mut self) -> Vec<Number> {
        let leaving = self.tenants.values().filter(|tenant| tenant.leaving);
        // What comes free without anybody else leaving, and is spoken for by who comes first.
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

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.wishes.len()
    }

    /// Sandboxes that have a slot.
    pub(super) fn working(&self) -> usize {
        self.tenants.values().filter(|tenant| tenant.has_slot).count()
    }

    /// Whether a sandbox has a slot.
    pub(super) fn has_slot(&self, number: Number) -> bool {
        self.tenants.get(&number).is_some_and(|tenant| tenant.has_slot)
    }

    /// Sandboxes by priority, those that are being made included and those that are being ended not.
    pub(super) fn by_priority(&self) -> BTreeMap<Priority, usize> {
        let mut counts: BTreeMap<_, _> = Priority::ALL.into_iter().map(|priority| (priority, 0)).collect();
        for tenant in self.tenants.values().filter(|tenant| !tenant.leaving) {
            *counts.entry(tenant.priority).or_default() += 1;
        }
        counts
    }

    /// Why another sandbox would have to wait now; `None` when it would not.
    pub(super) fn why_full(&self) -> Option<String> {
        if self.tenants.len() >= self.sandboxes_max {
            return Some(format!("All {} sandboxes are in use.", self.sandboxes_max));
        }
        if self.slots_free() <= self.wishes.len() {
            let waiting = match self.wishes.len() {
                0 => String::new(),
                waiting => format!("; {waiting} wait for one already"),
            };
            return Some(match self.slots {
                1 => format!("The only slot is in use{waiting}."),
                slots => format!("All {slots} slots are in use{waiting}."),
            });
        }
        None
    }
}
