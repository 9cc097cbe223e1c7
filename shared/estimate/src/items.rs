//! Number of items that an order will ask, as far as it is known without the dataset.

use bench_benchmarks::{Benchmark, Options};
use bench_domain::Subset;
use bench_domain::sampling::percent_of;

/// Source of the items of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemSource {
    /// The published dataset.
    Hub,
    /// The demo data bundled with the program.
    Demo,
    /// A file of the user.
    Own,
}

/// Returns the number of items of a benchmark in an order; `None` if it isn't known. `named` is the number of items that
/// the order names, or 0.
pub fn known_items(
    benchmark: &dyn Benchmark,
    options: &Options,
    source: ItemSource,
    named: usize,
    subset: &Subset,
) -> Option<u64> {
    if named > 0 {
        return Some(named as u64);
    }
    let all = match source {
        ItemSource::Demo => bench_benchmarks::demo_items(benchmark, options),
        ItemSource::Hub => benchmark.spec().items,
        ItemSource::Own => 0,
    };
    if all == 0 {
        return subset.count;
    }
    Some(match subset.count {
        Some(count) => count.min(all),
        None => percent_of(all, subset.pct),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_subset_follows_from_its_dataset() {
        let benchmark = bench_benchmarks::find("mmlu_pro").unwrap();
        let options = Options::new();
        let all = benchmark.spec().items;
        let items = |source, named, subset: &Subset| known_items(benchmark, &options, source, named, subset);
        let (whole, tenth) = (Subset::default(), Subset { pct: 10, ..Subset::default() });
        let some = Subset { count: Some(50), ..Subset::default() };
        assert_eq!(items(ItemSource::Hub, 0, &whole), Some(all));
        assert_eq!(items(ItemSource::Hub, 0, &tenth), Some(all / 10));
        assert_eq!(items(ItemSource::Hub, 3, &tenth), Some(3));
        assert_eq!(items(ItemSource::Own, 0, &whole), None);
        assert_eq!(items(ItemSource::Own, 0, &some), Some(50));
        assert!(items(ItemSource::Demo, 0, &whole).unwrap() < all);
    }
}
