//! function api
