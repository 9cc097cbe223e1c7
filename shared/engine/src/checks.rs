//! Checks of request bodies against lists of allowed fields.
//!
//! Each check rewrites the body: forced values are written, and the engine receives what was checked, serialized
//! again. Field names are compared exactly, although the engine ignores their case: other spellings are refused as
//! unknown.

mod build;
mod container;
mod exec;
mod fields;
mod host_config;
mod mounts;
mod network;
mod update;
mod values;
mod volume;

pub(crate) use self::build::check_build;
pub(crate) use self::container::check_create;
pub(crate) use self::exec::{check_exec, check_exec_start};
pub(crate) use self::fields::is_unset;
pub(crate) use self::network::{
    INTERFACE_OPTION, check_connect, check_disconnect, check_network, default_network, name_interface,
};
pub(crate) use self::update::check_update;
pub(crate) use self::volume::check_volume;
