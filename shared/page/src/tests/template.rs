//! Compares the page on CloudFront, as in `template.yaml`, with the page that this crate serves.

use std::io::Write;
use std::process::{Command, Stdio};

use saphyr::{LoadableYamlNode, Yaml};
use serde_json::Value;

use super::cases;
use crate::{headers, routes};

const TEMPLATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../template.yaml");

/// Returns a part of the properties of a resource.
fn property<T>(resource: &str, path: &[&str], read: impl FnOnce(&Yaml<'_>) -> T) -> T {
    let template = std::fs::read_to_string(TEMPLATE).unwrap();
    let documents = Yaml::load_from_str(&template).unwrap();
    let mut part = &documents[0];
    for key in ["Resources", resource, "Properties"].iter().chain(path) {
        part = part.as_mapping_get(key).unwrap_or_else(|| panic!("{resource}: no {key}"));
    }
    read(part)
}

fn text(yaml: &Yaml<'_>) -> String {
    let plain = match yaml {
        // `!Sub`
        Yaml::Tagged(_, value) => value,
        value => value,
    };
    plain.as_str().unwrap_or_else(|| panic!("{yaml:?} is not a text")).to_owned()
}

/// CloudFront sends with every file what `bench serve` sends with documents, and allows requests to the bucket.
#[test]
fn cloudfront_sends_the_headers_of_documents() {
    let config = ["ResponseHeadersPolicyConfig"];
    let security = |kind: &str, name: &str| {
        property("PageHeaders", &[config[0], "SecurityHeadersConfig", kind, name], text)
    };
    // The deployed page also sends large archives to the bucket.
    let policy = security("ContentSecurityPolicy", "ContentSecurityPolicy");
    let policy = policy.replace(" https://${Bucket.RegionalDomainName};", ";");
    let mut sent = vec![
        ("content-security-policy".to_owned(), policy),
        ("x-frame-options".to_owned(), security("FrameOptions", "FrameOption")),
        ("referrer-policy".to_owned(), security("ReferrerPolicy", "ReferrerPolicy")),
        // CloudFront's header has this fixed value.
        ("x-content-type-options".to_owned(), "nosniff".to_owned()),
    ];
    property("PageHeaders", &[config[0], "SecurityHeadersConfig", "ContentTypeOptions"], |_| ());
    property("PageHeaders", &[config[0], "CustomHeadersConfig", "Items"], |items| {
        for item in items.as_sequence().unwrap() {
            let field = |name| text(item.as_mapping_get(name).unwrap());
            sent.push((field("Header"), field("Value")));
        }
    });
    sent.sort();
    let served = headers::HEADERS.into_iter().chain(headers::DOCUMENT_HEADERS);
    let mut served: Vec<_> = served.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    served.sort();
    assert_eq!(sent, served);
}

/// Returns the code of the function that chooses between the page and the API.
fn function_code() -> String {
    property("PageRoutes", &["FunctionCode"], text)
}

#[test]
fn the_functions_table_is_the_files() {
    let code = function_code();
    let start = code.find("const api = [").expect("the function has a table") + "const api = ".len();
    let end = start + code[start..].find("];").unwrap() + 1;
    let table: Vec<String> = serde_json::from_str(&code[start..end]).expect("its table is JSON");
    assert_eq!(table, routes::api_paths(), "run infra/page_routes.py");
    assert!(code.len() < 10_000, "CloudFront accepts 10 KB");
}

/// Runs the function on the cases of `routes.json`, with Node.
#[test]
fn the_function_answers_as_the_table_says() {
    let table = cases();
    let code = function_code().replace("import cf from 'cloudfront';\n", "");
    let events: Vec<Value> = table
        .cases
        .iter()
        .map(|case| {
            let mut headers = serde_json::json!({ "host": { "value": "x.cloudfront.net" } });
            if let Some(accept) = &case.accept {
                headers["accept"] = serde_json::json!({ "value": accept });
            }
            serde_json::json!({ "request": { "method": "GET", "uri": case.path, "querystring": {}, "headers": headers } })
        })
        .collect();
    let script = format!(
        "let selected;\nconst cf = {{ selectRequestOriginById(id) {{ selected = id; }} }};\n{code}\n\
         const answers = {}.map((event) => {{ selected = 'page'; return [handler(event).uri, selected]; }});\n\
         console.log(JSON.stringify(answers));\n",
        serde_json::to_string(&events).unwrap()
    );
    let node = Command::new("node").arg("-").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut node = match node {
        Ok(node) => node,
        Err(error) => {
            // `make test` needs no Node; `make test-stack` runs the same cases with an interpreter of its own.
            println!("not run, because Node could not be started: {error}");
            return;
        }
    };
    node.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers: Vec<(String, String)> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answers.len(), table.cases.len());
    for (case, (uri, origin)) in table.cases.iter().zip(answers) {
        let wanted = match case.answer.as_str() {
            "page" | "missing" => (table.index.as_str(), "page"),
            "file" => (case.path.as_str(), "page"),
            "api" => (case.path.as_str(), "api"),
            other => panic!("{other}"),
        };
        assert_eq!((uri.as_str(), origin.as_str()), wanted, "{} {:?}", case.path, case.accept);
    }
}
