//! The visible messages of a queue in delivery order: message groups take turns, and the oldest message of a group goes
//! first. So a group of 12,000 messages delays a group of 10 by at most one message per turn. A paused group has no
//! turns. Groups that share a limit lose their turn while that many of their messages are in flight.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// A message group id. Messages without one form a group.
pub(super) type Group = Option<Arc<str>>;

/// Limit of messages in flight, which several groups may share.
#[derive(Debug, Clone)]
pub struct GroupLimit {
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Maximum number of their messages in flight, in each queue.
    pub in_flight_max: usize,
}

/// Visible messages by group.
///
/// Invariants: `turns` contains each unpaused key of `groups` once. A group may be empty until its turn. `len` counts
/// the messages of unpaused groups.
#[derive(Debug, Default)]
pub(super) struct ReadyMessages {
    groups: HashMap<Group, BTreeSet<i64>>,
    turns: VecDeque<Group>,
    paused: HashSet<Group>,
    len: usize,
    /// Index in `limits` of the limit that a group has.
    limit_of: HashMap<Group, usize>,
    /// Maximum number of messages in flight, and their number.
    limits: Vec<(usize, usize)>,
}

impl ReadyMessages {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn insert(&mut self, group: &Group, seq: i64) {
        let is_paused = self.paused.contains(group);
        match self.groups.get_mut(group) {
            Some(messages) => self.len += usize::from(messages.insert(seq) && !is_paused),
            None => {
                self.groups.insert(group.clone(), BTreeSet::from([seq]));
                if !is_paused {
                    self.turns.push_back(group.clone());
                    self.len += 1;
                }
            }
        }
    }

    pub(super) fn remove(&mut self, group: &Group, seq: i64) {
        if let Some(messages) = self.groups.get_mut(group) {
            self.len -= usize::from(messages.remove(&seq) && !self.paused.contains(group));
        }
    }

