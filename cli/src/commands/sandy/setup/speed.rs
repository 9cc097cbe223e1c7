//! Measures the speed of sandboxes by a fixed program of each language.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_code_tasks::Language;
use bench_sandbox::isolation::{Isolation, Limits};
use bench_stack::sandboxes::speed::{HostSpeed, fixed_program};

use super::in_sandbox;

/// Number of measurements of a language. The shortest counts.
const REPEATS: u32 = 3;
/// Maximum time of a fixed program.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Returns the time of the fixed program of each language. Languages whose program fails are left out.
pub(in crate::commands) async fn measure(
    isolation: &Arc<dyn Isolation>,
    limits: &Limits,
    languages: impl IntoIterator<Item = Language>,
) -> anyhow::Result<HostSpeed> {
    let mut speed = HostSpeed::new();
    for language in languages {
        let mut best: Option<Duration> = None;
        for _ in 0..REPEATS {
            let sandbox = isolation.create(limits).await?;
            let began = Instant::now();
            let done = sandbox.exec(&in_sandbox(fixed_program(language).to_owned(), TIMEOUT)).await;
            let elapsed = began.elapsed();
            sandbox.end().await;
            let done = done?;
            if done.exit_code == Some(0) && String::from_utf8_lossy(&done.stdout).trim() == "ok" {
                best = Some(best.map_or(elapsed, |best| best.min(elapsed)));
            }
        }
        if let Some(best) = best {
            let ms = u64::try_from(best.as_millis()).unwrap_or(u64::MAX).max(1);
            speed.insert(language.as_str().to_owned(), ms);
        }
    }
    Ok(speed)
}
