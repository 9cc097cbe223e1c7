//! Scenarios that must hold for all users of a stack.

mod access;
mod agents;
mod catalog;
mod dead_letters;
mod exports;
mod inputs;
mod keys;
mod maintenance;
mod ownership;
mod runs;
mod schedules;
mod tasks;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::target::Target;

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One scenario.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// True if the scenario is for a server in maintenance. On such a server, only these scenarios run.
    pub(crate) in_maintenance: bool,
    pub(crate) run: fn(Arc<Target>) -> Running,
}

macro_rules! scenarios {
    ($in_maintenance:literal: $($module:ident::$name:ident,)*) => {
        [$(Scenario {
            name: concat!(stringify!($module), "::", stringify!($name)),
            in_maintenance: $in_maintenance,
            run: |target| Box::pin(async move { $module::$name(&target).await }),
        },)*]
    };
}

/// Returns all scenarios.
pub(crate) fn all() -> Vec<Scenario> {
    let mut all = Vec::from(scenarios![false:
        catalog::health,
        catalog::benchmarks_and_models,
        catalog::document,
        runs::followed_to_success,
        runs::repeated_order_makes_one_run,
        runs::canceled_requeued_and_deleted,
        runs::named_tagged_and_found,
        runs::compared,
        runs::judged_again,
        runs::code_is_run_in_sandboxes,
        agents::conversation_is_held_by_two_models_with_a_key_each,
        agents::gold_actions_and_patches_need_no_model,
        keys::callers_key_is_used_and_never_stored_in_clear,
        keys::key_that_is_refused_fails_the_run,
        ownership::others_are_refused,
        ownership::copied_key_is_ignored,
        access::only_known_callers_order,
        access::tokens_order_on_the_operators_key_until_they_are_revoked,
        exports::table_and_archive_are_served_and_verified,
        exports::what_is_not_over_is_not_exported,
        exports::uploaded_archive_is_verified,
        schedules::planned_time_makes_one_run_on_the_schedules_own_key,
        tasks::uploaded_ordered_and_removed,
        inputs::errors_of_bad_requests_name_the_problem,
        maintenance::open_runs_continue,
        dead_letters::unreadable_messages_become_errors,
        dead_letters::sample_that_no_worker_can_handle_becomes_an_error,
        dead_letters::run_that_no_planner_can_plan_fails,
    ]);
    all.extend(scenarios![true: maintenance::new_runs_are_refused,]);
    all
}
