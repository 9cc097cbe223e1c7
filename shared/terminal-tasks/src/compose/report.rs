//! Parts of a checked project that the runner needs.

use std::collections::BTreeMap;

/// Checked project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectPlan {
    /// Services by name.
    pub services: BTreeMap<String, ServicePlan>,
}

impl ProjectPlan {
    /// Iterates over the images that must exist or be pulled: those that no service builds.
    pub fn pulled_images(&self) -> impl Iterator<Item = &str> {
        self.services
            .values()
            .filter(|service| service.build.is_none())
            .filter_map(|service| service.image.as_deref())
    }
}

/// Checked service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServicePlan {
    /// Name of its image.
    pub image: Option<String>,
    /// Build of its image.
    pub build: Option<BuildPlan>,
    /// Name of its container, if the task sets one.
    pub container_name: Option<String>,
}

/// Checked build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildPlan {
    /// Absolute path of the folder.
    pub context: String,
    /// Path of the Dockerfile, relative to the folder or absolute.
    pub dockerfile: Option<String>,
}
