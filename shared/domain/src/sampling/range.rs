//! Selection from numbered tasks that may far outnumber a dataset's items: `random.sample(range(space), k)`.

use std::collections::HashSet;

use super::mt19937::{PythonRandom, seed_of_text};
use super::percent_of;

/// Selects task numbers of a benchmark whose tasks are generated from a number instead of read from a dataset.
///
/// `total` is the size that the benchmark reports, `space` the count of numbers that exist. They differ if a catalog of
/// a few thousand tasks represents a generator with hundreds of millions. `count` takes precedence over `pct`. If all
/// of the total is requested and it's the whole space, the numbers are in order; otherwise they are in the order of
/// selection.
///
/// Memory and time grow with the number of selected tasks, which only `count` limits, so callers must limit it.
#[must_use]
pub fn sample_range(total: u64, space: u64, seed: &str, pct: u32, count: Option<u64>) -> Vec<u64> {
    if space == 0 {
        return Vec::new();
    }
    let asked = match count {
        Some(count) => count,
        None => percent_of(total, pct),
    };
    let size = asked.min(space).max(1);
    if size >= total && space == total {
        return (0..total).collect();
    }
    let mut random = PythonRandom::from_text(seed);
    if space <= pool_limit(size) {
        draw_from_pool(&mut random, space, size)
    } else {
        draw_by_rejection(&mut random, space, size)
    }
}

/// Returns the seed of a task in its environment: the first 8 bytes of SHA-256 of `<environment>:<task>`, read
/// big-endian, modulo 2³².
#[must_use]
pub fn environment_seed(environment: &str, task: u64) -> u32 {
    seed_of_text(&format!("{environment}:{task}")) as u32
}

/// Returns the size up to which CPython copies the space into a list and draws without replacement. Beyond it, CPython
/// draws until a value is new. The two methods give different selections, so the limit is part of the definition: 21,
/// and for more than 5 draws 21 + 4^⌈log₄ 3k⌉.
fn pool_limit(size: u64) -> u64 {
    if size <= 5 {
        return 21;
    }
    let wanted = size.saturating_mul(3);
    let mut power: u64 = 1;
    while power < wanted && power < u64::MAX / 4 {
        power *= 4;
    }
    power.saturating_add(21)
}

fn draw_from_pool(random: &mut PythonRandom, space: u64, size: u64) -> Vec<u64> {
    let mut pool: Vec<u64> = (0..space).collect();
    let mut selected = Vec::new();
    for _ in 0..size {
        // swap_remove moves the last value into the gap, like CPython's loop.
        selected.push(pool.swap_remove(random.below(pool.len() as u64) as usize));
    }
    selected
}

fn draw_by_rejection(random: &mut PythonRandom, space: u64, size: u64) -> Vec<u64> {
    let mut seen = HashSet::new();
    let mut selected = Vec::new();
    while (selected.len() as u64) < size {
        let value = random.below(space);
        if seen.insert(value) {
            selected.push(value);
        }
    }
    selected
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{assert_selected, vectors};
    use super::*;

    #[test]
    fn samples_match_the_vectors() {
        let cases = vectors("sample");
        assert_eq!(cases.len(), 13);
        for case in &cases {
            let number = |name: &str| case[name].as_u64();
            let selected = sample_range(
                number("total").unwrap(),
                number("task_space").unwrap(),
                case["seed"].as_str().unwrap(),
                number("subset_pct").unwrap() as u32,
                number("subset_count"),
            );
            assert_selected(case, &selected);
        }
    }

    #[test]
    fn environment_seeds_match_the_vectors() {
        let cases = vectors("affine_item_seed");
        assert_eq!(cases.len(), 3);
        for case in &cases {
            let seed = environment_seed(case["env"].as_str().unwrap(), case["task_id"].as_u64().unwrap());
            assert_eq!(u64::from(seed), case["seed"].as_u64().unwrap(), "{case}");
        }
    }

    /// From CPython 3, `random.Random(int(sha256(b"s:b").hexdigest()[:16], 16)).sample(range(space), k)`, on both sides
    /// of the pool limit.
    #[test]
    fn both_ways_of_drawing_match_cpython() {
        assert_eq!(sample_range(22, 21, "s:b", 100, Some(5)), [4, 10, 16, 17, 6]);
        assert_eq!(sample_range(23, 22, "s:b", 100, Some(5)), [4, 10, 16, 17, 6]);
        assert_eq!(sample_range(86, 85, "s:b", 100, Some(6)), [19, 41, 64, 68, 26, 61]);
        assert_eq!(sample_range(87, 86, "s:b", 100, Some(6)), [19, 41, 64, 68, 26, 61]);
        assert_eq!(sample_range(2, 1, "s:b", 100, Some(1)), [0]);
        assert_eq!(
            sample_range(41, 40, "s:b", 100, Some(40)),
            [
                9, 20, 32, 34, 13, 30, 12, 6, 35, 33, 21, 38, 15, 5, 27, 4, 2, 14, 24, 10, 8, 39, 31, 29, 37,
                23, 19, 36, 11, 22, 28, 17, 1, 3, 26, 7, 25, 18, 16, 0
            ]
        );
        assert_eq!(
            sample_range(31, 30, "s:b", 100, Some(30)),
            [
                4, 10, 16, 17, 6, 15, 25, 3, 23, 12, 24, 5, 19, 29, 2, 7, 26, 18, 27, 28, 11, 21, 13, 8, 1,
                20, 9, 0, 14, 22
            ]
        );
    }

    proptest! {
        #[test]
        fn numbers_are_distinct_and_within_the_space(
            total in 0u64..3000, space in 0u64..3000, pct in 0u32..=120, count in prop::option::of(0u64..4000),
            seed in ".{0,12}",
        ) {
            let selected = sample_range(total, space, &seed, pct, count);
            prop_assert!(selected.iter().all(|&number| number < space));
            prop_assert_eq!(selected.iter().collect::<HashSet<_>>().len(), selected.len());
            let asked = count.unwrap_or_else(|| percent_of(total, pct));
            prop_assert_eq!(selected.len() as u64, if space == 0 { 0 } else { asked.min(space).max(1) });
        }
    }
}
