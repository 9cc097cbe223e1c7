//! function planner
