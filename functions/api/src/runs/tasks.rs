//! Terminal tasks in orders of runs: fields, agents, datasets, and who may see tasks.

mod agent;
mod dataset;
mod fields;
mod selection;
mod visible;

pub(crate) use agent::{agent_options, find_agent, model_of};
pub(crate) use dataset::import;
pub(crate) use fields::{OrderedTasks, benchmark_with_agent, take_task_fields};
pub(crate) use selection::{outline_tasks, select_tasks, task_benchmarks};
pub(crate) use visible::{task_error, task_not_found, uploader, visible_task, visible_tasks};