    /// Replaces all limits. `in_flight` is the group of each message in flight.
    pub(super) fn set_limits<'a>(
        &mut self,
        limits: &[GroupLimit],
        in_flight: impl Iterator<Item = &'a Group>,
    ) {
        self.limits = limits.iter().map(|limit| (limit.in_flight_max, 0)).collect();
        let of_group = |index| move |group: &String| (Some(Arc::from(group.as_str())), index);
        self.limit_of =
            limits.iter().enumerate().flat_map(|(n, limit)| limit.groups.iter().map(of_group(n))).collect();
        in_flight.for_each(|group| self.start_flight(group));
    }

    /// Counts a message as in flight.
    pub(super) fn start_flight(&mut self, group: &Group) {
        if let Some(limit) = self.limit_of.get(group).and_then(|index| self.limits.get_mut(*index)) {
            limit.1 += 1;
        }
    }

    /// Counts a message as not in flight any more.
    pub(super) fn end_flight(&mut self, group: &Group) {
        if let Some(limit) = self.limit_of.get(group).and_then(|index| self.limits.get_mut(*index)) {
            limit.1 = limit.1.saturating_sub(1);
        }
    }

    fn is_at_limit(&self, group: &Group) -> bool {
        let limit = self.limit_of.get(group).and_then(|index| self.limits.get(*index));
        limit.is_some_and(|(max, in_flight)| in_flight >= max)
    }

    /// Stops delivering messages of a group.
    pub(super) fn pause(&mut self, group: Group) {
        if let Some(messages) = self.groups.get(&group)
            && !self.paused.contains(&group)
        {
            self.len -= messages.len();
            self.turns.retain(|turn| *turn != group);
        }
        self.paused.insert(group);
    }

    /// Resumes delivering messages of a paused group.
    pub(super) fn resume(&mut self, group: &Group) {
        if self.paused.remove(group)
            && let Some(messages) = self.groups.get(group)
        {
            self.len += messages.len();
            self.turns.push_back(group.clone());
        }
    }

    /// Removes and returns the next message. The caller counts it as in flight.
    pub(super) fn pop(&mut self) -> Option<i64> {
        for _ in 0..self.turns.len() {
            let group = self.turns.pop_front()?;
            if self.is_at_limit(&group) {
                self.turns.push_back(group);
                continue;
            }
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
    fn groups_with_a_limit_lose_their_turn() {
        let mut ready = ReadyMessages::default();
        for (seq, name) in ["a", "a", "b", "b", "c", "c"].into_iter().enumerate() {
            ready.insert(&group(name), seq as i64);
        }
        let limit = GroupLimit { groups: vec!["a".into(), "b".into()], in_flight_max: 2 };
        ready.set_limits(&[limit], [group("a")].iter());
        let mut popped = Vec::new();
        while let Some(seq) = ready.pop() {
            ready.start_flight(&group(["a", "b", "c"][seq as usize / 2]));
            popped.push(seq);
        }
        assert_eq!(popped, [0, 4, 5], "one of `a` was in flight before");
        assert_eq!(ready.len(), 3);
        ready.end_flight(&group("c"));
        assert_eq!(ready.pop(), None);
        ready.end_flight(&group("a"));
        let mut rest = vec![ready.pop().unwrap()];
        ready.set_limits(&[], std::iter::empty());
        rest.extend(std::iter::from_fn(|| ready.pop()));
        rest.sort_unstable();
        assert_eq!(rest, [1, 2, 3]);
    }

    #[test]
    fn groups_take_turns() {
        let mut ready = ReadyMessages::default();
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

    #[test]
    fn a_paused_group_waits_and_loses_nothing() {
        let mut ready = ReadyMessages::default();
        ready.insert(&group("a"), 1);
        ready.insert(&group("b"), 2);
        ready.pause(group("a"));
        ready.insert(&group("a"), 3);
        assert_eq!((ready.len(), ready.pop(), ready.pop()), (1, Some(2), None));
        ready.resume(&group("a"));
        assert_eq!((ready.len(), ready.pop(), ready.pop(), ready.pop()), (2, Some(1), Some(3), None));
    }

    proptest! {
        /// Compared with a plain set: no message is lost or invented, the order of a group is preserved, and paused
        /// groups are skipped.
        #[test]
        fn like_a_set(operations in proptest::collection::vec((0..5_u8, 0..4_u8, 0..30_i64), 0..200)) {
            let mut ready = ReadyMessages::default();
            let (mut model, mut paused) = (BTreeSet::<i64>::new(), HashSet::new());
            // A message's group never changes, so it is derived from the number here.
            let group_of = |seq: i64| -> Group {
                (seq % 4 != 0).then(|| Arc::from((seq % 4).to_string().as_str()))
            };
            for (operation, _, seq) in operations {
                match operation {
                    0 => { ready.insert(&group_of(seq), seq); model.insert(seq); }
                    1 => { ready.remove(&group_of(seq), seq); model.remove(&seq); }
                    2 => { ready.pause(group_of(seq)); paused.insert(group_of(seq)); }
                    3 => { ready.resume(&group_of(seq)); paused.remove(&group_of(seq)); }
                    _ => match ready.pop() {
                        Some(popped) => {
                            prop_assert!(!paused.contains(&group_of(popped)));
                            prop_assert!(model.remove(&popped));
                            let older = model.iter().find(|seq| **seq % 4 == popped % 4);
                            prop_assert!(older.is_none_or(|seq| *seq > popped));
                        }
                        None => prop_assert!(model.iter().all(|seq| paused.contains(&group_of(*seq)))),
                    },
                }
                let in_turn = model.iter().filter(|seq| !paused.contains(&group_of(**seq))).count();
                prop_assert_eq!(ready.len(), in_turn);
                let open = ready.groups.keys().filter(|group| !paused.contains(*group)).count();
                prop_assert_eq!(ready.turns.len(), open);
            }
        }
    }
}
