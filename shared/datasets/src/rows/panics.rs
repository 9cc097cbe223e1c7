//! Conversion of panics in decoders to errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static SUPPRESSED: Cell<bool> = const { Cell::new(false) };
}

static INSTALL_HOOK: Once = Once::new();

/// Runs `work`. If it panics, returns the panic message instead of printing it.
///
/// In some places the parquet crate asserts what it expects of a file instead of returning an
/// error. The panic hook that suppresses the output doesn't affect other threads.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    INSTALL_HOOK.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !SUPPRESSED.with(Cell::get) {
                hook(info);
            }
        }));
    });
    let before = SUPPRESSED.with(|suppressed| suppressed.replace(true));
    let result = catch_unwind(AssertUnwindSafe(work));
    SUPPRESSED.with(|suppressed| suppressed.set(before));
    result.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "it cannot be decoded".into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(catch_panic(|| 1), Ok(1));
        assert_eq!(catch_panic(|| -> u8 { panic!("no {}", 7) }), Err("no 7".to_owned()));
        assert!(!SUPPRESSED.with(Cell::get));
    }
}
