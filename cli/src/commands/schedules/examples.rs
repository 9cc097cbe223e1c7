//! Examples in the help of the subcommands.

pub(super) const LIST: &str = "\
Example:
  bench schedules list --server https://bench.example";
pub(super) const SHOW: &str = "\
Example:
  bench schedules show nightly";
pub(super) const EDIT: &str = "\
Examples:
  bench schedules edit nightly --cron '0 4 * * MON-FRI' --no-budget
  bench schedules edit nightly --unset temperature,max-tokens
      the benchmark's own settings again
  bench schedules edit nightly --benchmark mmlu_pro --subset-count 1000
      the next run has other items, so it is not compared with the one before";
pub(super) const ENABLE: &str = "\
Example:
  bench schedules enable nightly";
pub(super) const DISABLE: &str = "\
Example:
  bench schedules disable nightly";
pub(super) const REMOVE: &str = "\
Example:
  bench schedules remove nightly";
pub(super) const HISTORY: &str = "\
Example:
  bench schedules history nightly --limit 100";
pub(super) const RUN: &str = "\
Example:
  bench schedules run nightly";
