//! Assigns slots to requests, and chooses which sandboxes to preempt.
//!
//! Makes decisions only: it knows neither time nor processes, and [`SandboxHost`](super::SandboxHost) carries the
//! decisions out.

use std::collections::{BTreeMap, HashMap};

use tokio::sync::oneshot;

use super::Priority;

/// Identifies a request for a sandbox, and later the sandbox itself. Newer ones are larger.
pub(super) type HolderId = u64;

/// The slots, the sandboxes that hold them, and the requests that wait.
#[derive(Debug)]
pub(super) struct SlotPool {
    slots: usize,
    sandboxes_max: usize,
    holders: HashMap<HolderId, SlotHolder>,
    /// Waiting requests, in the order of service.
    requests: BTreeMap<(Priority, HolderId), SlotRequest>,
    next_id: HolderId,
}

#[derive(Debug)]
struct SlotHolder {
    priority: Priority,
    preemptable: bool,
    has_slot: bool,
    /// True once the sandbox exists: it can be used, and preempted.
    is_ready: bool,
    /// True if the sandbox is being ended and will soon release its slot.
    is_ending: bool,
}

#[derive(Debug)]
enum SlotRequest {
    /// A request to create a sandbox.
    Sandbox { preemptable: bool, granted: oneshot::Sender<()> },
    /// A request for a slot for a sandbox that lent its own. Several commands may wait for it.
    Slot { granted: Vec<oneshot::Sender<()>> },
}

impl SlotRequest {
    fn is_withdrawn(&mut self) -> bool {
        match self {
            Self::Sandbox { granted, .. } => granted.is_closed(),
            Self::Slot { granted } => {
                granted.retain(|granted| !granted.is_closed());
                granted.is_empty()
            }
        }
    }
}

/// Result of a command's request for a slot of its sandbox.
#[derive(Debug)]
pub(super) enum SlotGrant {
    /// The sandbox has a slot.
    HasSlot,
    /// The receiver completes when the sandbox gets a slot.
    Wait(oneshot::Receiver<()>),
    /// The sandbox has ended.
    Gone,
}

impl SlotPool {
    pub(super) fn new(slots: usize, sandboxes_max: usize) -> Self {
        Self {
            slots: slots.max(1),
            sandboxes_max: sandboxes_max.max(1),
            holders: HashMap::new(),
            requests: BTreeMap::new(),
            next_id: 0,
        }
    }

    /// Adds a request for another sandbox. [`SlotPool::assign`] decides on it.
    pub(super) fn request_sandbox(
        &mut self,
        priority: Priority,
        preemptable: bool,
    ) -> (HolderId, oneshot::Receiver<()>) {
        let id = self.next_id;
        self.next_id += 1;
        let (granted, receiver) = oneshot::channel();
        self.requests.insert((priority, id), SlotRequest::Sandbox { preemptable, granted });
        (id, receiver)
    }

    /// Requests a slot for a sandbox that may have lent its own. [`SlotPool::assign`] decides on it.
    pub(super) fn request_slot(&mut self, id: HolderId) -> SlotGrant {
        let Some(holder) = self.holders.get(&id).filter(|holder| !holder.is_ending) else {
            return SlotGrant::Gone;
        };
        if holder.has_slot {
            return SlotGrant::HasSlot;
        }
        let (granted, receiver) = oneshot::channel();
        let request = self.requests.entry((holder.priority, id));
        match request.or_insert_with(|| SlotRequest::Slot { granted: Vec::new() }) {
            SlotRequest::Slot { granted: all } => all.push(granted),
            // Unreachable: ids are unique, and a sandbox's request for creation was granted when it became a holder.
            SlotRequest::Sandbox { .. } => return SlotGrant::Gone,
        }
        SlotGrant::Wait(receiver)
    }

