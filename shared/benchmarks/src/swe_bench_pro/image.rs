//! Names of images.

use super::row::Instance;
use crate::item_problem::ItemProblem;

/// Owner and name of the repository of images.
pub(super) const REPOSITORY: &str = "jefzda/sweap-images";
/// Platform of the images.
pub(super) const PLATFORM: &str = "linux/amd64";
/// Maximum length of a tag in characters.
const TAG_CHARS_MAX: usize = 128;
/// Instance whose tag keeps the whole name of its repository.
const WHOLE_NAME: &str = "instance_element-hq__element-web-ec0f940ef0e8e3b61078f145f34dc40d1938e6c5-vnan";

/// Returns the image of an instance: that of its dataset, otherwise the one by the rules.
pub(super) fn reference(instance: &Instance) -> Result<String, ItemProblem> {
    let own = instance.dockerhub_tag.trim();
    let tag = match own.is_empty() {
        true => tag_by_rules(&instance.instance_id, &instance.repo).ok_or_else(|| {
            ItemProblem::Content(format!("`{}` is no repository of the form OWNER/NAME", instance.repo))
        })?,
        false => own.to_owned(),
    };
    let is_reference = tag.contains([':', '/']);
    let reference = if is_reference { tag } else { format!("{REPOSITORY}:{tag}") };
    match is_valid(&reference) {
        true => Ok(reference),
        false => Err(ItemProblem::Content(format!("`{}` is no name of an image", shorten(&reference)))),
    }
}

/// Returns the tag of an instance's image by the official rules; `None` if the repository has no owner.
pub(super) fn tag_by_rules(instance_id: &str, repo: &str) -> Option<String> {
    let repo = repo.to_lowercase();
    let (owner, name) = repo.split_once('/').filter(|(_, name)| !name.contains('/'))?;
    let id = instance_id.replace("instance_", "");
    let shorter = || id.strip_suffix("-vnan").unwrap_or(&id).to_owned();
    let (name, id) = match () {
        () if instance_id == WHOLE_NAME => ("element-web", id),
        () if repo.contains("element-hq") && repo.contains("element-web") => ("element", shorter()),
        () => (name, shorter()),
    };
    Some(format!("{owner}.{name}-{id}").chars().take(TAG_CHARS_MAX).collect())
}

/// Returns true for texts that a container engine can't take for anything else than an image's name.
fn is_valid(reference: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    reference.starts_with(|c: char| c.is_ascii_alphanumeric())
        && reference.len() <= 400
        && reference.chars().all(is_plain)
        && !reference.contains("..")
}

fn shorten(text: &str) -> String {
    crate::grading::shorten(text, 160)
}
