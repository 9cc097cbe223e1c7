//! Order of a row's options: reproduces the random draws of both official scripts.
//!
//! Both scripts seed Python's generator with 0 and draw once per row of the file, so the n-th draw gives an order. The
//! draws are made once and cached.

use std::sync::OnceLock;

use bench_domain::sampling::PythonRandom;

/// For each displayed option, its index in the script's list of the row's options.
pub(super) type Order = [u8; 4];

/// Rows of the official file. simple-evals processes all of them before it begins the next sample.
const ROWS: u64 = 198;
/// Number of cached draws. The sequence repeats after them; only files with far more rows than the official one reach
/// that.
const DRAWS: usize = 1 << 16;
/// Seed of both scripts.
const SEED: u64 = 0;

/// Returns the order in which simple-evals shows the right answer and the three wrong ones in one sample of a row. The
/// computation assumes a file of [`ROWS`] rows, so that longer and partial files get the same orders.
pub(super) fn simple_evals(row: u64, sample: u32) -> Order {
    static ORDERS: OnceLock<Vec<Order>> = OnceLock::new();
    order_at(
        ORDERS.get_or_init(|| draws(sample_order)),
        u64::from(sample).saturating_mul(ROWS).saturating_add(row),
    )
}

/// Returns the order in which the authors show the three wrong answers and the right one of a row.
pub(super) fn authors(row: u64) -> Order {
    static ORDERS: OnceLock<Vec<Order>> = OnceLock::new();
    order_at(ORDERS.get_or_init(|| draws(shuffle_order)), row)
}

const AS_LISTED: Order = [0, 1, 2, 3];

fn order_at(orders: &[Order], number: u64) -> Order {
    let at = usize::try_from(number % DRAWS as u64).unwrap_or_default();
    orders.get(at).copied().unwrap_or(AS_LISTED)
}

fn draws(draw: fn(&mut PythonRandom) -> Order) -> Vec<Order> {
    let mut random = PythonRandom::new(SEED);
    (0..DRAWS).map(|_| draw(&mut random)).collect()
}

/// `random.shuffle([0, 1, 2, 3])`.
fn shuffle_order(random: &mut PythonRandom) -> Order {
    let mut order = AS_LISTED;
    random.shuffle(&mut order);
    order
}

/// `random.sample(range(4), 4)`: each draw takes one element from the pool, whose last element moves to the free
/// position.
fn sample_order(random: &mut PythonRandom) -> Order {
    let mut pool = AS_LISTED.to_vec();
    std::array::from_fn(|_| {
        let at = usize::try_from(random.below(pool.len() as u64)).unwrap_or_default();
        pool.swap_remove(at)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn vector(protocol: &str) -> Vec<Order> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/gpqa_permutations.json");
        let all: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        serde_json::from_value(all[protocol]["permutations"].clone()).unwrap()
    }

    #[test]
    fn simple_evals_orders_match_the_official_script() {
        let orders = vector("simple_evals_repeats4");
        assert_eq!(orders.len(), 4 * 198);
        for (number, order) in (0..).zip(orders) {
            let (row, sample) = (number % 198, u32::try_from(number / 198).unwrap());
            assert_eq!(simple_evals(row, sample), order, "row {row}, sample {sample}");
        }
    }

    #[test]
    fn authors_orders_match_the_official_script() {
        let orders = vector("gpqa_repo_seed0");
        assert_eq!(orders.len(), 198);
        for (row, order) in (0..).zip(orders) {
            assert_eq!(authors(row), order, "row {row}");
        }
    }

    #[test]
    fn every_number_has_an_order() {
        for row in [0, 197, 198, 65_535, 65_536, u64::MAX] {
            for sample in [0, 7, u32::MAX] {
                for mut order in [simple_evals(row, sample), authors(row)] {
                    order.sort_unstable();
                    assert_eq!(order, AS_LISTED);
                }
            }
        }
    }
}