    /// Marks a sandbox as usable.
    pub(super) fn mark_ready(&mut self, id: HolderId) {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.is_ready = true;
        }
    }

    /// Takes the slot from an idle sandbox.
    pub(super) fn lend_slot(&mut self, id: HolderId) {
        if let Some(holder) = self.holders.get_mut(&id).filter(|holder| holder.is_ready && !holder.is_ending)
        {
            holder.has_slot = false;
        }
    }

    /// Marks a sandbox as ending, so that no other one is preempted for the slot that it will release.
    pub(super) fn mark_ending(&mut self, id: HolderId) {
        if let Some(holder) = self.holders.get_mut(&id) {
            holder.is_ending = true;
        }
        self.requests.retain(|(_, requester), request| {
            *requester != id || matches!(request, SlotRequest::Sandbox { .. })
        });
    }

    /// Removes a sandbox that is gone, or a request that was withdrawn.
    pub(super) fn remove(&mut self, id: HolderId) {
        self.holders.remove(&id);
        self.requests.retain(|(_, requester), _| *requester != id);
    }

    /// Drops all waiting requests.
    pub(super) fn close(&mut self) {
        self.requests.clear();
    }

    /// Assigns free slots to the first requests. Returns the sandboxes that must end to make room for the remaining
    /// ones.
    #[must_use = "these sandboxes have to be ended"]
    pub(super) fn assign_slots(&mut self) -> Vec<HolderId> {
        self.requests.retain(|_, request| !request.is_withdrawn());
        self.grant();
        self.preempt()
    }

    fn grant(&mut self) {
        let keys: Vec<_> = self.requests.keys().copied().collect();
        for key in keys {
            if self.slots_free() == 0 {
                return;
            }
            let (priority, id) = key;
            // At the limit of sandboxes, requests for a slot alone can still be served.
            let wants_sandbox = matches!(self.requests.get(&key), Some(SlotRequest::Sandbox { .. }));
            if wants_sandbox && self.holders.len() >= self.sandboxes_max {
                continue;
            }
            match self.requests.remove(&key) {
                Some(SlotRequest::Sandbox { preemptable, granted }) => {
                    let holder = SlotHolder {
                        priority,
                        preemptable,
                        has_slot: true,
                        is_ready: false,
                        is_ending: false,
                    };
                    if granted.send(()).is_ok() {
                        self.holders.insert(id, holder);
                    }
                }
                Some(SlotRequest::Slot { granted }) => {
                    if let Some(holder) = self.holders.get_mut(&id) {
                        holder.has_slot = true;
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

    fn preempt(&mut self) -> Vec<HolderId> {
        let ending = self.holders.values().filter(|holder| holder.is_ending);
        // Slots and room that become free without further preemption; they go to the first requests.
        let mut slots = self.slots_free() + ending.clone().filter(|holder| holder.has_slot).count();
        let mut sandboxes = self.sandboxes_free() + ending.count();
        let mut victims = Vec::new();
        for (&(priority, _), request) in &self.requests {
            let wants_sandbox = matches!(request, SlotRequest::Sandbox { .. });
            if slots == 0 || (wants_sandbox && sandboxes == 0) {
                let lacks_slot = slots == 0;
                let lower = self.holders.iter().filter(|(_, holder)| {
                    holder.preemptable
                        && holder.is_ready
                        && !holder.is_ending
                        && holder.priority > priority
                        && (holder.has_slot || !lacks_slot)
                });
                let Some(victim) = lower.map(|(id, _)| *id).max() else { continue };
                if let Some(holder) = self.holders.get_mut(&victim) {
                    holder.is_ending = true;
                    slots += usize::from(holder.has_slot);
                    sandboxes += 1;
                }
                victims.push(victim);
            }
            slots = slots.saturating_sub(1);
            sandboxes = sandboxes.saturating_sub(usize::from(wants_sandbox));
        }
        victims
    }

    fn slots_free(&self) -> usize {
        let used = self.holders.values().filter(|holder| holder.has_slot).count();
        self.slots.saturating_sub(used)
    }

    fn sandboxes_free(&self) -> usize {
        self.sandboxes_max.saturating_sub(self.holders.len())
    }

    /// Returns the number of waiting requests.
    pub(super) fn waiting(&self) -> usize {
        self.requests.len()
    }

    /// Returns the number of slots in use.
    pub(super) fn slots_used(&self) -> usize {
        self.holders.values().filter(|holder| holder.has_slot).count()
    }

    /// Returns true if the sandbox has a slot.
    pub(super) fn has_slot(&self, id: HolderId) -> bool {
        self.holders.get(&id).is_some_and(|holder| holder.has_slot)
    }

    /// Returns the number of sandboxes by priority, including those that are being created and excluding those that are
    /// being ended.
    pub(super) fn by_priority(&self) -> BTreeMap<Priority, usize> {
        let mut counts: BTreeMap<_, _> = Priority::ALL.into_iter().map(|priority| (priority, 0)).collect();
        for holder in self.holders.values().filter(|holder| !holder.is_ending) {
            *counts.entry(holder.priority).or_default() += 1;
        }
        counts
    }

    /// Returns the reason for which another sandbox would have to wait; `None` if it wouldn't.
    pub(super) fn full_reason(&self) -> Option<String> {
        if self.holders.len() >= self.sandboxes_max {
            return Some(format!("All {} sandboxes are in use.", self.sandboxes_max));
        }
        if self.slots_free() <= self.requests.len() {
            let waiting = match self.requests.len() {
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
