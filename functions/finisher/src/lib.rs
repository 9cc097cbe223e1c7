//! function finisher
