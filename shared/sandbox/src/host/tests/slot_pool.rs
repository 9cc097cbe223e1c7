//! Property tests of the slot pool, with random sequences of events.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tokio::sync::oneshot::Receiver;

use crate::host::Priority;
use crate::host::slot_pool::{HolderId, SlotGrant, SlotPool};

#[derive(Debug, Clone)]
enum Step {
    Request { priority: u64, preemptable: bool },
    GiveUp(usize),
    Ready(usize),
    Lend(usize),
    Use(usize),
    End(usize),
    Gone(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..20_usize;
    prop_oneof![
        4 => (0..4_u64, any::<bool>()).prop_map(|(priority, preemptable)| Step::Request { priority, preemptable }),
        1 => index.clone().prop_map(Step::GiveUp),
        4 => index.clone().prop_map(Step::Ready),
        2 => index.clone().prop_map(Step::Lend),
        2 => index.clone().prop_map(Step::Use),
        1 => index.clone().prop_map(Step::End),
        3 => index.prop_map(Step::Gone),
    ]
}

/// Expected state of the slot pool.
#[derive(Default)]
struct Model {
    waiting: BTreeMap<HolderId, (Priority, Receiver<()>)>,
    holders: BTreeMap<HolderId, (Priority, bool)>,
    ready: BTreeSet<HolderId>,
    ending: BTreeSet<HolderId>,
    slot_requests: Vec<(HolderId, Receiver<()>)>,
    preemptable: BTreeSet<HolderId>,
}

proptest! {
    #[test]
    fn limits_order_and_victims_are_right(slots in 1..4_usize, max in 1..6_usize, steps in prop::collection::vec(step(), 1..80)) {
        let mut slot_pool = SlotPool::new(slots, max);
        let mut model = Model::default();
        for step in steps {
            let pick = |ids: Vec<HolderId>, n: usize| ids.get(n.checked_rem(ids.len()).unwrap_or(0)).copied();
            match step {
                Step::Request { priority, preemptable } => {
                    let priority = Priority::from_number(priority).unwrap();
                    let (id, granted) = slot_pool.request_sandbox(priority, preemptable);
                    model.waiting.insert(id, (priority, granted));
                    if preemptable {
                        model.preemptable.insert(id);
                    }
                }
                Step::GiveUp(n) => {
                    if let Some(id) = pick(model.waiting.keys().copied().collect(), n) {
                        model.waiting.remove(&id);
                        slot_pool.remove(id);
                    }
                }
                Step::Ready(n) => {
                    if let Some(id) = pick(model.holders.keys().copied().collect(), n) {
                        slot_pool.mark_ready(id);
                        model.ready.insert(id);
                    }
                }
                Step::Lend(n) => {
                    if let Some(id) = pick(model.ready.iter().copied().collect(), n) {
                        slot_pool.lend_slot(id);
                    }
                }
                Step::Use(n) => {
                    if let Some(id) = pick(model.ready.iter().copied().collect(), n) {
                        match slot_pool.request_slot(id) {
                            SlotGrant::HasSlot => prop_assert!(slot_pool.has_slot(id)),
                            SlotGrant::Wait(granted) => model.slot_requests.push((id, granted)),
                            SlotGrant::Gone => prop_assert!(model.ending.contains(&id)),
                        }
                    }
                }
                Step::End(n) => {
                    if let Some(id) = pick(model.ready.iter().copied().collect(), n) {
                        slot_pool.mark_ending(id);
                        model.ending.insert(id);
                    }
                }
                Step::Gone(n) => {
                    if let Some(id) = pick(model.ending.iter().copied().collect(), n) {
                        slot_pool.remove(id);
                        model.holders.remove(&id);
                        model.ready.remove(&id);
                        model.ending.remove(&id);
                        model.slot_requests.retain(|(holder, _)| *holder != id);
                    }
                }
            }
            let victims = slot_pool.assign_slots();
            let mut served = Vec::new();
            model.waiting.retain(|id, (priority, granted)| {
                let is_served = granted.try_recv().is_ok();
                if is_served {
                    served.push((*priority, *id));
                }
                !is_served
            });
            // No later request of the same or a lower priority was served before one that still waits.
            for (priority, id) in &served {
                for (waiting, (waiting_priority, _)) in &model.waiting {
                    prop_assert!((*waiting_priority, *waiting) > (*priority, *id));
                }
                model.holders.insert(*id, (*priority, model.preemptable.contains(id)));
            }
            model.slot_requests.retain_mut(|(_, granted)| granted.try_recv().is_err());
            prop_assert!(slot_pool.slots_used() <= slots);
            prop_assert!(model.holders.len() <= max);
            for victim in &victims {
                let (priority, preemptable) = model.holders[victim];
                prop_assert!(preemptable && model.ready.contains(victim) && !model.ending.contains(victim));
                // A request of higher priority needs it.
                let urgent = model.waiting.values().any(|(waits, _)| *waits < priority)
                    || model.slot_requests.iter().any(|(id, _)| model.holders[id].0 < priority);
                prop_assert!(urgent);
                model.ending.insert(*victim);
            }
            // Requests wait only while all slots are in use or the limit of sandboxes is reached.
            let has_free_slot = slot_pool.slots_used() < slots;
            let has_room = model.holders.len() < max;
            prop_assert!(model.waiting.is_empty() || !(has_free_slot && has_room));
            // No unneeded victims: another call finds no more.
            prop_assert!(slot_pool.assign_slots().is_empty());
        }
        // When all holders have left, no request waits.
        while !model.holders.is_empty() || !model.waiting.is_empty() {
            for id in std::mem::take(&mut model.holders).into_keys() {
                slot_pool.remove(id);
            }
            let _ = slot_pool.assign_slots();
            for (id, (priority, mut granted)) in std::mem::take(&mut model.waiting) {
                if granted.try_recv().is_ok() {
                    model.holders.insert(id, (priority, false));
                } else {
                    model.waiting.insert(id, (priority, granted));
                }
            }
            prop_assert!(model.waiting.is_empty() || !model.holders.is_empty());
        }
        prop_assert_eq!((slot_pool.slots_used(), slot_pool.waiting()), (0, 0));
    }
}
