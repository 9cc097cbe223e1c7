//! function worker
