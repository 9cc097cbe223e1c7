//! function exports
