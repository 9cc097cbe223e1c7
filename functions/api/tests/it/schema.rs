//! Comparison of responses with the schemas of the OpenAPI document.

use serde_json::{Map, Value};

/// Asserts that a value fits the schema of this name: it has all its fields and no others, and every value has the
/// described type. A field may be missing if the schema neither requires it nor describes it as null.
pub(crate) fn assert_fits(document: &Value, name: &str, value: &Value) {
    let schema = &document["components"]["schemas"][name];
    assert!(schema.is_object(), "the document has no schema {name}");
    assert_fits_schema(document, schema, value, name);
}

/// Asserts that a value fits a schema of the document, as [`assert_fits`] does.
pub(crate) fn assert_fits_schema(document: &Value, schema: &Value, value: &Value, name: &str) {
    if let Err(problem) = check(document, schema, value, name) {
        panic!("{problem}");
    }
}

fn check(document: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(&reference[1..]).ok_or(format!("{at}: {reference} doesn't exist"))?;
        return check(document, target, value, at);
    }
    if let Some(choices) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        let problems: Vec<_> =
            choices.iter().filter_map(|choice| check(document, choice, value, at).err()).collect();
        return if problems.len() < choices.len() { Ok(()) } else { Err(problems.join("; or ")) };
    }
    if let Some(values) = schema["enum"].as_array()
        && !values.contains(value)
    {
        return Err(format!("{at}: {value} isn't one of {values:?}"));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let (kinds, parts) = (kinds(value), schema["allOf"].as_array());
    if !types.is_empty() && !types.iter().any(|name| kinds.contains(name)) {
        return Err(format!("{at}: {value} isn't {}", types.join(" or ")));
    }
    if !value.is_object() {
        parts.into_iter().flatten().try_for_each(|part| check(document, part, value, at))?;
    }
    match value {
        Value::Array(values) if schema["items"].is_object() => {
            values.iter().try_for_each(|value| check(document, &schema["items"], value, &format!("{at}[]")))
        }
        Value::Object(fields) if parts.is_some() || schema["properties"].is_object() => {
            check_fields(document, schema, fields, at)
        }
        Value::Object(fields) if schema["additionalProperties"].is_object() => {
            let others = &schema["additionalProperties"];
            fields
                .iter()
                .try_for_each(|(name, value)| check(document, others, value, &format!("{at}.{name}")))
        }
        _ => Ok(()),
    }
}

fn check_fields(
    document: &Value,
    schema: &Value,
    fields: &Map<String, Value>,
    at: &str,
) -> Result<(), String> {
    let (mut described, mut required, mut others) = (Map::new(), Vec::new(), None);
    collect(document, schema, &mut described, &mut required, &mut others);
    for (name, value) in fields {
        let at = format!("{at}.{name}");
        let schema = described.get(name).or(others.as_ref()).ok_or(format!("{at} isn't described"))?;
        check(document, schema, value, &at)?;
    }
    let may_be_null = |schema: &Value| check(document, schema, &Value::Null, at).is_ok();
    let missing = described.iter().find(|(name, schema)| {
        !fields.contains_key(*name) && (required.contains(name) || may_be_null(schema))
    });
    missing.map_or(Ok(()), |(name, _)| Err(format!("{at}.{name} is missing")))
}

/// Collects the fields of an object with those of the parts that it is made of.
fn collect(
    document: &Value,
    schema: &Value,
    described: &mut Map<String, Value>,
    required: &mut Vec<String>,
    others: &mut Option<Value>,
) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(&reference[1..]).unwrap_or(&Value::Null);
        return collect(document, target, described, required, others);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        collect(document, part, described, required, others);
    }
    described.extend(schema["properties"].as_object().cloned().unwrap_or_default());
    required.extend(
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned),
    );
    if !schema["additionalProperties"].is_null() {
        *others = Some(schema["additionalProperties"].clone());
    }
}

/// Returns the names of the types that a value has.
fn kinds(value: &Value) -> &'static [&'static str] {
    match value {
        Value::Null => &["null"],
        Value::Bool(_) => &["boolean"],
        Value::Number(number) if number.is_f64() => &["number"],
        Value::Number(_) => &["number", "integer"],
        Value::String(_) => &["string"],
        Value::Array(_) => &["array"],
        Value::Object(_) => &["object"],
    }
}
