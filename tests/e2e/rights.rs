//! Compares the permissions that functions need with those that the template's roles grant.
//!
//! Emulators don't check roles, so a missing permission would show up on AWS only, possibly in a branch that few runs
//! take. So the suite records all requests of every function to AWS. Each role must allow all of them, and nothing
//! else except what [`UNSEEN`] lists with a reason.

mod template;

use std::collections::{BTreeMap, BTreeSet};

use bench_embedded::Permission;

use self::template::Allowed;

/// Name of this check among the scenarios.
pub(crate) const NAME: &str = "rights::roles_allow_what_is_needed_and_no_more";

/// The KMS key that protects callers' keys.
pub(crate) const KMS_KEY: &str = "bench-runner";

/// Permissions that roles grant although the suite doesn't see them used: function (or `*`), prefix of the action,
/// prefix of the resource, and the reason.
const UNSEEN: &[(&str, &str, &str, &str)] = &[
    ("*", "logs:", "", "Lambda itself writes what a function prints"),
    ("*", "secretsmanager:GetSecretValue", "", "read at init, which the embedded stack has not"),
    (
        "planner",
        "sqs:",
        "bench-plans",
        "its event source mapping receives and deletes; a newer version's plan is put back",
    ),
    ("worker", "sqs:", "bench-items", "the same; samples that must wait are sent again"),
    (
        "turns",
        "sqs:",
        "bench-turns",
        "the same; answers whose judge or job must be waited for are sent again",
    ),
    ("finisher", "sqs:", "bench-finishes", "the same; a newer version's finish is put back"),
    ("dead-letters", "sqs:", "bench-", "it receives and deletes; what nobody tried is sent to be tried"),
    ("planner", "dynamodb:GetItem", "table/bench-runner", "a write that another one raced"),
    ("finisher", "dynamodb:GetItem", "table/bench-runner", "a write that another one raced"),
    ("planner", "sqs:SendMessage", "bench-finishes", "a requeued run without a sample left to ask"),
    ("planner", "s3:AbortMultipartUpload", "bench-runner/datasets/", "datasets too large for one request"),
    ("api", "s3:GetObject", "bench-runner/datasets/", "what the hub's datasets were, once there are any"),
    ("api-stream", "s3:GetObject", "bench-runner/datasets/", "as the API"),
    ("api", "s3:AbortMultipartUpload", "bench-runner/tasks/", "archives too large for one request"),
    ("api", "s3:AbortMultipartUpload", "bench-runner/datasets/terminal_tasks/", "as other datasets"),
    ("api", "s3:PutObject", "bench-runner/uploads/", "others use it, by presigned addresses"),
    ("planner", "s3:", "bench-runner/templates/", "official texts, of benchmarks that have some"),
    ("worker", "s3:GetObject", "bench-runner/templates/", "the texts that a plan was made with"),
    ("turns", "kms:Decrypt", "", "judges' keys, of runs that bring one"),
    ("turns", "dynamodb:GetItem", "table/bench-runner", "a judge that takes long: is its run still open"),
    ("turns", "s3:ListBucket", "bench-runner", "whether an attempt that was cut off has left a reply behind"),
    ("planner", "sqs:SendMessage", "bench-turns", "a requeued run whose answers wait for their judge"),
    ("turns", "s3:GetObject", "bench-runner/templates/", "as the worker"),
    ("api", "s3:GetObject", "bench-runner/templates/", "which official texts are stored"),
    ("api-stream", "s3:GetObject", "bench-runner/templates/", "as the API"),
    ("api", "dynamodb:GetItem", "table/bench-runner-credentials", "users' tokens; the suite has no provider"),
    ("api", "dynamodb:UpdateItem", "table/bench-runner-credentials", "the same, renewed"),
    ("api", "kms:Decrypt", "", "the same, revoked at the sign-out"),
    ("worker", "dynamodb:", "table/bench-runner-credentials", "the same, renewed for users' runs"),
    ("worker", "dynamodb:DeleteItem", "table/bench-runner", "a session whose provider refuses to renew it"),
    ("worker", "kms:Encrypt", "", "users' renewed tokens"),
    ("turns", "dynamodb:", "table/bench-runner-credentials", "judges' keys; users' tokens, as the worker"),
    ("turns", "kms:Encrypt", "", "as the worker"),
    ("exports", "s3:AbortMultipartUpload", "bench-runner/exports/", "exports too large for one request"),
    ("exports", "s3:DeleteObject", "bench-runner/exports/", "an export of a run that was deleted meanwhile"),
    ("exports-stream", "s3:AbortMultipartUpload", "bench-runner/exports/", "as exports"),
    ("exports-stream", "s3:DeleteObject", "bench-runner/exports/", "as exports"),
    ("exports", "s3:PutObject", "bench-runner/uploads/", "others use it, by presigned addresses"),
    ("exports-stream", "s3:PutObject", "bench-runner/uploads/", "as exports"),
    ("finisher", "sqs:SendMessage", "bench-turns", "sandboxes of a run that is over"),
    ("scheduler", "dynamodb:BatchGetItem", "table/bench-runner", "comparing with an earlier run"),
    ("scheduler", "dynamodb:DeleteItem", "table/bench-runner-credentials", "keys that a run left over"),
    ("scheduler", "dynamodb:DeleteItem", "table/bench-runner", "sandboxes that a turn left over"),
    ("scheduler", "dynamodb:BatchWriteItem", "table/bench-runner", "schedules of terminal tasks"),
    ("scheduler", "sns:Publish", "", "what people must see"),
    ("scheduler", "sqs:SendMessage", "bench-", "messages that were lost"),
];

