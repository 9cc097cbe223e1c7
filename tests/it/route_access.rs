//! Access to every route of the API, against the table in docs/access.md.
//!
//! The test sends a real request to each route as each kind of caller. `BENCH_WRITE_ACCESS_TABLE=1` rewrites the table:
//! read the difference before you commit it.

mod requests;
mod site;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use http::Method;

use self::requests::{Content, Target, request_to};
use self::site::{Answer, Site, Who};
use crate::support::runtime;

/// Line before the table, and the line after it.
const BEGIN: &str = "<!-- routes -->\n";
const END: &str = "<!-- end of routes -->\n";

/// Routes that other callers may send although they change nothing that has an owner.
const OPEN_TO_ALL: [(&str, &str); 3] =
    [("POST", "/api/auth/logout"), ("POST", "/api/exports/verify"), ("POST", "/api/runs/estimate")];

type Route = (String, String);
type Table = BTreeMap<Route, Vec<u16>>;

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/access.md")
}

/// Returns every route of the API's description, except that of its page, which this server doesn't have.
fn routes() -> BTreeSet<Route> {
    let paths = bench_api::document()["paths"].as_object().unwrap();
    let methods = ["get", "post", "put", "patch", "delete"];
    paths
        .iter()
        .flat_map(|(path, operations)| {
            let named = methods.iter().filter(|method| operations.get(**method).is_some());
            named.map(|method| (method.to_uppercase(), path.clone()))
        })
        .collect()
}

fn read_table(text: &str) -> Table {
    let table = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END)).unwrap().0;
    let rows = table.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let (method, path) = cells[0].trim_matches('`').split_once(' ').unwrap();
        let statuses = cells[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        ((method.to_owned(), path.to_owned()), statuses)
    })
    .collect()
}

fn write_table(text: &str, table: &Table) -> String {
    let (head, rest) = text.split_once(BEGIN).unwrap();
    let (_, tail) = rest.split_once(END).unwrap();
    let mut lines = vec![
        format!("| route | {} |", Who::COLUMNS.map(Who::title).join(" | ")),
        format!("| --- |{}", " --- |".repeat(Who::COLUMNS.len())),
    ];
    // By path, as in the API's description.
    let mut rows: Vec<_> = table.iter().collect();
    rows.sort_by_key(|((method, path), _)| (path.clone(), method.clone()));
    for ((method, path), statuses) in rows {
        let cells: Vec<String> = statuses.iter().map(ToString::to_string).collect();
        lines.push(format!("| `{method} {path}` | {} |", cells.join(" | ")));
    }
    format!("{head}{BEGIN}{}\n{END}{tail}", lines.join("\n"))
}

fn is_below_a_run(path: &str) -> bool {
    path.starts_with("/api/runs/{run_id}") || path == "/api/admin/runs/{run_id}/requeue"
}

#[test]
fn every_route_answers_each_kind_of_caller_as_the_table_says() {
    runtime().block_on(async {
        let site = Box::pin(Site::open()).await;
        let mut walked = Table::new();
        for (method, path) in routes() {
            let mut statuses = Vec::new();
            for who in Who::COLUMNS {
                let answer = Box::pin(ask(&site, &method, &path, who, Content::Public)).await;
                assert!(answer.status < 500 || answer.status == 501, "{method} {path} {who:?}: {answer:?}");
                statuses.push(answer.status);
            }
            let subject = Box::pin(ask(&site, &method, &path, Who::AdminUser, Content::Public)).await;
            let secret = *statuses.last().unwrap();
            if path != "/api/auth/me" && path != "/api/auth/logout" {
                assert_eq!(subject.status, secret, "{method} {path}: an admin by subject, {subject:?}");
            }
            if method != "GET" && !OPEN_TO_ALL.contains(&(method.as_str(), path.as_str())) {
                assert!(!(200..300).contains(&statuses[0]), "{method} {path} is open to everybody");
                Box::pin(check_cross_site(&site, &method, &path)).await;
            }
            if is_below_a_run(&path) {
                Box::pin(check_private(&site, &method, &path, &statuses)).await;
            }
            walked.insert((method, path), statuses);
        }
        let text = std::fs::read_to_string(page()).unwrap();
        if std::env::var_os("BENCH_WRITE_ACCESS_TABLE").is_some() {
            std::fs::write(page(), write_table(&text, &walked)).unwrap();
            return;
        }
        let table = read_table(&text);
        let listed: BTreeSet<&Route> = table.keys().collect();
        assert_eq!(listed, walked.keys().collect(), "every route is in the table of docs/access.md");
        for (route, statuses) in &walked {
            assert_eq!(&table[route], statuses, "{route:?} as {:?}", Who::COLUMNS);
        }
    });
}

async fn ask(site: &Site, method: &str, path: &str, who: Who, content: Content) -> Answer {
    // Boxed, since the futures of a whole server are large.
    let target = Box::pin(Target::new(site, method, path, content)).await;
    let request = request_to(site, method, path, &target);
    site.send(request, who.headers(site)).await
}

/// The session's cookie alone changes nothing: another site's page could have sent it.
async fn check_cross_site(site: &Site, method: &str, path: &str) {
    for origin in [None, Some("https://evil.example")] {
        let target = Box::pin(Target::new(site, method, path, Content::Public)).await;
        let mut headers = vec![("cookie", Who::Owner.cookie().unwrap())];
        headers.extend(origin.map(|origin| ("origin", origin.to_owned())));
        let answer = site.send(request_to(site, method, path, &target), headers).await;
        assert_eq!(
            (answer.status, answer.code().as_deref()),
            (403, Some("cross_site_request")),
            "{method} {path} {origin:?}"
        );
    }
}

/// To other callers, a private run is one that doesn't exist. To its owner and admins, it's like any other.
async fn check_private(site: &Site, method: &str, path: &str, public: &[u16]) {
    for (who, public) in Who::COLUMNS.into_iter().zip(public) {
        let private = ask(site, method, path, who, Content::Private).await;
        if matches!(who, Who::Owner | Who::Admin) {
            assert_eq!(private.status, *public, "{method} {path} {who:?}: {private:?}");
            continue;
        }
        let unknown = ask(site, method, path, who, Content::Missing).await;
        assert!(private.status >= 400, "{method} {path} {who:?} reveals a private run: {private:?}");
        assert_eq!(private, unknown, "{method} {path} {who:?}: private runs differ from unknown ones");
        if method == Method::GET.as_str() {
            assert_eq!(private.status, 404, "{method} {path} {who:?}");
        }
    }
    // Unlisted runs can be read by all who know their id.
    if method == Method::GET.as_str() {
        let unlisted = ask(site, method, path, Who::Anonymous, Content::Unlisted).await;
        assert_eq!(unlisted.status, public[0], "{method} {path}: an unlisted run");
    }
}
