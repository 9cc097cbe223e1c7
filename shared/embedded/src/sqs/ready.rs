//! The visible messages of a queue in the order they are handed out: message groups take
//! turns, and inside a group the oldest message goes first. So a group of 12,000 messages
//! delays one of 10 by at most one message per turn.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// A message group id; messages without one form a group of their own.
pub(super) type Group = Option<Arc<str>>;

/// Visible messages by group.
///
/// Invariant: `turns` holds every key of `groups` once. A group may be empty until its turn.
#[derive(Debug, Default)]
pub(super) struct Ready {
    groups: HashMap<Group, BTreeSet<i64>>,
    turns: VecDeque<Group>,
    len: usize,
}

impl Ready {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn insert(&mut self, group: &Group, seq: i64) {
        match self.groups.get_mut(group) {
            Some(messages) => self.len += usize::from(messages.insert(seq)),
            None => {
                self.groups.insert(group.clone(), BTreeSet::from([seq]));
                self.turns.push_back(group.clone());
                self.len += 1;
            }
        }
    }

    pub(super) fn remove(&mut self, group: &Group, seq: i64) {
        if let Some(messages) = self.groups.get_mut(group) {
            self.len -= usize::from(messages.remove(&seq));
        }
    }

    /// Takes the next message.
    pub(super) fn pop(&mut self) -> Option<i64> {
        while let Some(group) = self.turns.pop_front() {
            let Some(messages) = self.groups.get_mut(&group) else { continue };
            let first = messages.pop_first();
            if messages.is_empty() {
                self.groups.remove(&group);
            } else {
                self.turns.push_back(group);
            }
            if first.is_some() {
                self.len -= 1;
                return first;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn group(name: &str) -> Group {
        Some(Arc::from(name))
    }

    #[test]
    fn groups_take_turns() {
        let mut ready = Ready::default();
        for seq in 0..12_000 {
            ready.insert(&group("large"), seq);
        }
        for seq in 12_000..12_010 {
            ready.insert(&group("small"), seq);
        }
        let first: Vec<i64> = std::iter::from_fn(|| ready.pop()).take(20).collect();
        assert_eq!(first.iter().filter(|seq| **seq >= 12_000).count(), 10);
        assert_eq!(ready.len(), 11_990);
    }

    proptest! {
        /// Against a plain set: nothing is lost or invented, and a group's order is kept.
        #[test]
        fn like_a_set(operations in proptest::collection::vec((0..3_u8, 0..4_u8, 0..30_i64), 0..200)) {
            let mut ready = Ready::default();
            let mut model = BTreeSet::new();
            // A message's group never changes, so it follows from the number here.
            let group_of = |seq: i64| (seq % 4 != 0).then(|| Arc::from((seq % 4).to_string().as_str()));
            for (operation, _, seq) in operations {
                match operation {
                    0 => { ready.insert(&group_of(seq), seq); model.insert(seq); }
                    1 => { ready.remove(&group_of(seq), seq); model.remove(&seq); }
                    _ => match ready.pop() {
                        Some(popped) => {
                            prop_assert!(model.remove(&popped));
                            let older = model.iter().find(|seq| **seq % 4 == popped % 4);
                            prop_assert!(older.is_none_or(|seq| *seq > popped));
                        }
                        None => prop_assert!(model.is_empty()),
                    },
                }
                prop_assert_eq!(ready.len(), model.len());
                prop_assert_eq!(ready.turns.len(), ready.groups.len());
            }
        }
    }
}
