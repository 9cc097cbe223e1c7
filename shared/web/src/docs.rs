//! An OpenAPI document as an HTML page.

use std::collections::BTreeMap;
use std::fmt::Write;

use axum::response::Response;
use serde_json::Value;

use crate::page::{escape, page};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];
/// Maximum depth of nested schemas in an example.
const EXAMPLE_DEPTH_MAX: usize = 4;

/// Renders an OpenAPI 3.1 document as a page: operations by tag with parameters, bodies and responses, an
/// example call for each, and the schemas.
pub fn docs_page(document: &Value) -> Response {
    let title = text(document, "/info/title");
    page(title, &content(document), None)
}

fn content(document: &Value) -> String {
    let mut html = format!(
        "<h1>{} <span class=\"dim\">{}</span></h1>\n{}<p><a href=\"/openapi.json\">openapi.json</a> · <a href=\"/\">home</a></p>\n",
        escape(text(document, "/info/title")),
        escape(text(document, "/info/version")),
        paragraphs(text(document, "/info/description")),
    );
    let groups = groups(document);
    html.push_str("<nav><ul>");
    for name in groups.keys() {
        let _ = write!(html, "<li><a href=\"#{0}\">{0}</a></li>", escape(name));
    }
    html.push_str("<li><a href=\"#schemas\">schemas</a></li></ul></nav>\n");
    for (name, operations) in &groups {
        let _ = writeln!(html, "<h2 id=\"{0}\">{0}</h2>", escape(name));
        for (path, method, operation) in operations {
            html.push_str(&operation_html(document, path, method, operation));
        }
    }
    html.push_str("<h2 id=\"schemas\">schemas</h2>\n");
    for (name, schema) in object(document, "/components/schemas") {
        let _ = writeln!(
            html,
            "<details id=\"schema-{0}\"><summary><code>{0}</code></summary><div>{1}{2}</div></details>",
            escape(name),
            paragraphs(text(schema, "/description")),
            fields_html(schema),
        );
    }
    html
}

type Operation<'a> = (&'a str, &'a str, &'a Value);

/// Groups operations by their first tag.
fn groups(document: &Value) -> BTreeMap<&str, Vec<Operation<'_>>> {
    let mut groups: BTreeMap<&str, Vec<Operation<'_>>> = BTreeMap::new();
    for (path, methods) in object(document, "/paths") {
        for method in METHODS {
            if let Some(operation) = methods.get(method) {
                let tag = operation.pointer("/tags/0").and_then(Value::as_str).unwrap_or("other");
                groups.entry(tag).or_default().push((path, method, operation));
            }
        }
    }
    groups
}

fn operation_html(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let mut html = format!(
        "<details><summary><span class=\"method {method}\">{}</span> <code>{}</code> <span class=\"dim\">{}</span></summary><div>\n",
        method.to_uppercase(),
        escape(path),
        escape(text(operation, "/summary")),
    );
    html.push_str(&paragraphs(text(operation, "/description")));
    let parameters =
        operation.get("parameters").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if !parameters.is_empty() {
        html.push_str("<h3>Parameters</h3><div class=\"scroll\"><table><tr><th>name</th><th>in</th><th>type</th><th></th></tr>");
        for parameter in parameters {
            let _ = write!(
                html,
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(text(parameter, "/name")),
                escape(text(parameter, "/in")),
                type_html(parameter.get("schema").unwrap_or(&Value::Null)),
                escape(text(parameter, "/description")),
            );
        }
        html.push_str("</table></div>");
    }
    let body = operation.pointer("/requestBody/content/application~1json/schema");
    if let Some(schema) = body {
        let _ = write!(html, "<h3>Body</h3><p>{}</p>", type_html(schema));
    }
    let responses = operation.get("responses").and_then(Value::as_object);
    html.push_str("<h3>Responses</h3><div class=\"scroll\"><table>");
    for (status, response) in responses.into_iter().flatten() {
        let kinds = response.get("content").and_then(Value::as_object);
        let kinds: Vec<String> = kinds
            .into_iter()
            .flatten()
            .map(|(kind, media)| match media.get("schema") {
                Some(schema) if kind == "application/json" => type_html(schema),
                _ => format!("<code>{}</code>", escape(kind)),
            })
            .collect();
        let _ = write!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            escape(status),
            kinds.join(", "),
            escape(text(response, "/description")),
        );
    }
    html.push_str("</table></div>");
    let _ = writeln!(
        html,
        "<h3>Example</h3><pre>{}</pre></div></details>",
        escape(&example_call(document, path, method, operation))
    );
    html
}