/// Functions that share a program with another one, whose role only reads.
const ALIKE: [(&str, &str); 2] = [("api-stream", "api"), ("exports-stream", "exports")];

/// Compares the recorded permissions with the roles.
pub(crate) fn check(recorded: &BTreeSet<Permission>) {
    assert!(recorded.len() > 100, "only {} rights were recorded", recorded.len());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../template.yaml");
    let text = std::fs::read_to_string(path).expect("template.yaml can be read");
    let roles = template::roles(&text);
    let mut problems = missing_permissions(recorded, &roles);
    problems.extend(unused_permissions(recorded, &roles));
    assert!(problems.is_empty(), "template.yaml:\n{}", problems.join("\n"));
}

/// Returns permissions that functions used but their roles lack. The embedded queue host reads queues itself.
fn missing_permissions(
    recorded: &BTreeSet<Permission>,
    roles: &BTreeMap<String, Vec<Allowed>>,
) -> Vec<String> {
    let mut missing = BTreeSet::new();
    for right in recorded {
        // Requested once when an embedded stack starts, to check whether the queue's file has lost messages.
        if (right.caller, right.action.as_str()) == ("scheduler", "sqs:GetQueueAttributes") {
            continue;
        }
        let role = roles.get(right.caller).unwrap_or_else(|| panic!("there is no function {}", right.caller));
        let allows =
            |(action, pattern): &Allowed| *action == right.action && covers(pattern, &right.resource);
        if !role.iter().any(allows) {
            missing.insert(format!("  {} lacks {} on {}", right.caller, right.action, right.resource));
        }
    }
    missing.into_iter().collect()
}

/// Returns permissions that roles grant without use or reason.
fn unused_permissions(
    recorded: &BTreeSet<Permission>,
    roles: &BTreeMap<String, Vec<Allowed>>,
) -> Vec<String> {
    let mut unused = Vec::new();
    for (function, role) in roles {
        let caller =
            ALIKE.iter().find(|(alike, _)| alike == function).map_or(function.as_str(), |(_, like)| like);
        for (action, pattern) in role {
            let used = recorded.iter().any(|right| {
                right.caller == caller && right.action == *action && covers(pattern, &right.resource)
            });
            let has_reason = UNSEEN.iter().any(|(who, which, what, _)| {
                (*who == "*" || who == function) && action.starts_with(which) && pattern.starts_with(what)
            });
            if !used && !has_reason {
                unused.push(format!("  {function} may {action} on {pattern}, and no scenario needs it"));
            }
        }
    }
    unused
}

/// Returns true if a resource of a policy covers a recorded one. A `*` at the end of a recorded one stands for some
/// object.
fn covers(pattern: &str, resource: &str) -> bool {
    let fixed = pattern.split('*').next().unwrap_or_default();
    match resource.strip_suffix('*') {
        Some(resource) => fixed.starts_with(resource) || (resource.starts_with(fixed) && pattern != fixed),
        None => matches(pattern, resource),
    }
}

/// Returns true if a text matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(start) else { return false };
    rest.is_empty() || text.char_indices().any(|(at, _)| matches(rest, &text[at..]))
}
