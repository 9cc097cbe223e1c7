//! Roles of `template.yaml`, with their resources named as on the embedded stack.

use std::collections::BTreeMap;

use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

/// Names on the embedded stack of the template's resources.
const NAMES: [(&str, &str); 12] = [
    ("Table", "table/bench-runner"),
    ("CredentialsTable", "table/bench-runner-credentials"),
    ("CredentialsKey", super::KMS_KEY),
    ("Bucket", "bench-runner"),
    ("PlansQueue", "bench-plans"),
    ("PlansDeadQueue", "bench-plans-dead"),
    ("ItemsQueue", "bench-items"),
    ("ItemsDeadQueue", "bench-items-dead"),
    ("TurnsQueue", "bench-turns"),
    ("TurnsDeadQueue", "bench-turns-dead"),
    ("FinishesQueue", "bench-finishes"),
    ("FinishesDeadQueue", "bench-finishes-dead"),
];

/// Permission of a role: an action and a resource, which may end in `*`.
pub(super) type Allowed = (String, String);

/// Returns the permissions of each function, by its name without the stack's.
pub(super) fn roles(text: &str) -> BTreeMap<String, Vec<Allowed>> {
    let documents = Yaml::load_from_str(text).expect("the template is YAML");
    let template = to_json(&documents[0]);
    let resources = template["Resources"].as_object().expect("the template has resources");
    let functions = resources.iter().filter(|(_, resource)| resource["Type"] == "AWS::Serverless::Function");
    let roles = functions.map(|(id, function)| {
        let properties = &function["Properties"];
        let name = resource_name(&properties["FunctionName"]);
        let name = name.strip_prefix("${AWS::StackName}-").unwrap_or_else(|| panic!("{id} is called {name}"));
        let role = properties["Role"]["Fn::GetAtt"].as_str().and_then(|role| role.strip_suffix(".Arn"));
        let role = &resources[role.unwrap_or_else(|| panic!("{id} has no role of its own"))]["Properties"];
        assert!(role.get("ManagedPolicyArns").is_none(), "{id}: its role's policies are written out");
        let statements = role["Policies"].as_array().into_iter().flatten();
        let statements = statements.flat_map(|policy| as_list(&policy["PolicyDocument"]["Statement"]));
        (name.to_owned(), statements.flat_map(|statement| allowed_permissions(id, statement)).collect())
    });
    roles.collect()
}

fn allowed_permissions(id: &str, statement: &Value) -> Vec<Allowed> {
    assert_eq!(statement["Effect"], "Allow", "{id}: {statement}");
    for odd in ["NotAction", "NotResource"] {
        assert!(statement.get(odd).is_none(), "{id}: {odd} allows what nobody named");
    }
    let mut allowed = Vec::new();
    for action in as_list(&statement["Action"]) {
        let action = action.as_str().expect("an action is a text");
        assert!(!action.contains('*'), "{id}: {action} is more than one action");
        let resources = as_list(&statement["Resource"]).into_iter();
        allowed.extend(resources.map(|resource| (action.to_owned(), resource_name(resource))));
    }
    allowed
}

fn as_list(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |values| values.iter().collect())
}

/// Returns a name or ARN with the embedded stack's names. References without such a name keep the template's.
fn resource_name(value: &Value) -> String {
    let name = |id: &str| {
        let id = id.strip_suffix(".Arn").unwrap_or(id);
        let known = NAMES.iter().find(|(known, _)| *known == id);
        known.map_or_else(|| format!("${{{id}}}"), |(_, name)| (*name).to_owned())
    };
    if let Some(id) = value["Fn::GetAtt"].as_str().or(value["Ref"].as_str()) {
        return name(id);
    }
    let mut text =
        value["Fn::Sub"].as_str().or(value.as_str()).unwrap_or_else(|| panic!("{value}")).to_owned();
    for (id, _) in NAMES {
        text = text.replace(&format!("${{{id}.Arn}}"), &name(id)).replace(&format!("${{{id}}}"), &name(id));
    }
    text
}

/// Converts YAML to JSON, with CloudFormation's functions in their long form.
fn to_json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::String(text)) => Value::from(&**text),
        Yaml::Value(Scalar::Integer(number)) => Value::from(*number),
        Yaml::Value(Scalar::Boolean(is)) => Value::from(*is),
        Yaml::Value(Scalar::FloatingPoint(number)) => Value::from(number.into_inner()),
        Yaml::Sequence(values) => values.iter().map(to_json).collect(),
        Yaml::Mapping(members) => {
            let member = |(key, value): (&Yaml<'_>, &Yaml<'_>)| match to_json(key) {
                Value::String(key) => (key, to_json(value)),
                other => (other.to_string(), to_json(value)),
            };
            members.iter().map(member).collect::<Map<_, _>>().into()
        }
        Yaml::Tagged(tag, value) => {
            let function = match tag.suffix.as_str() {
                short @ ("Ref" | "Condition") => short.to_owned(),
                other => format!("Fn::{other}"),
            };
            json!({ function: to_json(value) })
        }
        _ => Value::Null,
    }
}