/// Returns a `curl` command for an operation.
fn example_call(document: &Value, path: &str, method: &str, operation: &Value) -> String {
    let path = path.replace('{', "$").replace('}', "").to_owned();
    let mut call = match method {
        "get" => format!("curl \"$SERVER{path}\""),
        method => format!("curl -X {} \"$SERVER{path}\"", method.to_uppercase()),
    };
    let schemes: Vec<&str> = operation
        .get("security")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .flat_map(|scheme| scheme.keys().map(String::as_str))
        .collect();
    if schemes.contains(&"key") {
        call.push_str(" \\\n  -H \"Authorization: Bearer $KEY\"");
    } else if schemes.contains(&"admin") {
        call.push_str(" \\\n  -H \"X-Admin-Secret: $ADMIN_SECRET\"");
    }
    if let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") {
        let example = resolve(document, schema).get("example").cloned();
        let example = example.unwrap_or_else(|| example_value(document, schema, 0));
        let _ = write!(call, " \\\n  -H \"Content-Type: application/json\" \\\n  -d '{example}'");
    } else if operation.pointer("/requestBody/content/multipart~1form-data").is_some() {
        call.push_str(" \\\n  -F file=@results.zip");
    }
    call
}

fn example_value(document: &Value, schema: &Value, depth: usize) -> Value {
    let schema = resolve(document, schema);
    if depth > EXAMPLE_DEPTH_MAX {
        return Value::Null;
    }
    if let Some(given) = schema.get("example").or_else(|| schema.get("default")) {
        return given.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().find_map(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let example = |(name, schema): (&String, &Value)| {
                (name.clone(), example_value(document, schema, depth + 1))
            };
            Value::Object(properties.into_iter().flatten().map(example).collect())
        }
        Some("array") => Value::Array(Vec::new()),
        Some("string") => Value::String("…".to_owned()),
        Some("integer" | "number") => Value::from(0),
        Some("boolean") => Value::Bool(false),
        _ => Value::Null,
    }
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    reference.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// Renders a schema's fields as a table.
fn fields_html(schema: &Value) -> String {
    let mut properties: Vec<(&String, &Value)> =
        schema.get("properties").and_then(Value::as_object).into_iter().flatten().collect();
    for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        properties.extend(part.get("properties").and_then(Value::as_object).into_iter().flatten());
    }
    if properties.is_empty() {
        return format!("<p>{}</p>", type_html(schema));
    }
    let mut html = "<div class=\"scroll\"><table>".to_owned();
    for (name, field) in properties {
        let _ = write!(
            html,
            "<tr><td><code>{}</code></td><td>{}</td><td>{}</td></tr>",
            escape(name),
            type_html(field),
            escape(text(field, "/description")),
        );
    }
    html.push_str("</table></div>");
    html
}

/// Renders the type of a schema in a few words, with links to named schemas.
fn type_html(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        let name = escape(reference.rsplit('/').next().unwrap_or_default());
        return format!("<a href=\"#schema-{name}\">{name}</a>");
    }
    for choice in ["oneOf", "anyOf", "allOf"] {
        if let Some(parts) = schema.get(choice).and_then(Value::as_array) {
            return parts.iter().map(type_html).collect::<Vec<_>>().join(" | ");
        }
    }
    let kinds = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        Some(kind) => kind.as_str().into_iter().collect(),
        None => vec!["any"],
    };
    let named: Vec<String> = kinds
        .into_iter()
        .map(|kind| match (kind, schema.get("items"), schema.get("additionalProperties")) {
            ("array", Some(items), _) => format!("list of {}", type_html(items)),
            ("object", _, Some(values)) if values.is_object() => format!("map to {}", type_html(values)),
            _ => escape(kind),
        })
        .collect();
    named.join(" | ")
}

fn paragraphs(text: &str) -> String {
    text.split("\n\n")
        .map(str::trim)
        .filter(|paragraph| !paragraph.is_empty())
        .map(|paragraph| format!("<p>{}</p>\n", escape(paragraph)))
        .collect()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn object<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_parameters_schemas_and_examples_are_shown_and_escaped() {
        let html = content(&json!({
            "info": { "title": "T", "version": "1", "description": "First.\n\nSecond <b>." },
            "paths": { "/api/runs/{id}": { "post": {
                "tags": ["runs"], "summary": "Do <it>", "security": [{ "key": [] }],
                "parameters": [{ "name": "id", "in": "path", "schema": { "type": "string" } }],
                "requestBody": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Order" } } } },
                "responses": { "201": { "description": "Made",
                    "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Order" } } } } },
            } } },
            "components": { "schemas": { "Order": { "type": "object", "properties": {
                "model_id": { "type": "string", "example": "oracle" },
                "items": { "type": ["array", "null"], "items": { "type": "string" } },
            } } } },
        }));
        for expected in [
            "Do &lt;it&gt;",
            "<p>Second &lt;b&gt;.</p>",
            "<a href=\"#schema-Order\">Order</a>",
            "list of string | null",
            "curl -X POST &quot;$SERVER/api/runs/$id&quot;",
            "Authorization: Bearer $KEY",
            "&quot;model_id&quot;:&quot;oracle&quot;",
        ] {
            assert!(html.contains(expected), "{expected} in {html}");
        }
    }

    #[test]
    fn any_json_is_rendered() {
        for document in
            [json!(null), json!([]), json!({ "paths": [], "info": 3 }), json!({ "paths": { "/x": 1 } })]
        {
            assert!(content(&document).contains("<h1>"));
        }
    }
}
