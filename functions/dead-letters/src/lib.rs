//! function dead-letters
