//! Lists of containers, networks, volumes and images, of which a sandbox sees its own.
//!
//! The engine filters by label, and its answer is filtered again, because engines combine several filters differently.

use http::{Method, Response};
use serde_json::{Map, Value, json};

use super::Shared;
use super::dispatch::Call;
use super::forward::json_response;
use crate::client::AnyBody;
use crate::labels::Owner;
use crate::refusal::Refusal;
use crate::request::{Operation, Query};

impl Shared {
    /// Lists the sandbox's containers, networks or volumes.
    pub(super) async fn list(
        &self,
        mut call: Call,
        operation: Operation,
    ) -> Result<Response<AnyBody>, Refusal> {
        add_label_filter(&mut call.query, &self.rules.owner)?;
        let mut found = self.client.expect(Method::GET, &call.address(""), None).await?;
        let list = match operation {
            Operation::ListVolumes => &mut found["Volumes"],
            _ => &mut found,
        };
        self.keep_own(list);
        Ok(json_response(&found))
    }

    /// Lists the images that the sandbox may use.
    pub(super) async fn list_images(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        let mut found = self.client.expect(Method::GET, &call.address(""), None).await?;
        if let Some(images) = found.as_array_mut() {
            images.retain_mut(|image| {
                let is_own = self.rules.owner.owns(&image["Labels"]);
                self.hide_names(image);
                if !is_own && let Some(tags) = image["RepoTags"].as_array_mut() {
                    // Names of other sandboxes' images are known to those that are told them.
                    tags.retain(|tag| tag.as_str().is_some_and(|tag| !self.rules.images.is_own(tag)));
                }
                is_own || image["RepoTags"].as_array().is_some_and(|tags| !tags.is_empty())
            });
        }
        Ok(json_response(&found))
    }

    /// Removes the names of an image that the sandbox may not use.
    pub(super) fn hide_names(&self, image: &mut Value) {
        for field in ["RepoTags", "RepoDigests", "NamesHistory"] {
            if let Some(names) = image.get_mut(field).and_then(Value::as_array_mut) {
                names.retain(|name| name.as_str().is_some_and(|name| self.rules.images.is_usable(name)));
            }
        }
    }

    fn keep_own(&self, list: &mut Value) {
        match list {
            Value::Array(list) => list.retain(|entry| self.rules.owner.owns(&entry["Labels"])),
            other => *other = json!([]),
        }
    }
}

/// Adds the owner's label to the filters of a list.
pub(super) fn add_label_filter(query: &mut Query, owner: &Owner) -> Result<(), Refusal> {
    let refuse = || Refusal::Query {
        name: "filters".to_owned(),
        allowed: "a JSON object of lists of texts".to_owned(),
    };
    let text = query.get("filters").filter(|text| !text.is_empty()).unwrap_or("{}");
    let given: Map<String, Value> = serde_json::from_str(text).map_err(|_| refuse())?;
    let mut filters = Map::new();
    for (name, values) in given {
        // Clients write lists, or objects whose keys are the values.
        let values: Vec<Value> = match values {
            Value::Array(values) if values.iter().all(Value::is_string) => values,
            Value::Object(values) => values
                .into_iter()
                .filter(|(_, is_set)| *is_set != false)
                .map(|(value, _)| value.into())
                .collect(),
            _ => return Err(refuse()),
        };
        filters.insert(name, values.into());
    }
    let labels = filters.entry("label").or_insert_with(|| json!([]));
    if let Some(labels) = labels.as_array_mut() {
        labels.push(owner.label_filter().into());
    }
    query.set("filters", Value::Object(filters).to_string());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_added_to_both_forms_of_filters() {
        let owner = Owner::new("i1", "s1").unwrap();
        let filtered = |filters: &str| {
            let mut query = Query::default();
            query.set("filters", filters);
            add_label_filter(&mut query, &owner).map(|()| query.get("filters").unwrap().to_owned())
        };
        let own = "bench-runner.sandbox=s1";
        assert_eq!(filtered("").unwrap(), format!(r#"{{"label":["{own}"]}}"#));
        assert_eq!(filtered(r#"{"label":["a=b"]}"#).unwrap(), format!(r#"{{"label":["a=b","{own}"]}}"#));
        assert_eq!(
            filtered(r#"{"label":{"a":true,"b":false},"name":["x"]}"#).unwrap(),
            format!(r#"{{"label":["a","{own}"],"name":["x"]}}"#)
        );
        for filters in ["[]", "x", r#"{"label":"a"}"#, r#"{"label":[1]}"#] {
            assert!(filtered(filters).is_err(), "{filters}");
        }
    }
}
