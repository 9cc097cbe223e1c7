//! Properties of the room, whatever happens in it.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tokio::sync::oneshot::Receiver;

use crate::host::Priority;
use crate::host::room::{Number, Room, SlotAnswer};

#[derive(Debug, Clone)]
enum Step {
    Wish { priority: u64, preemptable: bool },
    GiveUp(usize),
    Made(usize),
    Lend(usize),
    Use(usize),
    End(usize),
    Gone(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..20_usize;
    prop_oneof![
        4 => (0..4_u64, any::<bool>()).prop_map(|(priority, preemptable)| Step::Wish { priority, preemptable }),
        1 => which.clone().prop_map(Step::GiveUp),
        4 => which.clone().prop_map(Step::Made),
        2 => which.clone().prop_map(Step::Lend),
        2 => which.clone().prop_map(Step::Use),
        1 => which.clone().prop_map(Step::End),
        3 => which.prop_map(Step::Gone),
    ]
}

/// What the room ought to know, seen from outside.
#[derive(Default)]
struct Seen {
    waiting: BTreeMap<Number, (Priority, Receiver<()>)>,
    tenants: BTreeMap<Number, (Priority, bool)>,
    made: BTreeSet<Number>,
    leaving: BTreeSet<Number>,
    uses: Vec<(Number, Receiver<()>)>,
    preemptable: BTreeSet<Number>,
}

proptest! {
    #[test]
    fn bounds_order_and_victims(slots in 1..4_usize, max in 1..6_usize, steps in prop::collection::vec(step(), 1..80)) {
        let mut room = Room::new(slots, max);
        let mut seen = Seen::default();
        for step in steps {
            let pick = |of: Vec<Number>, n: usize| of.get(n.checked_rem(of.len()).unwrap_or(0)).copied();
            match step {
                Step::Wish { priority, preemptable } => {
                    let priority = Priority::of_number(priority).unwrap();
                    let (number, granted) = room.wish_place(priority, preemptable);
                    seen.waiting.insert(number, (priority, granted));
                    if preemptable {
                        seen.preemptable.insert(number);
                    }
                }
                Step::GiveUp(n) => {
                    if let Some(number) = pick(seen.waiting.keys().copied().collect(), n) {
                        seen.waiting.remove(&number);
                        room.gone(number);
                    }
                }
                Step::Made(n) => {
                    if let Some(number) = pick(seen.tenants.keys().copied().collect(), n) {
                        room.made(number);
                        seen.made.insert(number);
                    }
                }
                Step::Lend(n) => {
                    if let Some(number) = pick(seen.made.iter().copied().collect(), n) {
                        room.lend(number);
                    }
                }
                Step::Use(n) => {
                    if let Some(number) = pick(seen.made.iter().copied().collect(), n) {
                        match room.wish_slot(number) {
                            SlotAnswer::Has => prop_assert!(room.has_slot(number)),
                            SlotAnswer::Wait(granted) => seen.uses.push((number, granted)),
                            SlotAnswer::Gone => prop_assert!(seen.leaving.contains(&number)),
                        }
                    }
                }
                Step::End(n) => {
                    if let Some(number) = pick(seen.made.iter().copied().collect(), n) {
                        room.leaving(number);
                        seen.leaving.insert(number);
                    }
                }
                Step::Gone(n) => {
                    if let Some(number) = pick(seen.leaving.iter().copied().collect(), n) {
                        room.gone(number);
                        seen.tenants.remove(&number);
                        seen.made.remove(&number);
                        seen.leaving.remove(&number);
                        seen.uses.retain(|(of, _)| *of != number);
                    }
                }
            }
            let victims = room.settle();
            let mut served = Vec::new();
            seen.waiting.retain(|number, (priority, granted)| {
                let is_served = granted.try_recv().is_ok();
                if is_served {
                    served.push((*priority, *number));
                }
                !is_served
            });
            // Nobody who came later with the same or a lower priority was served before who still waits.
            for (priority, number) in &served {
                for (waiting, (waits_for, _)) in &seen.waiting {
                    prop_assert!((*waits_for, *waiting) > (*priority, *number));
                }
                seen.tenants.insert(*number, (*priority, seen.preemptable.contains(number)));
            }
            seen.uses.retain_mut(|(_, granted)| granted.try_recv().is_err());
            prop_assert!(room.working() <= slots);
            prop_assert!(seen.tenants.len() <= max);
            for victim in &victims {
                let (priority, preemptable) = seen.tenants[victim];
                prop_assert!(preemptable && seen.made.contains(victim) && !seen.leaving.contains(victim));
                // For the good of somebody who is more urgent.
                let urgent = seen.waiting.values().any(|(waits, _)| *waits < priority)
                    || seen.uses.iter().any(|(number, _)| seen.tenants[number].0 < priority);
                prop_assert!(urgent);
                seen.leaving.insert(*victim);
            }
            // Who waits does so because there is nothing for it.
            let free_slots = room.working() < slots;
            let free_places = seen.tenants.len() < max;
            prop_assert!(seen.waiting.is_empty() || !(free_slots && free_places));
            // Nobody leaves for nobody: another look finds no more victims.
            prop_assert!(room.settle().is_empty());
        }
        // When all have left, nobody waits.
        while !seen.tenants.is_empty() || !seen.waiting.is_empty() {
            for number in std::mem::take(&mut seen.tenants).into_keys() {
                room.gone(number);
            }
            let _ = room.settle();
            for (number, (priority, mut granted)) in std::mem::take(&mut seen.waiting) {
                if granted.try_recv().is_ok() {
                    seen.tenants.insert(number, (priority, false));
                } else {
                    seen.waiting.insert(number, (priority, granted));
                }
            }
            prop_assert!(seen.waiting.is_empty() || !seen.tenants.is_empty());
        }
        prop_assert_eq!((room.working(), room.waiting()), (0, 0));
    }
}
