//! function scheduler
